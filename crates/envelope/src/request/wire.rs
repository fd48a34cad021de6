//! Looks into an encoded request before it is decoded. Depends on prost alone.
//!
//! Decoded, an empty entry of two bytes takes thirty to a hundred times as much memory, so a request within its byte
//! budget could be one the isolate cannot hold. Entries are therefore counted, or decoded one by one, first.

use bytes::{Buf as _, Bytes};
use prost::{
    DecodeError,
    encoding::{self, DecodeContext},
};

/// `ClientEnvelope.identity_update`.
const IDENTITY_UPDATE_FIELD_NUMBER: u32 = 4;
/// The other fields of `ClientEnvelope.payload`.
const OTHER_PAYLOAD_FIELD_NUMBERS: [u32; 4] = [1, 2, 3, 5];
/// `IdentityUpdate.actions`.
const ACTIONS_FIELD_NUMBER: u32 = 1;

/// The entries of a repeated message field, still encoded, in order. Other fields are skipped.
///
/// Ends after the first error, which is one of the message around the entries.
#[derive(Debug)]
pub(super) struct Entries {
    rest: Bytes,
    field_number: u32,
}

impl Entries {
    /// The entries of one field of an encoded message.
    pub(super) fn new(encoded: Bytes, field_number: u32) -> Entries {
        Entries {
            rest: encoded,
            field_number,
        }
    }

    fn step(&mut self) -> Result<Option<Bytes>, DecodeError> {
        while self.rest.has_remaining() {
            let (field_number, wire_type) = encoding::decode_key(&mut self.rest)?;
            if field_number == self.field_number {
                let mut entry = Bytes::new();
                encoding::bytes::merge(wire_type, &mut entry, &mut self.rest, DecodeContext::default())?;
                return Ok(Some(entry));
            }
            encoding::skip_field(wire_type, field_number, &mut self.rest, DecodeContext::default())?;
        }
        Ok(None)
    }
}

impl Iterator for Entries {
    type Item = Result<Bytes, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.rest.clear();
        }
        step.transpose()
    }
}

/// How many entries an encoded message has in one field, up to where it stops being a message.
pub(super) fn count_entries(encoded: &Bytes, field_number: u32) -> usize {
    Entries::new(encoded.clone(), field_number)
        .filter(Result::is_ok)
        .count()
}

/// How many actions the identity update of an encoded envelope has, up to where it stops being a message. 0 for an
/// envelope of another kind.
pub(super) fn count_actions(envelope: &Bytes) -> usize {
    let (mut rest, mut count) = (envelope.clone(), 0);
    while let Ok((field_number, wire_type)) = encoding::decode_key(&mut rest) {
        let mut field = Bytes::new();
        let read = match field_number {
            // Of several payloads of one kind the fields add up, and one of another kind replaces them.
            IDENTITY_UPDATE_FIELD_NUMBER => {
                encoding::bytes::merge(wire_type, &mut field, &mut rest, DecodeContext::default())
                    .inspect(|()| count += count_entries(&field, ACTIONS_FIELD_NUMBER))
            }
            _ => encoding::skip_field(wire_type, field_number, &mut rest, DecodeContext::default()).inspect(
                |()| {
                    if OTHER_PAYLOAD_FIELD_NUMBERS.contains(&field_number) {
                        count = 0;
                    }
                },
            ),
        };
        if read.is_err() {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use conclave_proto::xmtp::backend::v1::{
        ClientEnvelope, Cursor, QueryRequest, TopicQuery, client_envelope::Payload,
    };
    use prost::Message as _;

    use super::*;

    proptest::proptest! {
        #[test]
        fn as_many_entries_are_counted_as_are_decoded(bytes in proptest::collection::vec(0u8..32, 0..40)) {
            if let Ok(request) = QueryRequest::decode(&bytes[..]) {
                proptest::prop_assert_eq!(count_entries(&bytes.into(), 1), request.queries.len());
            }
        }

        #[test]
        fn entries_come_one_by_one_as_they_were_encoded(cursors in proptest::collection::vec(0u64.., 0..6)) {
            let queries: Vec<_> = cursors
                .iter()
                .map(|cursor| TopicQuery { topic: None, cursor: Some(Cursor { sequence_id: *cursor }) })
                .collect();
            let request = QueryRequest { queries: queries.clone(), limit: 7 };
            let entries = Entries::new(request.encode_to_vec().into(), 1);
            let decoded: Vec<_> = entries.map(|entry| TopicQuery::decode(entry.expect("whole")).expect("decodes")).collect();
            proptest::prop_assert_eq!(decoded, queries);
        }
    }

    proptest::proptest! {
        #[test]
        fn as_many_actions_are_counted_as_are_decoded(
            parts in proptest::collection::vec(proptest::sample::select(vec![
                // Two actions, one and none; a group message, a key package and a field nobody knows.
                &[0x22, 4, 0x0a, 0, 0x0a, 0][..], &[0x22, 4, 0x0a, 0, 0x10, 7], &[0x22, 0],
                &[0x0a, 0], &[0x1a, 0], &[0x32, 1, 9],
            ]), 0..8),
        ) {
            let bytes = Bytes::from(parts.concat());
            let decoded = match ClientEnvelope::decode(bytes.clone()).expect("decodes").payload {
                Some(Payload::IdentityUpdate(update)) => update.actions.len(),
                _ => 0,
            };
            proptest::prop_assert_eq!(count_actions(&bytes), decoded);
        }

        #[test]
        fn any_bytes_have_a_number_of_actions(bytes in proptest::collection::vec(0u8..48, 0..60)) {
            let _ = count_actions(&bytes.into());
        }
    }

    #[test]
    fn a_broken_message_ends_its_entries() {
        let mut entries = Entries::new(Bytes::from_static(&[0x0a, 0, 0x0a, 9]), 1);
        assert!(matches!(entries.next(), Some(Ok(_))));
        assert!(matches!(entries.next(), Some(Err(_))));
        assert!(entries.next().is_none());
    }
}
