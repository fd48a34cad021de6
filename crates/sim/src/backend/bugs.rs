//! Faults of the code, planted on purpose, that the checkers must find: a simulation that finds nothing proves nothing
//! unless it would have. Steps of the protocol done wrong are `topiclog`'s own ([`planted::Bug`]); the others are made
//! here, by breaking a promise of the platform or by changing what passes between objects and clients.

use std::{fmt, str::FromStr};

use conclave_topiclog::planted;

/// A promise broken beneath or around the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// Answers, calls and pushes leave an object before the writes they follow are durable.
    OutputGateIgnored,
    /// Nothing waits for durability, the protocol included.
    DurabilityRelaxed,
    /// A crash keeps a part of a transaction.
    TornTransactions,
    /// A publish of several envelopes to one shard is stored as several.
    PublishSplit,
    /// A page is answered as it was the first time it was asked for.
    PagesCached,
    /// The boundary is reported as the last allocated id.
    BoundaryTooHigh,
    /// Pushes claim to continue whatever came before.
    ChainIgnored,
    /// An envelope's time is the time of the answer.
    MetadataOfTheAnswer,
    /// A publish that failed with OUT_OF_RANGE is stored later.
    StoredAfterOutOfRange,
    /// An object never hears its alarm.
    AlarmsForgotten,
}

impl Breach {
    /// Every breach.
    pub const ALL: [Self; 10] = [
        Self::OutputGateIgnored,
        Self::DurabilityRelaxed,
        Self::TornTransactions,
        Self::PublishSplit,
        Self::PagesCached,
        Self::BoundaryTooHigh,
        Self::ChainIgnored,
        Self::MetadataOfTheAnswer,
        Self::StoredAfterOutOfRange,
        Self::AlarmsForgotten,
    ];
}

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Of the platform, or between the parts.
    Breach(Breach),
    /// Of the protocol.
    Step(planted::Bug),
}

impl Bug {
    /// Every planted bug.
    pub fn all() -> impl Iterator<Item = Self> {
        let steps = planted::Bug::ALL.into_iter().map(Self::Step);
        Breach::ALL.into_iter().map(Self::Breach).chain(steps)
    }
}

/// The name of the variant, in lower case with hyphens: `output-gate-ignored`.
impl fmt::Display for Bug {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = match self {
            Self::Breach(breach) => format!("{breach:?}"),
            Self::Step(step) => format!("{step:?}"),
        };
        out.write_str(&crate::names::hyphened(&variant))
    }
}

/// A name that is no planted bug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no planted bug; there are {}", Bug::all().map(|bug| bug.to_string()).collect::<Vec<_>>().join(", "))]
pub struct UnknownBug {
    name: String,
}

impl FromStr for Bug {
    type Err = UnknownBug;

    fn from_str(text: &str) -> Result<Self, UnknownBug> {
        Self::all()
            .find(|bug| bug.to_string() == text)
            .ok_or_else(|| UnknownBug {
                name: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_that_is_read_back() {
        for bug in Bug::all() {
            assert_eq!(bug.to_string().parse(), Ok(bug));
        }
        assert_eq!(
            Bug::Breach(Breach::OutputGateIgnored).to_string(),
            "output-gate-ignored"
        );
    }
}
