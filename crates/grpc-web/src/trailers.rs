//! The trailers of a response: the status and what else the server says at the end. Depends on [`crate::status`].

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;

use crate::{Code, Status, percent};

/// The trailer that carries the code.
pub const GRPC_STATUS: &str = "grpc-status";
/// The trailer that carries the message, percent-encoded.
pub const GRPC_MESSAGE: &str = "grpc-message";
/// The trailer that carries the details, base64 of an encoded `google.rpc.Status`.
pub const GRPC_STATUS_DETAILS: &str = "grpc-status-details-bin";

/// The longest `grpc-message` that is written, in bytes as it is encoded; a longer one is cut. HTTP servers and proxies
/// bound a header at 8 KiB or more, and a status they refuse is a status lost.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// The longest details that are written, in bytes before base64; longer ones are left out. With the longest message they
/// fit [`crate::frame::MAX_TRAILER_BYTES`], so that what we write we can read.
pub const MAX_DETAILS_BYTES: usize = 32 * 1024;

/// Writes base64 without padding and reads it with or without, as gRPC asks of binary metadata.
const BINARY_METADATA: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Names and values at the end of a response, names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    entries: Vec<(String, String)>,
}

impl Trailers {
    /// The trailers that carry a status. An empty message and empty details are left out, and the bounds
    /// [`MAX_MESSAGE_BYTES`] and [`MAX_DETAILS_BYTES`] hold: whatever a message quotes, the code arrives.
    #[must_use]
    pub fn from_status(status: &Status) -> Trailers {
        let mut trailers = Trailers::default();
        trailers.push(GRPC_STATUS, status.code.number().to_string());
        if !status.message.is_empty() {
            trailers.push(GRPC_MESSAGE, percent::encode(&status.message, MAX_MESSAGE_BYTES));
        }
        if (1..=MAX_DETAILS_BYTES).contains(&status.details.len()) {
            trailers.push(GRPC_STATUS_DETAILS, BINARY_METADATA.encode(&status.details));
        }
        trailers
    }

    /// Reads what a server sent as header fields; those absent are `None`. No status at all gives no trailers.
    #[must_use]
    pub fn from_headers(status: Option<&str>, message: Option<&str>, details: Option<&str>) -> Trailers {
        let mut trailers = Trailers::default();
        for (name, value) in [
            (GRPC_STATUS, status),
            (GRPC_MESSAGE, message),
            (GRPC_STATUS_DETAILS, details),
        ] {
            if let Some(value) = value {
                trailers.push(name, value);
            }
        }
        trailers
    }

    /// Adds an entry after those there are. Characters a trailer line cannot carry are dropped from name and value,
    /// so that no value can end its line.
    pub fn push(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) {
        let name = name
            .as_ref()
            .chars()
            .filter(|c| c.is_ascii_graphic() && *c != ':');
        let value: String = value
            .as_ref()
            .chars()
            .filter(|c| matches!(c, ' '..='~'))
            .collect();
        self.entries.push((
            name.map(|c| c.to_ascii_lowercase()).collect(),
            value.trim().to_owned(),
        ));
    }

    /// The first value under a name in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries
            .iter()
            .find(|(entry, _)| entry == name)
            .map(|(_, value)| value.as_str())
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The status these trailers carry, or `None` when `grpc-status` is not among them. Details that are not base64
    /// read as none.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        let code = Code::from_header(self.get(GRPC_STATUS)?);
        let message = self.get(GRPC_MESSAGE).map(percent::decode).unwrap_or_default();
        let details = self
            .get(GRPC_STATUS_DETAILS)
            .and_then(|value| BINARY_METADATA.decode(value).ok())
            .map(Bytes::from)
            .unwrap_or_default();
        Some(Status {
            code,
            message,
            details,
        })
    }

    /// Writes the payload of a trailer frame: `name:value` lines without a space after the colon. In this form
    /// Cloudflare's edge translates a response to native gRPC.
    #[must_use]
    pub fn encode(&self) -> String {
        self.entries
            .iter()
            .flat_map(|(name, value)| [name, ":", value, "\r\n"])
            .collect()
    }

    /// Reads the payload of a trailer frame. A line without a name is left out, and bytes of a value that are not
    /// printable ASCII are dropped: the status must be found even beside an entry that is not well formed.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Trailers {
        let mut trailers = Trailers::default();
        for line in payload.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            // A name is taken as it stands or not at all: dropping bytes from it could make a status of it.
            let name = name.trim();
            if !name.is_empty() && name.chars().all(|character| character.is_ascii_graphic()) {
                trailers.push(name, value);
            }
        }
        trailers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_without_a_space_after_the_colon() {
        assert_eq!(Trailers::from_status(&Status::ok()).encode(), "grpc-status:0\r\n");
        let status = Status::invalid_argument("1: é").with_detail("t", &b"x"[..]);
        let text = Trailers::from_status(&status).encode();
        assert!(
            text.starts_with("grpc-status:3\r\ngrpc-message:1: %C3%A9\r\ngrpc-status-details-bin:"),
            "{text}"
        );
        assert!(!text.contains('='), "binary metadata is not padded: {text}");
    }

    #[test]
    fn trailers_of_other_servers_are_read() {
        let trailers = Trailers::decode(b"Grpc-Status: 5\r\ngrpc-message:  a%20b \nX-Y:z:w\nno colon\r\n");
        assert_eq!(trailers.status(), Some(Status::not_found("a b")));
        assert_eq!(trailers.get("x-y"), Some("z:w"));
        assert_eq!(trailers.iter().count(), 3);
    }

    #[test]
    fn padded_details_are_read_too() {
        let status = Status::internal("m").with_detail("t", &b"xy"[..]);
        let mut trailers = Trailers::from_status(&status);
        let text = trailers.get(GRPC_STATUS_DETAILS).expect("details").to_owned();
        let padded = format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4));
        trailers.entries.retain(|(name, _)| name != GRPC_STATUS_DETAILS);
        trailers.push(GRPC_STATUS_DETAILS, padded);
        assert_eq!(trailers.status(), Some(status));
    }

    #[test]
    fn a_value_cannot_end_its_line() {
        let mut trailers = Trailers::default();
        trailers.push("a\r\nb:", "x\r\ngrpc-status:0");
        assert_eq!(trailers.encode(), "ab:xgrpc-status:0\r\n");
    }

    #[test]
    fn a_name_that_is_none_becomes_no_other_name() {
        let trailers = Trailers::decode(
            b"grpc- status:0\r\ngrpc-\x01status:0\r\n:0\r\n\xffgrpc-status:0\r\ngrpc-status:5\r\n",
        );
        assert_eq!(trailers.iter().collect::<Vec<_>>(), [("grpc-status", "5")]);
    }

    #[test]
    fn a_status_of_any_length_is_written_so_that_it_can_be_read() {
        for (message, details) in [("é".repeat(100_000), MAX_DETAILS_BYTES), ("x".repeat(100_000), 1)] {
            let status = Status {
                details: vec![7; details].into(),
                ..Status::aborted(message.clone())
            };
            let payload = Trailers::from_status(&status).encode();
            assert!(payload.len() <= crate::frame::MAX_TRAILER_BYTES);
            let read = Trailers::decode(payload.as_bytes()).status().expect("a status");
            assert_eq!((read.code, read.details), (status.code, status.details));
            assert!(message.starts_with(&read.message) && read.message.len() > 1000);
        }
        let status = Status {
            details: vec![7; MAX_DETAILS_BYTES + 1].into(),
            ..Status::aborted("moved")
        };
        let read = Trailers::from_status(&status).status().expect("a status");
        assert_eq!(read, Status::aborted("moved"));
    }

    #[test]
    fn trailers_without_a_status_have_none() {
        assert_eq!(Trailers::decode(b"a:b\r\n").status(), None);
        assert_eq!(Trailers::from_headers(None, Some("m"), None).status(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_status_survives(number in 0u32..17, message in ".*", detail in proptest::collection::vec(0u8.., 0..40)) {
            let mut status = Status::new(Code::from_number(number).expect("a code"), message);
            if !detail.is_empty() {
                status = status.with_detail("type.googleapis.com/x", detail);
            }
            let read = Trailers::decode(Trailers::from_status(&status).encode().as_bytes());
            proptest::prop_assert_eq!(read.status(), Some(status));
        }

        #[test]
        fn any_payload_is_read(payload in proptest::collection::vec(0u8.., 0..200)) {
            let _ = Trailers::decode(&payload).status();
        }
    }
}
