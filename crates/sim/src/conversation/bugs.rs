//! Faults of the code, planted on purpose, that the checkers must find. Steps of the protocol done wrong are the
//! conversation crate's own ([`planted::Bug`]); the others are made here, by breaking a promise of the store, the transport
//! or the Router.

use std::{fmt, str::FromStr};

use conclave_conversation::planted;

/// A promise broken around the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// A commit counts as durable before it is, and a crash loses it.
    DurabilityRelaxed,
    /// Effects happen although their commit did not.
    EffectsBeforeCommit,
    /// A crash keeps the first transitions of a commit.
    TornTransactions,
    /// A feed goes on after what was handed over, and not after what is durable.
    CursorBeforeEffects,
    /// Messages change places on their way to one member.
    OrderOfItsOwn,
    /// The Router accepts what it does not order.
    AcceptedNotOrdered,
}

impl Breach {
    /// Every breach.
    pub const ALL: [Self; 6] = [
        Self::DurabilityRelaxed,
        Self::EffectsBeforeCommit,
        Self::TornTransactions,
        Self::CursorBeforeEffects,
        Self::OrderOfItsOwn,
        Self::AcceptedNotOrdered,
    ];
}

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Around the engine.
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

/// The name of the variant, in lower case with hyphens: `torn-transactions`.
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
        let found = Self::all().find(|bug| bug.to_string() == text);
        found.ok_or_else(|| UnknownBug {
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
            Bug::Breach(Breach::TornTransactions).to_string(),
            "torn-transactions"
        );
    }
}
