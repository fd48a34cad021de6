//! How objects answer calls: an encoded `conclave.internal.v1.Answer`, whose application errors are data. Depends on
//! nothing else here.

use std::ops::Range;

use bytes::Bytes;
use conclave_grpc_web::{Code, Status};
use conclave_proto::conclave::internal::v1::{Answer, Failure, answer::Outcome};
use prost::{
    Message,
    encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint},
};

/// What a call to an object came to, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<R = Bytes> {
    /// The encoded response, or the application's error.
    pub result: Result<R, Status>,
    /// The Router instance the object last heard of, if any.
    pub router_instance: Option<String>,
}

/// A response inside its answer, encoded once: a page may be as long as the transport carries, and an object's memory
/// does not hold many copies of that.
#[derive(Debug)]
pub(crate) struct Encoded(Vec<u8>);

/// How many bytes of an answer say where its response is, at most: a key and a length.
pub const HEAD_BYTES: usize = 1 + 10;

/// The field of an answer that carries the response.
const RESPONSE_FIELD: u32 = 1;

impl Encoded {
    pub(crate) fn of(response: &impl Message) -> Self {
        let length = response.encoded_len();
        let mut bytes = Vec::with_capacity(length + 64);
        encode_key(RESPONSE_FIELD, WireType::LengthDelimited, &mut bytes);
        encode_varint(length as u64, &mut bytes);
        response.encode_raw(&mut bytes);
        Self(bytes)
    }
}

/// Completes the answer of a method.
pub(crate) fn finish(result: Result<Encoded, Status>, router_instance: Option<&str>) -> Vec<u8> {
    match result {
        Err(status) => encode(Err(status), router_instance),
        Ok(Encoded(mut bytes)) => {
            let rest = Answer {
                outcome: None,
                router_instance: router_instance.unwrap_or_default().to_owned(),
            };
            rest.encode_raw(&mut bytes);
            bytes
        }
    }
}

/// Encodes what a method came to.
///
/// For the Registry's object, which knows no Router instance and passes `None`.
#[must_use]
pub fn encode(result: Result<Vec<u8>, Status>, router_instance: Option<&str>) -> Vec<u8> {
    let outcome = match result {
        Ok(response) => Outcome::Response(response.into()),
        Err(status) => Outcome::Failure(to_failure(status)),
    };
    Answer {
        outcome: Some(outcome),
        router_instance: router_instance.unwrap_or_default().to_owned(),
    }
    .encode_to_vec()
}

/// Decodes what another object answered. Bytes that are no answer are an INTERNAL failure.
#[must_use]
pub fn decode(bytes: Vec<u8>) -> Answered {
    let Ok(Answer {
        outcome: Some(outcome),
        router_instance,
    }) = Answer::decode(Bytes::from(bytes))
    else {
        return Answered {
            result: Err(Status::internal("an object gave an answer that does not decode")),
            router_instance: None,
        };
    };
    Answered {
        result: match outcome {
            Outcome::Response(response) => Ok(response),
            Outcome::Failure(failure) => Err(from_failure(failure)),
        },
        router_instance: Some(router_instance).filter(|instance| !instance.is_empty()),
    }
}

/// Where the response lies in an answer that is `length` bytes long and begins with `head`, if it has one and that is its
/// first field, as [`encode`] writes it. `head` is at least [`HEAD_BYTES`] long, unless the answer is shorter.
#[must_use]
pub fn response_range(head: &[u8], length: usize) -> Option<Range<usize>> {
    let mut left = head;
    let (RESPONSE_FIELD, WireType::LengthDelimited) = decode_key(&mut left).ok()? else {
        return None;
    };
    let response_length = usize::try_from(decode_varint(&mut left).ok()?).ok()?;
    let begin = head.len() - left.len();
    let end = begin.checked_add(response_length).filter(|end| *end <= length)?;
    Some(begin..end)
}

/// Decodes what is left of an answer without its response.
#[must_use]
pub fn decode_around<R>(response: R, rest: &[u8]) -> Answered<R> {
    match Answer::decode(rest) {
        Ok(Answer {
            outcome: None,
            router_instance,
        }) => Answered {
            result: Ok(response),
            router_instance: Some(router_instance).filter(|instance| !instance.is_empty()),
        },
        _ => Answered {
            result: Err(Status::internal("an object gave an answer that does not decode")),
            router_instance: None,
        },
    }
}

/// A status as the wire between objects carries it.
#[must_use]
pub fn to_failure(status: Status) -> Failure {
    Failure {
        code: u32::from(status.code.number()),
        message: status.message,
        details: status.details,
    }
}

/// The status a failure carries; a code that is none, or is success, is UNKNOWN.
#[must_use]
pub fn from_failure(failure: Failure) -> Status {
    let code = match Code::from_number(failure.code) {
        None | Some(Code::Ok) => Code::Unknown,
        Some(code) => code,
    };
    Status {
        code,
        message: failure.message,
        details: failure.details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_way_between_objects() {
        let failure = Status::aborted("moved").with_detail("t/x", &b"detail"[..]);
        for result in [Ok(b"response".to_vec()), Err(failure)] {
            let decoded = decode(encode(result.clone(), Some("rti_x")));
            assert_eq!(decoded.result.map(|bytes| bytes.to_vec()), result);
            assert_eq!(decoded.router_instance.as_deref(), Some("rti_x"));
        }
    }

    #[test]
    fn a_response_encoded_in_place_is_the_same_answer() {
        let status = Answer {
            outcome: None,
            router_instance: "as good as any message".repeat(20),
        };
        for response in [Answer::default(), status] {
            let plain = encode(Ok(response.encode_to_vec()), Some("rti_x"));
            assert_eq!(finish(Ok(Encoded::of(&response)), Some("rti_x")), plain);
        }
        assert_eq!(
            finish(Err(Status::internal("x")), None),
            encode(Err(Status::internal("x")), None)
        );
    }

    #[test]
    fn a_response_is_found_in_its_answer_without_decoding_it() {
        for response in [Vec::new(), b"response".to_vec(), vec![7; 70_000]] {
            for instance in [None, Some("rti_x")] {
                let answer = encode(Ok(response.clone()), instance);
                let head = &answer[..HEAD_BYTES.min(answer.len())];
                let range = response_range(head, answer.len()).expect("a response");
                assert_eq!(&answer[range.clone()], response);
                let found = decode_around(
                    Bytes::copy_from_slice(&answer[range.clone()]),
                    &answer[range.end..],
                );
                assert_eq!(found, decode(answer.clone()));
                assert_eq!(response_range(head, range.end - 1), None, "cut short");
            }
        }
        let failure = encode(Err(Status::internal("x")), Some("rti_x"));
        assert_eq!(response_range(&failure[..HEAD_BYTES], failure.len()), None);
        assert_eq!(response_range(&[], 0), None);
        assert!(decode_around((), &[0xff]).result.is_err());
    }

    #[test]
    fn bytes_that_are_no_answer_are_an_internal_failure() {
        for bytes in [vec![], vec![0xff], vec![0x0a]] {
            assert_eq!(
                decode(bytes).result.map_err(|status| status.code),
                Err(Code::Internal)
            );
        }
    }
}
