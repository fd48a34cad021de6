//! Which faults a simulation of the backend injects, and how often each. Depends on [`crate::fault_set`] alone.

use crate::fault_set::{self, FaultKind};

/// The chance of an allowed kind to be in a seed's mixture, in thousandths: more often than not.
pub(super) const LIKELY: u64 = 650;

/// A kind of fault. `sequencing.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A call between objects is lost on its way, or its answer is.
    Lose,
    /// A call or an answer takes seconds, and so is overtaken by later ones.
    Delay,
    /// A call runs twice, the second time possibly much later.
    Repeat,
    /// An object breaks at any await, with what it had not made durable.
    Crash,
    /// An object sleeps: its memory is gone, its streams stay.
    Hibernate,
    /// An object gets a successor while its former self still runs and its answers are under way.
    Succeed,
    /// Alarms go off late, or twice.
    Alarm,
    /// Clocks jump, forwards and backwards.
    Clock,
    /// A Worker invocation is lost, or its answer on the way to the client is.
    Edge,
    /// Streams break, and messages on them are lost, repeated or overtaken.
    Stream,
    /// What breaks, breaks where the protocol leans on it: a coordinator when its decision is on its way and cannot arrive
    /// for a while, the Sequencer when ids it gave are on theirs.
    Ambush,
}

impl FaultKind for Fault {
    const ALL: &'static [Self] = &[
        Self::Lose,
        Self::Delay,
        Self::Repeat,
        Self::Crash,
        Self::Hibernate,
        Self::Succeed,
        Self::Alarm,
        Self::Clock,
        Self::Edge,
        Self::Stream,
        Self::Ambush,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Lose => "lose",
            Self::Delay => "delay",
            Self::Repeat => "repeat",
            Self::Crash => "crash",
            Self::Hibernate => "hibernate",
            Self::Succeed => "succeed",
            Self::Alarm => "alarm",
            Self::Clock => "clock",
            Self::Edge => "edge",
            Self::Stream => "stream",
            Self::Ambush => "ambush",
        }
    }

    fn rate(self, strength: u64) -> u64 {
        // What an occasion is differs: one call, one poll of an object, one look of the fault injector.
        match self {
            Self::Lose | Self::Repeat => strength * 2,
            Self::Delay | Self::Edge | Self::Stream | Self::Ambush => strength * 3,
            Self::Crash => strength / 4,
            Self::Hibernate | Self::Succeed | Self::Clock => strength * 4,
            Self::Alarm => strength * 8,
        }
    }
}

/// The kinds a simulation may inject.
pub type FaultSet = fault_set::FaultSet<Fault>;

/// How often each happens.
pub(super) type Rates = fault_set::Rates<Fault>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_faults_is_read_as_it_is_written() {
        for text in ["all", "none", "lose,crash", "stream"] {
            assert_eq!(
                text.parse::<FaultSet>().map(|set| set.to_string()),
                Ok(text.to_owned())
            );
        }
        assert!("fire".parse::<FaultSet>().is_err());
    }
}
