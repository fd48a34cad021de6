//! When a card was issued: `YYYY-MM-DDTHH:mm:ssZ`, whole seconds, UTC (reference 1.3).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

const SECONDS_PER_DAY: i64 = 86_400;

/// The last second with a four-digit year: 9999-12-31T23:59:59Z.
const UNIX_SECONDS_MAX: i64 = 253_402_300_799;

/// A whole second in UTC, with a year of four digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssuedAt {
    unix_seconds: i64,
}

impl IssuedAt {
    /// The instant so many seconds after the Unix epoch; `None` after the year 9999.
    pub fn from_unix_seconds(seconds: u64) -> Option<Self> {
        let unix_seconds = i64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds <= UNIX_SECONDS_MAX)?;
        Some(Self { unix_seconds })
    }

    /// Seconds since the Unix epoch; negative before it.
    pub const fn unix_seconds(self) -> i64 {
        self.unix_seconds
    }
}

/// A text that is not a real instant in exactly the form `YYYY-MM-DDTHH:mm:ssZ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a whole second of UTC as YYYY-MM-DDTHH:mm:ssZ")]
pub struct IssuedAtError;

impl FromStr for IssuedAt {
    type Err = IssuedAtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes: &[u8; 20] = text.as_bytes().try_into().map_err(|_| IssuedAtError)?;
        let separators = [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'Z'),
        ];
        if separators
            .iter()
            .any(|(offset, wanted)| bytes[*offset] != *wanted)
        {
            return Err(IssuedAtError);
        }
        let year = digits(&bytes[0..4])?;
        let month = digits(&bytes[5..7])?;
        let day = digits(&bytes[8..10])?;
        let (hour, minute, second) = (
            digits(&bytes[11..13])?,
            digits(&bytes[14..16])?,
            digits(&bytes[17..19])?,
        );
        let real = (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !real {
            return Err(IssuedAtError);
        }
        let unix_seconds =
            days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second;
        Ok(Self { unix_seconds })
    }
}

fn digits(bytes: &[u8]) -> Result<i64, IssuedAtError> {
    bytes.iter().try_fold(0, |number, byte| match byte {
        b'0'..=b'9' => Ok(number * 10 + i64::from(byte - b'0')),
        _ => Err(IssuedAtError),
    })
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days before the first of `month` in a year that starts in March, which puts the leap day last.
fn days_before_month(month: i64) -> i64 {
    let from_march = (month + 9) % 12;
    (153 * from_march + 2) / 5
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, whose years repeat every 400 (146,097 days).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_cycle = of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + days_before_month(month) + day - 1;
    cycle * 146_097 + day_of_cycle - 719_468
}

/// The inverse of [`days_from_civil`]: year, month, day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (cycle, day_of_cycle) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_cycle =
        (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * of_cycle + of_cycle / 4 - of_cycle / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = cycle * 400 + of_cycle + i64::from(month <= 2);
    (year, month, day)
}

impl fmt::Display for IssuedAt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second_of_day) = (
            self.unix_seconds.div_euclid(SECONDS_PER_DAY),
            self.unix_seconds.rem_euclid(SECONDS_PER_DAY),
        );
        let (year, month, day) = civil_from_days(days);
        let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

impl fmt::Debug for IssuedAt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for IssuedAt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IssuedAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants_have_their_seconds() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-10-21T12:00:00Z", 1_792_584_000),
            ("9999-12-31T23:59:59Z", UNIX_SECONDS_MAX),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            let instant: IssuedAt = text.parse().unwrap();
            assert_eq!(instant.unix_seconds(), seconds, "{text}");
            assert_eq!(instant.to_string(), text);
        }
        assert!(IssuedAt::from_unix_seconds(253_402_300_800).is_none());
        assert!(IssuedAt::from_unix_seconds(u64::MAX).is_none());
    }

    #[test]
    fn what_is_no_instant_or_spelled_otherwise_is_refused() {
        for text in [
            "2026-02-30T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00.0Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01t00:00:00z",
            "2026-01-01 00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00",
            "",
            "2026-1-01T00:00:000Z",
        ] {
            assert!(text.parse::<IssuedAt>().is_err(), "{text}");
        }
        assert!("2000-02-29T00:00:00Z".parse::<IssuedAt>().is_ok());
    }

    proptest! {
        #[test]
        fn every_second_survives_its_text(seconds in 0..=UNIX_SECONDS_MAX as u64) {
            let instant = IssuedAt::from_unix_seconds(seconds).unwrap();
            prop_assert_eq!(instant.to_string().parse(), Ok(instant));
        }
    }
}
