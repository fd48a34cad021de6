//! SQL parameters and rows as bytes, so that a statement is one crossing into JavaScript and back. The other half is
//! `edge/js/sql.js`. Pure.
//!
//! A value is a kind byte, then nothing (null), a double, or a length and bytes (text, blob), all little-endian. Rows stand
//! behind the number of rows written, a double, and the number of columns.

use conclave_sql::{Row, SqlError, Value};

const NULL: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const BLOB: u8 = 3;

/// The parameters, packed.
pub(crate) fn pack(parameters: &[Value]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(parameters.iter().map(packed_bytes).sum());
    for value in parameters {
        match value {
            Value::Null => packed.push(NULL),
            Value::Integer(number) => {
                packed.push(NUMBER);
                #[allow(clippy::cast_precision_loss, reason = "an `Integer` is exact in a f64")]
                packed.extend((number.get() as f64).to_le_bytes());
            }
            Value::Text(text) => push_bytes(&mut packed, TEXT, text.as_bytes()),
            Value::Blob(bytes) => push_bytes(&mut packed, BLOB, bytes),
        }
    }
    packed
}

fn packed_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 1,
        Value::Integer(_) => 9,
        Value::Text(text) => 5 + text.len(),
        Value::Blob(bytes) => 5 + bytes.len(),
    }
}

fn push_bytes(packed: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    packed.push(kind);
    // A value has at most 2 MB.
    packed.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    packed.extend_from_slice(bytes);
}

/// The rows of a statement, and how many rows it wrote.
///
/// # Errors
/// What is no SQL value, or a number that is not whole.
pub(crate) fn unpack(packed: &[u8]) -> Result<(u64, Vec<Row>), SqlError> {
    let mut left = packed;
    let rows_written = f64::from_le_bytes(take(&mut left)?);
    let columns = usize::try_from(u32::from_le_bytes(take(&mut left)?)).unwrap_or(usize::MAX);
    let mut rows = Vec::new();
    while !left.is_empty() {
        let row = (0..columns.max(1)).map(|column| take_value(&mut left, column));
        rows.push(Row::new(row.collect::<Result<_, _>>()?));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of rows"
    )]
    Ok((rows_written as u64, rows))
}

fn take_value(left: &mut &[u8], column: usize) -> Result<Value, SqlError> {
    let [kind] = take(left)?;
    Ok(match kind {
        NULL => Value::Null,
        NUMBER => whole(f64::from_le_bytes(take(left)?), column)?,
        TEXT => Value::Text(String::from_utf8_lossy(take_bytes(left)?).into_owned()),
        BLOB => Value::Blob(take_bytes(left)?.to_vec()),
        _ => return Err(torn()),
    })
}

fn whole(number: f64, column: usize) -> Result<Value, SqlError> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the fraction is checked, and Value::integer checks the range"
    )]
    match number as i128 {
        #[allow(
            clippy::cast_precision_loss,
            clippy::float_cmp,
            reason = "exactness is what is asked"
        )]
        whole if whole as f64 == number => Value::integer(whole),
        _ => Err(SqlError::Shape {
            column,
            expected: "a whole number",
            found: "a fraction",
        }),
    }
}

fn take_bytes<'a>(left: &mut &'a [u8]) -> Result<&'a [u8], SqlError> {
    let length = usize::try_from(u32::from_le_bytes(take(left)?)).unwrap_or(usize::MAX);
    let (bytes, rest) = left.split_at_checked(length).ok_or_else(torn)?;
    *left = rest;
    Ok(bytes)
}

fn take<const N: usize>(left: &mut &[u8]) -> Result<[u8; N], SqlError> {
    let (bytes, rest) = left.split_first_chunk::<N>().ok_or_else(torn)?;
    *left = rest;
    Ok(*bytes)
}

fn torn() -> SqlError {
    SqlError::Database {
        message: "the rows of a statement did not arrive whole".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed_rows(columns: u32, values: &[Value]) -> Vec<u8> {
        let head = 7.0_f64.to_le_bytes().into_iter().chain(columns.to_le_bytes());
        head.chain(pack(values)).collect()
    }

    fn two_rows() -> Vec<Value> {
        vec![
            Value::Null,
            Value::integer(-5).expect("a small number"),
            Value::from("ä"),
            Value::from(&b"\x00\xff"[..]),
            Value::from(""),
            Value::from(vec![1; 300]),
        ]
    }

    #[test]
    fn values_survive_the_crossing_row_by_row() {
        let values = two_rows();
        let (written, rows) = unpack(&packed_rows(3, &values)).expect("rows");
        assert_eq!(written, 7);
        assert_eq!(
            rows,
            [Row::new(values[..3].to_vec()), Row::new(values[3..].to_vec())]
        );
        assert_eq!(unpack(&packed_rows(0, &[])), Ok((7, Vec::new())));
    }

    #[test]
    fn rows_that_are_cut_short_are_refused_wherever_they_are_cut() {
        let packed = packed_rows(6, &two_rows());
        let whole_heads = [packed.len(), 12];
        for length in (0..packed.len()).filter(|length| !whole_heads.contains(length)) {
            assert!(unpack(&packed[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_number_that_is_not_whole_or_not_exact_is_refused() {
        for number in [0.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_992.0] {
            let mut packed = packed_rows(1, &[]);
            packed.push(NUMBER);
            packed.extend(number.to_le_bytes());
            assert!(unpack(&packed).is_err(), "{number}");
        }
    }
}
