//! Names for the command line. Depends on nothing.

/// The name of a variant in lower case with hyphens: `OutputGateIgnored` is `output-gate-ignored`.
pub(crate) fn hyphened(variant: &str) -> String {
    let mut name = String::new();
    for (place, letter) in variant.chars().enumerate() {
        if place > 0 && letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
