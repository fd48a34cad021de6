//! Finding the tests that claim requirements, in Rust and in JavaScript or TypeScript.
//!
//! A claim is a comment with ids directly above a test; attributes and further comment lines may stand between.

use super::id::{Id, ids_in, is_only_ids};

/// A test that claims an id.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Claim {
    /// What is claimed.
    pub(crate) id: Id,
    /// The file, relative to the root.
    pub(crate) file: String,
    /// The line of the test, from 1.
    pub(crate) line: usize,
    /// The test's name.
    pub(crate) test: String,
}

/// What a file holds.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Scanned {
    /// The claims.
    pub(crate) claims: Vec<Claim>,
    /// Comments of nothing but ids that stand above no test, as `file:line`.
    pub(crate) dangling: Vec<String>,
}

/// The language of a file, by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Language {
    Rust,
    Script,
}

fn language(file: &str) -> Option<Language> {
    match file.rsplit_once('.')?.1 {
        "rs" => Some(Language::Rust),
        "mjs" | "js" | "ts" | "tsx" | "mts" => Some(Language::Script),
        _ => None,
    }
}

/// Finds the claims of one file.
pub(crate) fn scan(file: &str, text: &str) -> Scanned {
    let mut scanned = Scanned::default();
    let Some(language) = language(file) else {
        return scanned;
    };
    let mut above = Above::default();
    for (index, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), index + 1);
        if let Some(comment) = line.strip_prefix("//") {
            let comment = comment.trim_start_matches(['/', '!']).trim();
            above.ids.extend(ids_in(comment));
            if is_only_ids(comment) {
                above.claim_at.get_or_insert(number);
            }
            continue;
        }
        let name = match language {
            Language::Rust if line.starts_with("#[") => {
                above.has_test_attribute |= is_test_attribute(line);
                continue;
            }
            Language::Rust => {
                function_name(line).filter(|_| above.has_test_attribute || is_suite_case(file, line))
            }
            Language::Script => called_test_name(line),
        };
        let above = std::mem::take(&mut above);
        if let Some(name) = name {
            scanned.claims.extend(above.ids.into_iter().map(|id| Claim {
                id,
                file: file.to_owned(),
                line: number,
                test: name.to_owned(),
            }));
        } else if let Some(line) = above.claim_at {
            scanned.dangling.push(format!("{file}:{line}"));
        }
    }
    scanned
}

/// What stands directly above the present line.
#[derive(Default)]
struct Above {
    ids: Vec<Id>,
    claim_at: Option<usize>,
    has_test_attribute: bool,
}

/// `#[test]`, `#[tokio::test]`, `#[wasm_bindgen_test]`, but not `#[cfg(test)]`.
fn is_test_attribute(line: &str) -> bool {
    let path = line
        .trim_start_matches("#[")
        .split(['(', ']', ' ', '='])
        .next()
        .unwrap_or_default();
    let last = path.rsplit("::").next().unwrap_or_default();
    last == "test" || last.ends_with("_test") || last == "test_case" || last == "rstest"
}

/// A case of the suite that every store runs: its crate makes a test of each.
fn is_suite_case(file: &str, line: &str) -> bool {
    file.starts_with("crates/store-suite/src/") && line.starts_with("pub(crate) async fn ")
}

fn function_name(line: &str) -> Option<&str> {
    let start = line
        .find("fn ")
        .filter(|start| line[..*start].split_whitespace().all(is_qualifier))?;
    let name = &line[start + 3..];
    name.split(['(', '<', ' ']).next().filter(|name| !name.is_empty())
}

fn is_qualifier(word: &str) -> bool {
    word.starts_with("pub") || matches!(word, "async" | "unsafe" | "const")
}

/// The name in `test("…", …)`, `it('…')`, `await t.test(\`…\`)` and `describe("…")`.
fn called_test_name(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("await ");
    let (call, rest) = line.split_once('(')?;
    let is_test = call
        .split('.')
        .any(|word| matches!(word, "test" | "it" | "describe" | "suite"))
        && call
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '$'));
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\'' | '`'));
    match (is_test, quote) {
        (true, Some(quote)) => rest[1..].split(quote).next(),
        // The name may stand on the next line, or be computed.
        (true, None) => Some(line),
        (false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(file: &str, text: &str) -> Vec<String> {
        scan(file, text)
            .claims
            .iter()
            .map(|claim| format!("{} {}:{} {}", claim.id, claim.file, claim.line, claim.test))
            .collect()
    }

    #[test]
    fn a_comment_above_a_rust_test_is_a_claim() {
        let text = "\
mod tests {
    // API-222, CONV-A01..A02
    // and why that is so
    #[test]
    fn a_retry_is_recognised() -> anyhow::Result<()> {
    }

    /// API-223
    #[wasm_bindgen_test]
    async fn failure_names_the_envelope() {}
}";
        assert_eq!(
            claims("a.rs", text),
            [
                "API-222 a.rs:5 a_retry_is_recognised",
                "CONV-A01 a.rs:5 a_retry_is_recognised",
                "CONV-A02 a.rs:5 a_retry_is_recognised",
                "API-223 a.rs:10 failure_names_the_envelope",
            ]
        );
    }

    #[test]
    fn a_comment_above_a_case_of_the_store_suite_is_a_claim() {
        let text = "// API-222\npub(crate) async fn a_batch_is_whole<S: Store>() {}\n";
        assert_eq!(
            claims("crates/store-suite/src/a.rs", text),
            ["API-222 crates/store-suite/src/a.rs:2 a_batch_is_whole"]
        );
        assert!(claims("crates/other/src/a.rs", text).is_empty());
    }

    #[test]
    fn a_comment_above_anything_else_is_none() {
        let text = "// API-222\nfn helper() {}\n\n// as API-223 says\nlet x = 1;\n// API-224\n\n#[test]\nfn far_below() {}\n\
                    #[cfg(test)]\n// API-225\nfn helper_of_tests() {}";
        let scanned = scan("a.rs", text);
        assert!(scanned.claims.is_empty(), "{:?}", scanned.claims);
        assert_eq!(scanned.dangling, ["a.rs:1", "a.rs:6", "a.rs:11"]);
    }

    #[test]
    fn a_comment_above_a_script_test_is_a_claim() {
        let text = "\
// API-260
test(\"a static stream starts\", async (t) => {
  // API-261: fairly
  await t.test('catch-up', () => {});
});
// API-250
it.skip(`started`, () => {});
// API-251
latest(\"no test\");";
        let scanned = scan("a.test.mjs", text);
        assert_eq!(
            claims("a.test.mjs", text),
            [
                "API-260 a.test.mjs:2 a static stream starts",
                "API-261 a.test.mjs:4 catch-up",
                "API-250 a.test.mjs:7 started",
            ]
        );
        assert_eq!(scanned.dangling, ["a.test.mjs:8"]);
    }

    #[test]
    fn other_files_hold_no_claims() {
        assert_eq!(
            scan("README.md", "// API-222\n#[test]\nfn x() {}"),
            Scanned::default()
        );
    }
}
