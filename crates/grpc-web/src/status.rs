//! What an RPC came to: a code, a text for people, and typed details. Depends on [`crate::code`] alone.

use bytes::Bytes;
use prost::Message as _;

use crate::Code;

/// The outcome of an RPC.
///
/// `details` is an encoded `google.rpc.Status` as `grpc-status-details-bin` carries it, or empty. Its code and message
/// repeat those beside it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Status {
    /// The class of the outcome.
    pub code: Code,
    /// A text for people; free to change.
    pub message: String,
    /// An encoded `google.rpc.Status`, or empty when there are no details.
    pub details: Bytes,
}

/// One typed detail of a [`Status`]: a `google.protobuf.Any`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Detail {
    /// `type.googleapis.com/` and the full name of the message.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// `google.rpc.Status`, written here so that this crate stays a leaf.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $code:ident,)*) => {
        impl Status {
            $($(#[$doc])* #[must_use] pub fn $name(message: impl Into<String>) -> Status {
                Status::new(Code::$code, message)
            })*
        }
    };
}

constructors! {
    /// [`Code::Cancelled`] without details.
    cancelled => Cancelled,
    /// [`Code::Unknown`] without details.
    unknown => Unknown,
    /// [`Code::InvalidArgument`] without details.
    invalid_argument => InvalidArgument,
    /// [`Code::DeadlineExceeded`] without details.
    deadline_exceeded => DeadlineExceeded,
    /// [`Code::NotFound`] without details.
    not_found => NotFound,
    /// [`Code::AlreadyExists`] without details.
    already_exists => AlreadyExists,
    /// [`Code::PermissionDenied`] without details.
    permission_denied => PermissionDenied,
    /// [`Code::ResourceExhausted`] without details.
    resource_exhausted => ResourceExhausted,
    /// [`Code::FailedPrecondition`] without details.
    failed_precondition => FailedPrecondition,
    /// [`Code::Aborted`] without details.
    aborted => Aborted,
    /// [`Code::OutOfRange`] without details.
    out_of_range => OutOfRange,
    /// [`Code::Unimplemented`] without details.
    unimplemented => Unimplemented,
    /// [`Code::Internal`] without details.
    internal => Internal,
    /// [`Code::Unavailable`] without details.
    unavailable => Unavailable,
    /// [`Code::DataLoss`] without details.
    data_loss => DataLoss,
    /// [`Code::Unauthenticated`] without details.
    unauthenticated => Unauthenticated,
}

impl Status {
    /// A status without details.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status {
            code,
            message: message.into(),
            details: Bytes::new(),
        }
    }

    /// Success.
    #[must_use]
    pub fn ok() -> Status {
        Status::new(Code::Ok, "")
    }

    /// Whether the RPC succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.code == Code::Ok
    }

    /// This status with one more detail after those it has. Details that do not decode are dropped.
    #[must_use]
    pub fn with_detail(mut self, type_url: impl Into<String>, encoded: impl Into<Bytes>) -> Status {
        let mut details = self.decode_details();
        details.push(Detail {
            type_url: type_url.into(),
            value: encoded.into(),
        });
        let rpc_status = RpcStatus {
            code: i32::from(self.code.number()),
            message: self.message.clone(),
            details,
        };
        self.details = rpc_status.encode_to_vec().into();
        self
    }

    /// The details, in order. Empty when there are none or they do not decode.
    #[must_use]
    pub fn decode_details(&self) -> Vec<Detail> {
        RpcStatus::decode(self.details.clone())
            .map(|status| status.details)
            .unwrap_or_default()
    }

    /// The first detail of a type, encoded.
    #[must_use]
    pub fn detail(&self, type_url: &str) -> Option<Bytes> {
        self.decode_details()
            .into_iter()
            .find(|detail| detail.type_url == type_url)
            .map(|detail| detail.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_keep_their_order_and_repeat_code_and_message() {
        let status = Status::invalid_argument("no")
            .with_detail("t/a", &b"one"[..])
            .with_detail("t/b", &b"two"[..]);
        let decoded = RpcStatus::decode(status.details.clone()).expect("decodes");
        assert_eq!((decoded.code, decoded.message.as_str()), (3, "no"));
        assert_eq!(status.detail("t/a").as_deref(), Some(&b"one"[..]));
        assert_eq!(status.detail("t/b").as_deref(), Some(&b"two"[..]));
        assert_eq!(status.detail("t/c"), None);
    }

    #[test]
    fn details_that_do_not_decode_read_as_none() {
        let status = Status {
            details: Bytes::from_static(&[0xff]),
            ..Status::internal("x")
        };
        assert!(status.decode_details().is_empty());
    }
}
