//! The seventeen gRPC status codes. Depends on nothing.

use std::fmt;

/// The outcome class of an RPC. A client decides by code, never by message text (API-284).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// The RPC succeeded.
    Ok = 0,
    /// The caller gave the call up.
    Cancelled = 1,
    /// A failure no other code describes.
    Unknown = 2,
    /// The request can never succeed as it stands.
    InvalidArgument = 3,
    /// The time allowed ran out; the outcome is unknown.
    DeadlineExceeded = 4,
    /// What the request names does not exist.
    NotFound = 5,
    /// What the request creates exists already.
    AlreadyExists = 6,
    /// The caller is known and not allowed to.
    PermissionDenied = 7,
    /// A quota or a bounded buffer is full.
    ResourceExhausted = 8,
    /// The system is not in the state the request needs.
    FailedPrecondition = 9,
    /// A concurrent change got in between; start over from fresh state.
    Aborted = 10,
    /// A message is longer than its byte budget or the transport carries.
    OutOfRange = 11,
    /// The service does not do this.
    Unimplemented = 12,
    /// An invariant of the service is broken.
    Internal = 13,
    /// Try again later; the outcome is unknown.
    Unavailable = 14,
    /// Stored data is lost or corrupt.
    DataLoss = 15,
    /// The caller's credential is missing or not valid.
    Unauthenticated = 16,
}

impl Code {
    /// Every code, in the order of its number.
    pub const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// The number as `grpc-status` carries it, 0 to 16.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The code of a number, or `None` above 16.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Code> {
        Code::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The code of a `grpc-status` value. A value that is not the number of a code is [`Code::Unknown`].
    #[must_use]
    pub fn from_header(value: &str) -> Code {
        let value = value.trim();
        // A number parses with a sign too, which is not a code's.
        Some(value)
            .filter(|value| value.bytes().all(|digit| digit.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .and_then(Code::from_number)
            .unwrap_or(Code::Unknown)
    }

    /// The code a client assumes when a response carries an HTTP status and no gRPC status.
    ///
    /// The mapping is the one gRPC publishes for its clients; 200 without a status is [`Code::Unknown`] there too.
    #[must_use]
    pub const fn from_http_status(http_status: u16) -> Code {
        match http_status {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502 | 503 | 504 => Code::Unavailable,
            _ => Code::Unknown,
        }
    }

    /// The name in capitals, `INVALID_ARGUMENT`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_from_0_to_16_is_a_code_and_no_other() {
        for number in 0..17u32 {
            let code = Code::from_number(number).expect("a code");
            assert_eq!(u32::from(code.number()), number);
            assert_eq!(Code::from_header(&number.to_string()), code);
        }
        assert_eq!(Code::from_number(17), None);
    }

    #[test]
    fn a_status_that_is_no_code_is_unknown() {
        for value in ["", "x", "17", "-1", "+0", "0x0", "0, 0", "99999999999999999999"] {
            assert_eq!(Code::from_header(value), Code::Unknown, "{value}");
        }
    }

    #[test]
    fn http_statuses_map_as_grpc_clients_expect() {
        for (http, code) in [
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (415, Code::Unknown),
            (429, Code::Unavailable),
            (500, Code::Unknown),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
        ] {
            assert_eq!(Code::from_http_status(http), code, "{http}");
        }
    }
}
