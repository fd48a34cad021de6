//! What may go wrong around the engines, and how often.

use crate::fault_set::{self, FaultKind};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A message to the Router is lost, or its answer is.
    Lose,
    /// A message, an answer or a delivery takes seconds, and is overtaken by those of other topics and members.
    Delay,
    /// A message reaches the Router twice, the second time possibly much later.
    Repeat,
    /// An endpoint breaks: before a commit, after it, or among the effects that follow.
    Crash,
    /// A commit fails, as on a full disk.
    Store,
    /// The Router comes back as another instance, without anything the one before ordered.
    Restart,
    /// The Router forgets the beginning of a topic, and which messages it has seen.
    Forget,
    /// A member's network is gone for a while.
    Offline,
    /// A feed breaks and begins again some messages earlier.
    Stream,
    /// Clocks jump, forwards and backwards.
    Clock,
    /// Strangers write into topics.
    Garbage,
}

impl FaultKind for Fault {
    const ALL: &'static [Self] = &[
        Self::Lose,
        Self::Delay,
        Self::Repeat,
        Self::Crash,
        Self::Store,
        Self::Restart,
        Self::Forget,
        Self::Offline,
        Self::Stream,
        Self::Clock,
        Self::Garbage,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Lose => "lose",
            Self::Delay => "delay",
            Self::Repeat => "repeat",
            Self::Crash => "crash",
            Self::Store => "store",
            Self::Restart => "restart",
            Self::Forget => "forget",
            Self::Offline => "offline",
            Self::Stream => "stream",
            Self::Clock => "clock",
            Self::Garbage => "garbage",
        }
    }

    fn rate(self, strength: u64) -> u64 {
        // What an occasion is differs: one message, one input of an engine, one look of the fault injector.
        match self {
            Self::Lose | Self::Repeat => strength * 3,
            Self::Delay => strength * 2,
            Self::Crash | Self::Store => strength / 4,
            Self::Restart => strength * 2,
            Self::Forget => strength * 2,
            Self::Offline | Self::Stream | Self::Clock | Self::Garbage => strength * 4,
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
        for text in ["all", "none", "lose,crash", "restart"] {
            let read = text.parse::<FaultSet>().map(|set| set.to_string());
            assert_eq!(read, Ok(text.to_owned()));
        }
        assert!("fire".parse::<FaultSet>().is_err());
    }
}
