//! The `traceparent` of a caller (W3C Trace Context, OPS-012). Depends on nothing.

/// The id of a trace that a request belongs to: 32 lowercase hexadecimal digits, not all zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceId(String);

/// The version that may not have anything behind its four fields.
const FIRST_VERSION: &str = "00";
/// The version no header may have.
const INVALID_VERSION: &str = "ff";

impl TraceId {
    /// The trace id in the value of a `traceparent` header. `None` for anything that is none: a caller's own words never
    /// get into a log.
    #[must_use]
    pub fn of_traceparent(value: &str) -> Option<Self> {
        let mut fields = value.trim().splitn(5, '-');
        let version = digits(fields.next()?, 2)?;
        let trace_id = digits(fields.next()?, 32)?;
        let parent_id = digits(fields.next()?, 16)?;
        digits(fields.next()?, 2)?;
        let is_known = version != INVALID_VERSION && (version != FIRST_VERSION || fields.next().is_none());
        (is_known && is_nonzero(trace_id) && is_nonzero(parent_id)).then(|| Self(trace_id.to_owned()))
    }

    /// Its digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn digits(field: &str, count: usize) -> Option<&str> {
    let are_digits = field
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (field.len() == count && are_digits).then_some(field)
}

fn is_nonzero(digits: &str) -> bool {
    digits.bytes().any(|digit| digit != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn the_trace_id_is_read_from_any_version() {
        for (version, more) in [("00", ""), ("01", ""), ("cc", "-what-the-future-brings")] {
            let value = format!("{version}-{TRACE}-00f067aa0ba902b7-01{more}");
            let trace = TraceId::of_traceparent(&value).expect(&value);
            assert_eq!(trace.as_str(), TRACE);
        }
    }

    #[test]
    fn what_is_no_trace_context_is_left_aside() {
        let zero = "0".repeat(32);
        for value in [
            String::new(),
            "00".to_owned(),
            TRACE.to_owned(),
            format!("00-{TRACE}"),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{zero}-00f067aa0ba902b7-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            format!("00-{TRACE}0-00f067aa0ba902b7-01"),
            format!("0-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{TRACE}-00f067aa0ba902b7-x1"),
            "00-\"}\n{\"-00f067aa0ba902b7-01".to_owned(),
        ] {
            assert_eq!(TraceId::of_traceparent(&value), None, "{value:?}");
        }
    }
}
