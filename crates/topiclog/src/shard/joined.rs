//! A page as one SQL value. A row that crosses into the object costs several times what SQLite takes to find it, so a page
//! that fits one value crosses as one: SQLite joins its rows, and they are cut apart here without being copied again.
//!
//! Each row is a head of hexadecimal numbers (place of its topic in the list that was asked for, sequence id, length of the
//! body, whether it is a commit or proposal), the two times and the hash as they are stored, and the body.

use bytes::Bytes;
use conclave_proto::{
    conclave::internal::v1::{StoredEnvelope, TopicPosition},
    xmtp::backend::v1 as wire,
};
use conclave_sql::SqlError;

/// The joined value over the columns of a page. SQLite joins text, and keeps every byte of it.
macro_rules! joined_rows {
    () => {
        "CAST(group_concat(\
         printf('%08x%016x%08x%d', place, seq, length(body), is_commit_or_proposal) \
         || server_ns || expiry_ns || hash || body, '') AS BLOB)"
    };
}
pub(super) use joined_rows;

const PLACE_DIGITS: usize = 8;
const ID_DIGITS: usize = 16;
const LENGTH_DIGITS: usize = 8;
const TIME_BYTES: usize = 8;
const HASH_BYTES: usize = 32;

/// What a row has besides its body, in bytes.
pub(super) const HEAD_BYTES: u64 =
    (PLACE_DIGITS + ID_DIGITS + LENGTH_DIGITS + 1 + 2 * TIME_BYTES + HASH_BYTES) as u64;

/// The longest joined value, in bytes: a Durable Object carries 2 MB.
pub(super) const BYTES_MAX: u64 = 1_900_000;

/// Cuts a joined value apart.
///
/// # Errors
/// It is not made as described above.
pub(super) fn cut(mut joined: Bytes, asked: &[TopicPosition]) -> Result<Vec<StoredEnvelope>, SqlError> {
    let mut envelopes = Vec::new();
    while !joined.is_empty() {
        let place = usize::try_from(number(&mut joined, PLACE_DIGITS)?).unwrap_or(usize::MAX);
        let topic = asked.get(place).ok_or_else(torn)?.topic.clone();
        let sequence_id = number(&mut joined, ID_DIGITS)?;
        let length = usize::try_from(number(&mut joined, LENGTH_DIGITS)?).unwrap_or(usize::MAX);
        let is_commit_or_proposal = number(&mut joined, 1)? != 0;
        let server_ns = time(&mut joined)?;
        let expiry_ns = time(&mut joined)?;
        let hash = take(&mut joined, HASH_BYTES)?;
        envelopes.push(StoredEnvelope {
            meta: Some(wire::EnvelopeMeta {
                cursor: Some(wire::Cursor { sequence_id }),
                server_ns,
                message_hash: Some(wire::MessageHash {
                    hash: Some(wire::message_hash::Hash::Sha256(hash)),
                }),
                topic: Some(wire::Topic { topic }),
                expiry_ns,
                is_commit_or_proposal,
            }),
            envelope: take(&mut joined, length)?,
        });
    }
    Ok(envelopes)
}

fn number(joined: &mut Bytes, digits: usize) -> Result<u64, SqlError> {
    let digits = take(joined, digits)?;
    let text = std::str::from_utf8(&digits).map_err(|_| torn())?;
    u64::from_str_radix(text, 16).map_err(|_| torn())
}

fn time(joined: &mut Bytes) -> Result<u64, SqlError> {
    let bytes = take(joined, TIME_BYTES)?;
    bytes[..].try_into().map(u64::from_be_bytes).map_err(|_| torn())
}

fn take(joined: &mut Bytes, length: usize) -> Result<Bytes, SqlError> {
    if joined.len() < length {
        return Err(torn());
    }
    Ok(joined.split_to(length))
}

fn torn() -> SqlError {
    SqlError::Shape {
        column: 0,
        expected: "the rows of a page, joined",
        found: "other bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_whole_rows_are_refused() {
        let asked = [TopicPosition::default()];
        let row = [
            &b"00000000000000000000000700000003"[..],
            b"1",
            &5_u64.to_be_bytes(),
            &[0; 8],
            &[9; 32],
            b"abc",
        ]
        .concat();
        assert_eq!(row.len() as u64, HEAD_BYTES + 3);
        let whole = cut(row.clone().into(), &asked).expect("a row");
        assert_eq!(whole[0].envelope, b"abc"[..]);
        assert!(
            whole[0]
                .meta
                .as_ref()
                .is_some_and(|meta| meta.is_commit_or_proposal)
        );
        assert!(
            cut(row.clone().into(), &[]).is_err(),
            "a topic that nobody asked for"
        );
        for length in 1..row.len() {
            assert!(
                cut(row[..length].to_vec().into(), &asked).is_err(),
                "cut at {length}"
            );
        }
    }
}
