//! Which kinds of fault a simulation may inject, and how often each happens. Each seed draws its own mixture, so that some
//! runs are nearly quiet and some are storms. Depends on [`crate::random`] alone.

use std::{fmt, str::FromStr};

use crate::random::Random;

/// The kinds of fault of one simulation.
pub trait FaultKind: Copy + PartialEq + fmt::Debug + 'static {
    /// Every kind.
    const ALL: &'static [Self];

    /// Its name on the command line.
    fn name(self) -> &'static str;

    /// How often it happens, in thousandths of its occasions, at a strength from 1 to 100.
    fn rate(self, strength: u64) -> u64;
}

/// The kinds a simulation may inject: `all`, `none`, or names joined by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSet<K>(Vec<K>);

impl<K: FaultKind> Default for FaultSet<K> {
    fn default() -> Self {
        Self(K::ALL.to_vec())
    }
}

impl<K: FaultKind> FaultSet<K> {
    /// No kind at all.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }
}

/// A name that is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no fault; there are all, none, {known}")]
pub struct UnknownFault {
    name: String,
    known: String,
}

impl<K: FaultKind> FromStr for FaultSet<K> {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        match text {
            "all" => return Ok(Self::default()),
            "none" => return Ok(Self::none()),
            _ => {}
        }
        let kind = |name: &str| {
            let found = K::ALL.iter().copied().find(|kind| kind.name() == name);
            found.ok_or_else(|| UnknownFault {
                name: name.to_owned(),
                known: K::ALL
                    .iter()
                    .map(|kind| kind.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        text.split(',').map(kind).collect::<Result<_, _>>().map(Self)
    }
}

impl<K: FaultKind> fmt::Display for FaultSet<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => out.write_str("none"),
            _ if self == &Self::default() => out.write_str("all"),
            _ => {
                let names: Vec<&str> = self.0.iter().map(|kind| kind.name()).collect();
                out.write_str(&names.join(","))
            }
        }
    }
}

/// How often each fault happens, in thousandths of its occasions.
#[derive(Clone, Debug)]
pub struct Rates<K>(Vec<(K, u64)>);

impl<K: FaultKind> Rates<K> {
    /// The mixture of one seed: each allowed kind is in it with a chance of `likely` in a thousand, with its own strength.
    pub fn draw(set: &FaultSet<K>, likely: u64, random: &Random) -> Self {
        let draw = |kind: &K| {
            let (is_on, strength) = (random.chance(likely), random.between(1, 100));
            (*kind, if is_on { kind.rate(strength) } else { 0 })
        };
        // Each kind draws, allowed or not, so that leaving one out changes nothing of the others.
        let drawn: Vec<_> = K::ALL.iter().map(draw).collect();
        Self(
            drawn
                .into_iter()
                .filter(|(kind, _)| set.0.contains(kind))
                .collect(),
        )
    }

    /// No fault at all.
    #[must_use]
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The rate of a kind.
    #[must_use]
    pub fn of(&self, kind: K) -> u64 {
        let found = self.0.iter().find(|(known, _)| *known == kind);
        found.map_or(0, |(_, rate)| *rate)
    }
}
