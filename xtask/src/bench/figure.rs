//! One figure as a family reports it.

use std::fmt;

use anyhow::Context as _;
use serde_json::Value;

/// A figure. Numbers are kept as they were written: how many digits mean something is known where they are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// What was measured.
    pub(super) what: String,
    /// The unit of floor and backend.
    pub(super) unit: String,
    /// The floor's figure.
    pub(super) floor: String,
    /// Ours.
    pub(super) backend: String,
    /// Ours over the floor's.
    pub(super) ratio: String,
    /// Our CPU time of a request over the floor's, where it is known.
    pub(super) cpu_ratio: Option<String>,
    /// What the ratio should be, in words; nothing for a figure that is for information.
    pub(super) goal: Option<String>,
    /// Whether it is.
    pub(super) is_met: Option<bool>,
}

impl Figure {
    /// Reads one line of a family's output.
    ///
    /// # Errors
    ///
    /// It is no figure.
    pub(super) fn read(line: &str) -> anyhow::Result<Self> {
        let value: Value = serde_json::from_str(line).with_context(|| format!("{line:?} is no figure"))?;
        let optional = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let text = |key: &str| optional(key).with_context(|| format!("{line:?} is a figure without `{key}`"));
        Ok(Self {
            what: text("what")?,
            unit: text("unit")?,
            floor: text("floor")?,
            backend: text("backend")?,
            ratio: text("ratio")?,
            cpu_ratio: optional("cpu_ratio"),
            goal: optional("goal"),
            is_met: value.get("is_met").and_then(Value::as_bool),
        })
    }

    /// Whether the goal, if there is one, is met.
    pub(super) fn is_good_enough(&self) -> bool {
        self.is_met != Some(false)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: floor {}, backend {} {}, ratio {}",
            self.what, self.floor, self.backend, self.unit, self.ratio
        )?;
        match (&self.goal, self.is_met) {
            (Some(goal), Some(true)) => write!(formatter, ", the goal is {goal}"),
            (Some(goal), _) => write!(formatter, ", and the goal is {goal}"),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"what":"w","unit":"u","floor":"1","backend":"2","ratio":"2.00","cpu_ratio":null,"goal":"at least 3","is_met":false}"#;

    #[test]
    fn a_line_is_read_and_a_missed_goal_is_seen() -> anyhow::Result<()> {
        let figure = Figure::read(LINE)?;
        assert_eq!(
            (figure.ratio.as_str(), figure.cpu_ratio.as_deref()),
            ("2.00", None)
        );
        assert!(!figure.is_good_enough());
        let informative = LINE.replace("\"at least 3\"", "null").replace("false", "null");
        assert!(Figure::read(&informative)?.is_good_enough());
        Ok(())
    }

    #[test]
    fn a_line_that_lacks_something_is_refused_by_its_name() {
        let error = Figure::read(&LINE.replace("ratio\"", "rate\"")).expect_err("no ratio");
        assert!(error.to_string().contains("`ratio`"), "{error}");
        assert!(Figure::read("words").is_err());
    }
}
