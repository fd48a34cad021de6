//! The `grpc-timeout` header: how long the caller waits. Depends on nothing; the clock is the caller's.

use std::time::Duration;

/// The most digits a timeout may have.
const MAX_DIGITS: usize = 8;

/// A `grpc-timeout` that is not 1 to 8 digits and a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("grpc-timeout is not 1 to 8 digits followed by one of H M S m u n")]
pub struct InvalidTimeout;

/// Reads a `grpc-timeout` header: 1 to 8 digits and one of `H M S m u n`.
///
/// # Errors
/// [`InvalidTimeout`] when the value has another form.
pub fn parse(header: &str) -> Result<Duration, InvalidTimeout> {
    let header = header.trim();
    let unit = header.chars().next_back().ok_or(InvalidTimeout)?;
    let digits = &header[..header.len() - unit.len_utf8()];
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(InvalidTimeout);
    }
    let amount: u64 = digits.parse().map_err(|_| InvalidTimeout)?;
    match unit {
        'H' => Ok(Duration::from_secs(amount * 3600)),
        'M' => Ok(Duration::from_secs(amount * 60)),
        'S' => Ok(Duration::from_secs(amount)),
        'm' => Ok(Duration::from_millis(amount)),
        'u' => Ok(Duration::from_micros(amount)),
        'n' => Ok(Duration::from_nanos(amount)),
        _ => Err(InvalidTimeout),
    }
}

/// Writes a `grpc-timeout` header in the finest unit that fits 8 digits, rounded up so that it never asks for less.
#[must_use]
pub fn format(timeout: Duration) -> String {
    const NANOS: [(u128, char); 6] = [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
        (60_000_000_000, 'M'),
        (3_600_000_000_000, 'H'),
    ];
    const MAX: u128 = 99_999_999;
    let nanos = timeout.as_nanos();
    for (unit_nanos, unit) in NANOS {
        let amount = nanos.div_ceil(unit_nanos);
        if amount <= MAX {
            return format!("{amount}{unit}");
        }
    }
    format!("{MAX}H")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (header, timeout) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("00000006n", Duration::from_nanos(6)),
            ("0S", Duration::ZERO),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(parse(header), Ok(timeout), "{header}");
        }
    }

    #[test]
    fn any_other_form_is_refused() {
        for header in [
            "",
            "S",
            "1",
            "1s",
            "-1S",
            "+1S",
            "1.5S",
            "123456789S",
            "1 S",
            "1Sx",
            "١S",
            "1é",
        ] {
            assert_eq!(parse(header), Err(InvalidTimeout), "{header}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_written_timeout_is_read_back_and_never_shorter(seconds in 0u64..1 << 40, nanos in 0u32..1_000_000_000) {
            let timeout = Duration::new(seconds, nanos);
            let read = parse(&format(timeout)).expect("what is written can be read");
            let longest = Duration::from_secs(99_999_999 * 3600);
            proptest::prop_assert!(read >= timeout.min(longest));
        }

        #[test]
        fn any_text_is_read_or_refused(header in ".*") {
            let _ = parse(&header);
        }
    }
}
