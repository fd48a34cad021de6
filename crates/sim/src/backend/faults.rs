//! Which faults a simulation injects, and how often. Each seed draws its own mixture, so that some runs are nearly quiet
//! and some are storms. Depends on [`crate::random`] alone.

use std::{fmt, str::FromStr};

use crate::random::Random;

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

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 11] = [
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
}

/// The kinds a simulation may inject: `all`, `none`, or names joined by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSet(Vec<Fault>);

impl Default for FaultSet {
    fn default() -> Self {
        Self(Fault::ALL.to_vec())
    }
}

/// A name that is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no fault; there are all, none, {}", Fault::ALL.map(Fault::name).join(", "))]
pub struct UnknownFault {
    name: String,
}

impl FromStr for FaultSet {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        match text {
            "all" => return Ok(Self::default()),
            "none" => return Ok(Self(Vec::new())),
            _ => {}
        }
        text.split(',')
            .map(|name| {
                Fault::ALL
                    .into_iter()
                    .find(|fault| fault.name() == name)
                    .ok_or_else(|| UnknownFault {
                        name: name.to_owned(),
                    })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for FaultSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => out.write_str("none"),
            _ if self == &Self::default() => out.write_str("all"),
            _ => {
                let names: Vec<&str> = self.0.iter().map(|fault| fault.name()).collect();
                out.write_str(&names.join(","))
            }
        }
    }
}

/// How often each fault happens, in thousandths of its occasions.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    rates: Vec<(Fault, u64)>,
}

impl Rates {
    /// The mixture of one seed: each allowed kind is in it more often than not, with its own strength.
    pub(super) fn draw(set: &FaultSet, random: &Random) -> Self {
        let draw = |fault| {
            let is_on = random.chance(650);
            let strength = random.between(1, 100);
            // What an occasion is differs: one call, one poll of an object, one look of the fault injector.
            let rate = match fault {
                Fault::Lose | Fault::Repeat => strength * 2,
                Fault::Delay | Fault::Edge | Fault::Stream | Fault::Ambush => strength * 3,
                Fault::Crash => strength / 4,
                Fault::Hibernate | Fault::Succeed | Fault::Clock => strength * 4,
                Fault::Alarm => strength * 8,
            };
            (fault, if is_on { rate } else { 0 })
        };
        let rates = Fault::ALL.into_iter().map(draw);
        Self {
            rates: rates.filter(|(fault, _)| set.0.contains(fault)).collect(),
        }
    }

    /// The rate of a kind.
    pub(super) fn of(&self, fault: Fault) -> u64 {
        let found = self.rates.iter().find(|(known, _)| *known == fault);
        found.map_or(0, |(_, rate)| *rate)
    }
}

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
