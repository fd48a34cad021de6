//! What a simulation came to, for people.

use std::{collections::BTreeMap, fmt};

use super::{
    checkers::{self, Violation},
    history::{Event, History, short},
    simulation::Options,
};

/// The verdict on one seed.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was simulated.
    pub options: Options,
    /// How many members, as given or as drawn.
    pub members: usize,
    /// How many of them are Byzantine.
    pub byzantine: usize,
    /// How many inputs engines took.
    pub inputs: u64,
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
        let mut command = format!("cargo xtask sim conversation --replay {}", self.seed);
        let numbers = [
            ("members", self.options.members),
            ("byzantine", self.options.byzantine),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                command += &format!(" --{name} {number}");
            }
        }
        if self.options.faults != Default::default() {
            command += &format!(" --faults {}", self.options.faults);
        }
        if let Some(bug) = self.options.bug {
            command += &format!(" --bug {bug}");
        }
        command
    }

    /// What came of it, in a few words.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{} members, {} Byzantine, {} records, {} inputs, {} stages of the end",
            self.members,
            self.byzantine,
            self.records(),
            self.inputs,
            self.history.end.stages
        )
    }

    /// How many records all honest members together hold at the end.
    #[must_use]
    pub fn records(&self) -> usize {
        self.history.end.chains.values().map(Vec::len).max().unwrap_or(0)
    }

    /// Everything that happened, in order.
    #[must_use]
    pub fn whole_history(&self) -> String {
        let mut lines: Vec<(u64, String)> = Vec::new();
        for (at_us, text) in &self.history.notes {
            lines.push((*at_us, format!("-- {text}")));
        }
        for happened in &self.history.events {
            for text in describe(&happened.event) {
                lines.push((happened.at_us, format!("[{}] {text}", happened.member)));
            }
        }
        lines.sort_by_key(|(at_us, _)| *at_us);
        let timed = lines
            .into_iter()
            .map(|(at_us, text)| format!("{:>12.3} ms {text}\n", at_us as f64 / 1e3));
        timed.collect()
    }
}

/// What many seeds came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Seeds that hold and that do not, by members.
    seeds: BTreeMap<usize, (u64, u64)>,
    byzantine: u64,
    records: u64,
    inputs: u64,
    /// Seeds by the stages their end took.
    stages: BTreeMap<usize, u64>,
    /// Seeds with more than `f` Byzantine members in which a checker fails that then need not hold.
    beyond: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Counts a seed.
    pub fn add(&mut self, report: &Report) {
        let (holding, failing) = self.seeds.entry(report.members).or_default();
        if report.violations.is_empty() {
            *holding += 1;
        } else {
            *failing += 1;
        }
        self.byzantine += u64::from(report.byzantine > 0);
        self.records += report.records() as u64;
        self.inputs += report.inputs;
        *self.stages.entry(report.history.end.stages).or_default() += 1;
        for checker in checkers::failing_beyond_f(&report.history) {
            *self.beyond.entry(checker).or_default() += 1;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} records, {} inputs", self.records, self.inputs)?;
        for (members, (holding, failing)) in &self.seeds {
            write!(out, "; n={members}: {holding} hold")?;
            if *failing > 0 {
                write!(out, ", {failing} do not")?;
            }
        }
        write!(
            out,
            "; {} with Byzantine members; stages of the end",
            self.byzantine
        )?;
        for (stages, seeds) in &self.stages {
            write!(out, " {stages}:{seeds}")?;
        }
        for (checker, seeds) in &self.beyond {
            write!(out, "; beyond f, {checker} fails in {seeds}")?;
        }
        Ok(())
    }
}

/// An event in words, one line for each of its parts.
fn describe(event: &Event) -> Vec<String> {
    let line = match event {
        Event::Opened => "opens".to_owned(),
        Event::Crashed => "crashes".to_owned(),
        Event::Durable(transitions) => {
            let kind = |transition: &conclave_conversation::store::Transition| {
                let text = format!("{transition:?}");
                text.split(['(', ' ']).next().unwrap_or_default().to_owned()
            };
            let boring = ["BeginOutbound", "CompleteOutbound", "AdvanceCursor", "Enqueue"];
            let kinds: Vec<_> = transitions
                .iter()
                .map(kind)
                .filter(|kind| !boring.contains(&kind.as_str()))
                .collect();
            if kinds.is_empty() {
                return Vec::new();
            }
            format!("durable: {}", kinds.join(" "))
        }
        Event::Left {
            id,
            conversation,
            said,
        } => {
            format!("sends {} of {} {said}", short(id), short(conversation))
        }
        Event::Bound { post, text, .. } => format!("binds {} {text:?}", short(post)),
        Event::Sent { request, result } => format!("send {} ends: {result:?}", request.0),
        Event::Fenced {
            conversation,
            is_fenced,
        } => format!(
            "{} is {}",
            short(conversation),
            if *is_fenced { "fenced" } else { "open" }
        ),
        Event::Delivered(delivery) => format!("is given {}", short(&delivery.record_hash)),
        Event::Acknowledged(token) => format!("accepts {}", short(token)),
        Event::Broken { what, text } => format!("BROKEN {what}: {text}"),
    };
    vec![line]
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "seed {}, {} members, {} Byzantine: {} do not hold",
            self.seed,
            self.members,
            self.byzantine,
            self.violations.len()
        )?;
        for violation in self.violations.iter().take(8) {
            writeln!(out, "  {}: {}", violation.checker, violation.text)?;
        }
        writeln!(out, "replay: {}", self.replay_command())
    }
}
