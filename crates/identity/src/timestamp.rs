//! The time of an update as its signed text shows it (IDENT-020). Depends on nothing.

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Days of 400 Gregorian years.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 1 March of the year 0 to the Unix epoch.
const EPOCH_DAYS: i64 = 719_468;

/// A time in nanoseconds since the Unix epoch as `YYYY-MM-DDThh:mm:ssZ`, rounded down to its second. The number is read
/// as a signed one, as every validator reads it, so the years are 1677 to 2262.
#[must_use]
pub fn to_text(client_timestamp_ns: u64) -> String {
    let seconds = client_timestamp_ns.cast_signed().div_euclid(NANOS_PER_SECOND);
    let (year, month, day) = civil_date(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day counted from the Unix epoch. Years are counted from March, so that the leap day comes
/// last and the lengths of months follow one formula.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    // API-230
    #[test]
    fn times_read_as_validators_read_them() {
        for (ns, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (12, "1970-01-01T00:00:00Z"),
            (999_999_999, "1970-01-01T00:00:00Z"),
            (1_000_000_000, "1970-01-01T00:00:01Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59Z"),
            (1_712_750_400_000_000_000, "2024-04-10T12:00:00Z"),
            (i64::MAX.cast_unsigned(), "2262-04-11T23:47:16Z"),
            (i64::MIN.cast_unsigned(), "1677-09-21T00:12:43Z"),
            (u64::MAX, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(to_text(ns), expected);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut previous = civil_date(-106_752);
        for days in -106_751..=106_751 {
            let (year, month, day) = civil_date(days);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last_day = |month| match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let (before_year, before_month, before_day) = previous;
            let follows = if day > 1 {
                (before_year, before_month, before_day) == (year, month, day - 1)
            } else if month > 1 {
                (before_year, before_month, before_day) == (year, month - 1, last_day(month - 1))
            } else {
                (before_year, before_month, before_day) == (year - 1, 12, 31)
            };
            assert!(
                follows && (1..=12).contains(&month),
                "{previous:?} then {:?}",
                (year, month, day)
            );
            previous = (year, month, day);
        }
    }
}
