#![forbid(unsafe_code)]
//! Holds the MLS reading of `conclave-envelope` against openmls, on many damaged and many deliberately odd inputs.
//!
//! Ships nothing. A crate of its own, so that testing `conclave-envelope` does not build openmls. Where the two part, the
//! contract's text and openmls' habits part in one of the ways D1 to D8 that `conclave_envelope::key_package` names; any
//! other difference is a failure and carries the input.
//!
//! - [`fixtures`]: messages and key packages made by openmls;
//! - [`odd_packages`]: signed key packages that break or bend every rule;
//! - [`verdict`]: what each side says of an input;
//! - [`explain`]: why they may differ.

pub mod explain;
pub mod fixtures;
pub mod odd_packages;
pub mod random;
pub mod verdict;

use std::{
    collections::BTreeMap,
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use conclave_envelope::key_package::building;
use random::Random;

/// What a run of comparisons found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many inputs both sides accepted.
    pub both_accept: usize,
    /// How many inputs both sides refused for the same reason.
    pub both_refuse: usize,
    /// How many inputs they differed on, by why they may.
    pub differences: BTreeMap<&'static str, usize>,
    /// The inputs they differed on without a reason, in hexadecimal, with both verdicts.
    pub unexplained: Vec<String>,
}

impl Report {
    fn record(
        &mut self,
        input: &[u8],
        ours: verdict::Verdict,
        theirs: verdict::Verdict,
        why: Option<&'static str>,
    ) {
        if ours == theirs {
            if matches!(ours, verdict::Verdict::Accepted(_)) {
                self.both_accept += 1;
            } else {
                self.both_refuse += 1;
            }
        } else if let Some(why) = why {
            *self.differences.entry(why).or_default() += 1;
        } else {
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            self.unexplained
                .push(format!("ours {ours:?}, theirs {theirs:?}: {hex}"));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} accepted by both, {} refused by both, differences {:?}, {} unexplained",
            self.both_accept,
            self.both_refuse,
            self.differences,
            self.unexplained.len()
        )
    }
}

/// Compares both sides on damaged group messages.
#[must_use]
pub fn compare_group_messages(seed: u64, runs: usize) -> Report {
    let fixtures = fixtures::group_messages();
    let mut random = Random::new(seed);
    let mut report = Report::default();
    for _ in 0..runs {
        let fixture = random.pick(&fixtures);
        let input = random.damage(fixture);
        let (ours, theirs) = (
            verdict::of_group_message(&input),
            verdict::of_group_message_by_openmls(&input),
        );
        report.record(&input, ours, theirs, explain::group_message(&input, ours, theirs));
    }
    report
}

/// Compares both sides on damaged key packages, and on odd ones whose signatures are right.
#[must_use]
pub fn compare_key_packages(seed: u64, runs: usize) -> Report {
    let fixtures = fixtures::key_packages();
    let now_seconds = now_seconds();
    let mut random = Random::new(seed);
    let mut report = Report::default();
    for run in 0..runs {
        let input = match run % 2 {
            0 => {
                let fixture = random.pick(&fixtures);
                random.damage(fixture)
            }
            _ => odd_packages::draw(&mut random, now_seconds),
        };
        let ours = verdict::of_key_package(&input, now_seconds);
        let theirs = verdict::of_key_package_by_openmls(&input);
        report.record(&input, ours, theirs, explain::key_package(&input, ours, theirs));
    }
    report
}

/// The time openmls judges lifetimes by: it reads the clock itself.
#[must_use]
pub fn now_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
