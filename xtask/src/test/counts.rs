//! How many tests passed, read from what the runners print.

/// Tests by outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    /// Those that passed.
    pub(crate) passed: u64,
    /// Those that failed.
    pub(crate) failed: u64,
    /// Those that were left out.
    pub(crate) skipped: u64,
}

impl Counts {
    /// One check that is not a test of a runner.
    pub(crate) fn one(passed: bool) -> Self {
        Self {
            passed: u64::from(passed),
            failed: u64::from(!passed),
            skipped: 0,
        }
    }

    /// A failure that no runner counted, such as sources that do not compile.
    pub(crate) fn at_least_one_failure(mut self) -> Self {
        self.failed = self.failed.max(1);
        self
    }

    /// Reads one line of cargo's own runner: `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    pub(crate) fn of_cargo_line(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix("test result: ")?;
        Some(Self {
            passed: number_before(rest, "passed")?,
            failed: number_before(rest, "failed")?,
            skipped: number_before(rest, "ignored").unwrap_or(0),
        })
    }

    /// Reads nextest's last line: `Summary [   0.1s] 3 tests run: 2 passed (1 slow), 1 failed, 4 skipped`.
    pub(crate) fn of_nextest_line(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix("Summary [")?.split_once("run: ")?.1;
        let failed = ["failed", "timed out", "exec failed"]
            .iter()
            .filter_map(|word| number_before(rest, word))
            .sum();
        Some(Self {
            passed: number_before(rest, "passed").unwrap_or(0),
            failed,
            skipped: number_before(rest, "skipped").unwrap_or(0),
        })
    }

    /// Reads one line of the end of a TAP report: `# pass 3`.
    pub(crate) fn of_tap_line(line: &str) -> Option<Self> {
        let (word, number) = line.strip_prefix("# ")?.split_once(' ')?;
        let number = number.trim().parse().ok()?;
        match word {
            "pass" => Some(Self {
                passed: number,
                ..Self::default()
            }),
            "fail" | "cancelled" => Some(Self {
                failed: number,
                ..Self::default()
            }),
            "skipped" | "todo" => Some(Self {
                skipped: number,
                ..Self::default()
            }),
            _ => None,
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut sum, counts| {
            sum += counts;
            sum
        })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(formatter, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// The number that stands before `word` in a list such as `2 passed, 1 failed` or `2 passed; 1 failed`.
fn number_before(list: &str, word: &str) -> Option<u64> {
    list.split([',', ';', '.']).map(str::trim).find_map(|part| {
        let (number, rest) = part.split_once(' ')?;
        let rest = rest.trim();
        let is_word = rest == word || rest.strip_prefix(word).is_some_and(|more| more.starts_with(" ("));
        number.parse().ok().filter(|_| is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_lines_are_read() {
        let line = "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 5 filtered out; finished in 0.01s";
        assert_eq!(
            Counts::of_cargo_line(line),
            Some(Counts {
                passed: 3,
                failed: 1,
                skipped: 2
            })
        );
        assert_eq!(Counts::of_cargo_line("running 3 tests"), None);
    }

    #[test]
    fn nextest_lines_are_read() {
        let line =
            "     Summary [   1.234s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 7 skipped";
        assert_eq!(
            Counts::of_nextest_line(line),
            Some(Counts {
                passed: 3,
                failed: 2,
                skipped: 7
            })
        );
        let line = "     Summary [   0.002s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(
            Counts::of_nextest_line(line),
            Some(Counts {
                passed: 1,
                failed: 0,
                skipped: 0
            })
        );
        assert_eq!(Counts::of_nextest_line("        PASS [   0.002s] a b"), None);
    }

    #[test]
    fn tap_lines_add_up() {
        let report = "ok 1 - a\n1..4\n# tests 4\n# suites 0\n# pass 2\n# fail 1\n# cancelled 1\n# skipped 0\n# todo 0\n# duration_ms 12.5";
        let counts: Counts = report.lines().filter_map(Counts::of_tap_line).sum();
        assert_eq!(
            counts,
            Counts {
                passed: 2,
                failed: 2,
                skipped: 0
            }
        );
    }

    #[test]
    fn the_closing_line_is_plain() {
        assert_eq!(
            Counts {
                passed: 3,
                failed: 0,
                skipped: 0
            }
            .to_string(),
            "3 passed, 0 failed"
        );
        assert_eq!(
            Counts {
                passed: 3,
                failed: 1,
                skipped: 2
            }
            .to_string(),
            "3 passed, 1 failed, 2 skipped"
        );
    }
}
