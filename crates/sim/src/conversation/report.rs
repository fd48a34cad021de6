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
        self.options.replay_command(self.seed)
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
    sizes: BTreeMap<usize, Size>,
    /// Seeds by the stages their end took.
    stages: BTreeMap<usize, u64>,
    /// Seeds with more than `f` Byzantine members in which a checker fails that then need not hold.
    beyond: BTreeMap<&'static str, u64>,
}

/// What the seeds among so many members came to.
#[derive(Debug, Default)]
struct Size {
    holding: u64,
    failing: u64,
    /// Seeds by their Byzantine members.
    byzantine: BTreeMap<usize, u64>,
    records: u64,
    inputs: u64,
}

impl Tally {
    /// Counts a seed.
    pub fn add(&mut self, report: &Report) {
        let size = self.sizes.entry(report.members).or_default();
        if report.violations.is_empty() {
            size.holding += 1;
        } else {
            size.failing += 1;
        }
        *size.byzantine.entry(report.byzantine).or_default() += 1;
        size.records += report.records() as u64;
        size.inputs += report.inputs;
        *self.stages.entry(report.history.end.stages).or_default() += 1;
        for checker in checkers::failing_beyond_f(&report.history) {
            *self.beyond.entry(checker).or_default() += 1;
        }
    }
}

/// A line for each size, and one of what they have in common.
impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (members, size) in &self.sizes {
            let Size {
                holding,
                failing,
                records,
                inputs,
                ..
            } = size;
            write!(
                out,
                "{members:>4} members: {holding} hold, {failing} do not; {records} records, {inputs} inputs; Byzantine:seeds"
            )?;
            for (byzantine, seeds) in &size.byzantine {
                write!(out, " {byzantine}:{seeds}")?;
            }
            writeln!(out)?;
        }
        write!(out, "     stages of the end:seeds")?;
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
        Event::Handed { .. } => return Vec::new(),
        Event::Gap(feed) => format!("is told of a gap in {feed}"),
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
