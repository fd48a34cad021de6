//! What a simulation came to, for people.

use std::fmt;

use super::{checkers::Violation, history::History, simulation::Options};

/// How much of a history a report shows.
const LINES_MAX: usize = 40;

/// The verdict on one seed.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was simulated.
    pub options: Options,
    /// The shard count, as given or as drawn.
    pub shard_count: u32,
    /// How many turns tasks took.
    pub steps: u64,
    /// How much virtual time passed, in milliseconds.
    pub virtual_ms: u64,
    /// What does not hold.
    pub violations: Vec<Violation>,
    pub(super) history: History,
}

impl Report {
    /// The command that runs exactly this again, and shows its whole history.
    #[must_use]
    pub fn replay_command(&self) -> String {
        let mut command = format!("cargo xtask sim backend --replay {}", self.seed);
        if self.options.workload != Default::default() {
            command += &format!(" --workload {}", self.options.workload);
        }
        if let Some(shards) = self.options.shards {
            command += &format!(" --shards {shards}");
        }
        if self.options.faults != Default::default() {
            command += &format!(" --faults {}", self.options.faults);
        }
        if let Some(bug) = self.options.bug {
            command += &format!(" --bug {bug}");
        }
        command
    }

    /// Everything that happened, in the order it began.
    #[must_use]
    pub fn whole_history(&self) -> String {
        let mut lines: Vec<(u64, String)> = Vec::new();
        for attempt in &self.history.attempts {
            lines.push((attempt.invoked_ns, attempt.to_string()));
        }
        for note in &self.history.notes {
            lines.push((note.at_ns, format!("-- {}", note.text)));
        }
        lines.sort_by_key(|(at_ns, _)| *at_ns);
        let timed = lines
            .into_iter()
            .map(|(at_ns, text)| format!("{:>10.3} ms {text}\n", at_ns as f64 / 1e6));
        let streams = self.history.streams.iter().map(|stream| format!("{stream}\n"));
        let subscriptions = self.history.subscriptions.iter();
        let subscriptions = subscriptions.map(|subscription| format!("{subscription}\n"));
        timed.chain(streams).chain(subscriptions).collect()
    }

    /// How many requests were sent, and how many of them were answered with success.
    #[must_use]
    pub fn requests(&self) -> (usize, usize) {
        let answered = self
            .history
            .attempts
            .iter()
            .filter_map(|attempt| attempt.came.as_ref());
        let successes = answered
            .filter(|came| super::simulation::is_success(came))
            .count();
        (self.history.attempts.len(), successes)
    }

    fn shows(&self, text: &str, violation: &Violation) -> bool {
        violation.ids.iter().any(|id| {
            text.split(|letter: char| !letter.is_ascii_digit())
                .any(|word| word == id.to_string())
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "seed {}, {} shards: {} do not hold",
            self.seed,
            self.shard_count,
            self.violations.len()
        )?;
        for violation in self.violations.iter().take(5) {
            writeln!(out, "\n{}: {}", violation.checker, violation.text)?;
            let attempts = self.history.attempts.iter().map(ToString::to_string);
            let streams = self.history.streams.iter().map(ToString::to_string);
            let shown = attempts.chain(streams).filter(|text| self.shows(text, violation));
            for line in shown.take(LINES_MAX) {
                writeln!(out, "  {line}")?;
            }
        }
        writeln!(out, "\nreplay: {}", self.replay_command())
    }
}
