//! docs/benchmarks.md: prose by people, and between two marks for each family what was measured last.

use std::fmt::Write as _;

use anyhow::Context as _;

use super::figure::Figure;

/// The figures as a Markdown table.
pub(super) fn table(figures: &[Figure]) -> String {
    let mut text = String::from(
        "| what | floor | backend | | ratio | goal | | CPU ratio |\n|---|---|---|---|---|---|---|---|\n",
    );
    for figure in figures {
        let verdict = match figure.is_met {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {verdict} | {} |",
            figure.what,
            figure.floor,
            figure.backend,
            figure.unit,
            figure.ratio,
            figure.goal.as_deref().unwrap_or_default(),
            figure.cpu_ratio.as_deref().unwrap_or_default(),
        );
    }
    text
}

/// The page with the section of a family replaced.
///
/// # Errors
///
/// The page has no place for it.
pub(super) fn replace(page: &str, family: &str, section: &str) -> anyhow::Result<String> {
    let (begin, end) = (
        format!("<!-- begin {family} -->"),
        format!("<!-- end {family} -->"),
    );
    let missing = || format!("the page has no lines `{begin}` and `{end}` to write between");
    let (before, rest) = page.split_once(&begin).with_context(missing)?;
    let (_, after) = rest.split_once(&end).with_context(missing)?;
    Ok(format!("{before}{begin}\n{}\n{end}{after}", section.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_everything_else_stays() -> anyhow::Result<()> {
        let page =
            "# Title\n<!-- begin a -->\nold\n<!-- end a -->\nprose\n<!-- begin b -->\n<!-- end b -->\n";
        let written = replace(page, "a", "new\n")?;
        assert_eq!(written, page.replace("old", "new"));
        assert_eq!(replace(&written, "a", "new\n")?, written);
        assert!(replace(page, "c", "new").is_err());
        Ok(())
    }
}
