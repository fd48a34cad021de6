//! Wire versions: calendar strings `YYYY.MDD.N`, compared for equality alone (reference section 7).
//!
//! Which versions are authored, live or readable is data. Everything that verifies takes a [`WireVersions`], so that a
//! retired or a coming version can be tested without a rebuild.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// What newly authored values carry.
pub const WIRE_VERSION: WireVersion = WireVersion::new(2026, 1021, 3);

/// The versions an outer envelope may carry.
pub const LIVE_WIRE_VERSIONS: &[WireVersion] = &[WIRE_VERSION];

/// The versions a stored or nested artifact may carry: the live ones, and those that once were.
pub const HISTORY_WIRE_VERSIONS: &[WireVersion] = &[WIRE_VERSION];

/// One wire version. Its order is the calendar's and decides spellings only; no version is "at least" another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireVersion {
    year: u16,
    month_day: u16,
    number: u32,
}

impl WireVersion {
    /// The version `year.month_day.number`, `month_day` being 100 times the month plus the day.
    ///
    /// # Panics
    ///
    /// When the year has not four digits or the month and day are none.
    pub const fn new(year: u16, month_day: u16, number: u32) -> Self {
        assert!(is_calendar(year, month_day));
        Self {
            year,
            month_day,
            number,
        }
    }
}

const fn is_calendar(year: u16, month_day: u16) -> bool {
    let (month, day) = (month_day / 100, month_day % 100);
    year >= 1000 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= 31
}

/// A text that is not a wire version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a wire version of the form YYYY.MDD.N")]
pub struct WireVersionError;

impl FromStr for WireVersion {
    type Err = WireVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(WireVersionError);
        let (year, month_day, number) = (number(part()?)?, number(part()?)?, number(part()?)?);
        if !is_calendar(year, month_day) {
            return Err(WireVersionError);
        }
        Ok(Self {
            year,
            month_day,
            number,
        })
    }
}

/// A decimal number in its only spelling.
fn number<N: FromStr>(text: &str) -> Result<N, WireVersionError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain {
        text.parse().map_err(|_| WireVersionError)
    } else {
        Err(WireVersionError)
    }
}

impl fmt::Display for WireVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.year, self.month_day, self.number)
    }
}

impl fmt::Debug for WireVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for WireVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WireVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// A set of wire versions: those a verifier accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireVersions(Vec<WireVersion>);

impl WireVersions {
    /// The set of these versions.
    pub fn of(versions: &[WireVersion]) -> Self {
        let mut versions = versions.to_vec();
        versions.sort_unstable();
        versions.dedup();
        Self(versions)
    }

    /// [`LIVE_WIRE_VERSIONS`]: what an outer envelope may carry.
    pub fn live() -> Self {
        Self::of(LIVE_WIRE_VERSIONS)
    }

    /// [`HISTORY_WIRE_VERSIONS`]: what everything else may carry.
    pub fn history() -> Self {
        Self::of(HISTORY_WIRE_VERSIONS)
    }

    /// Whether `version` is one of them.
    pub fn contains(&self, version: WireVersion) -> bool {
        self.0.binary_search(&version).is_ok()
    }

    /// The versions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = WireVersion> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_exactly_one_spelling() {
        for text in [
            "2026.1021.3",
            "2026.1006.1",
            "2026.827.1",
            "2026.729.10",
            "2026.101.0",
        ] {
            assert_eq!(
                text.parse::<WireVersion>().map(|version| version.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            "2026",
            "2026.1021",
            "2026.1021.3.1",
            "2026.0827.1",
            "2026.1021.03",
            "2026.1321.1",
            "2026.100.1",
            "2026.1032.1",
            "v2026.1021.3",
            "2026.1021.+3",
            "2026.1021.-3",
            "2026.1021. 3",
            "02026.1021.3",
            "26.1021.3",
            "2026.1021.4294967296",
            "2026..3",
        ] {
            assert!(text.parse::<WireVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_live_version_stays_readable() {
        assert!(WireVersions::live().contains(WIRE_VERSION));
        assert!(
            WireVersions::live()
                .iter()
                .all(|version| WireVersions::history().contains(version))
        );
    }
}
