// One SQL statement in one crossing: its parameters come packed into bytes, and its rows go back the same way. A page of a
// thousand rows would otherwise cross some ten thousand times. Imported by edge/src; the other half is edge/src/packed.rs.

const NULL = 0;
const NUMBER = 1;
const TEXT = 2;
const BLOB = 3;

const NUMBER_BYTES = 8;
const LENGTH_BYTES = 4;

/** Rows up to this many bytes are packed into the same place each time. */
const SCRATCH_BYTES = 256 * 1024;

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const scratch = new Uint8Array(SCRATCH_BYTES);

/** The parameters. Those that are bytes stay where they are: the statement has run before anything else does. */
function unpack(packed) {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const values = [];
  for (let at = 0; at < packed.length; ) {
    const kind = packed[at];
    at += 1;
    if (kind === NULL) {
      values.push(null);
    } else if (kind === NUMBER) {
      values.push(view.getFloat64(at, true));
      at += NUMBER_BYTES;
    } else {
      const begin = at + LENGTH_BYTES;
      at = begin + view.getUint32(at, true);
      const bytes = packed.subarray(begin, at);
      values.push(kind === TEXT ? decoder.decode(bytes) : bytes);
    }
  }
  return values;
}

function packedBytes(value) {
  if (value === null) return 1;
  if (typeof value === "number") return 1 + NUMBER_BYTES;
  return 1 + LENGTH_BYTES + (value instanceof ArrayBuffer ? value.byteLength : 3 * value.length);
}

/** Packs rows behind the number of rows written and the number of columns. */
function pack(rowsWritten, rows) {
  const columns = rows.length > 0 ? rows[0].length : 0;
  let length = NUMBER_BYTES + LENGTH_BYTES;
  for (const row of rows) for (const value of row) length += packedBytes(value);
  const bytes = length <= SCRATCH_BYTES ? scratch : new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setFloat64(0, rowsWritten, true);
  view.setUint32(NUMBER_BYTES, columns, true);
  let at = NUMBER_BYTES + LENGTH_BYTES;
  for (const row of rows) {
    for (const value of row) {
      if (value === null) {
        bytes[at] = NULL;
        at += 1;
      } else if (typeof value === "number") {
        bytes[at] = NUMBER;
        view.setFloat64(at + 1, value, true);
        at += 1 + NUMBER_BYTES;
      } else {
        const begin = at + 1 + LENGTH_BYTES;
        let written;
        if (value instanceof ArrayBuffer) {
          bytes[at] = BLOB;
          written = value.byteLength;
          bytes.set(new Uint8Array(value), begin);
        } else {
          bytes[at] = TEXT;
          ({ written } = encoder.encodeInto(value, bytes.subarray(begin)));
        }
        view.setUint32(at + 1, written, true);
        at = begin + written;
      }
    }
  }
  return bytes.subarray(0, at);
}

/** Runs a statement and returns its rows, packed. They are to be taken before the next statement runs. */
export function queryRows(sql, statement, parameters) {
  const cursor = sql.exec(statement, ...unpack(parameters));
  const rows = cursor.raw().toArray();
  return pack(cursor.rowsWritten, rows);
}

/** Runs a statement and returns its only value, which is bytes, as it is. */
export function queryBlob(sql, statement, parameters) {
  const [row] = sql.exec(statement, ...unpack(parameters)).raw().toArray();
  const value = row?.[0];
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

/** Runs a statement whose rows do not matter, and returns the number of rows written. */
export function executeStatement(sql, statement, parameters) {
  const cursor = sql.exec(statement, ...unpack(parameters));
  // A statement runs only as far as its rows are taken.
  if (cursor.columnNames.length > 0) cursor.toArray();
  return cursor.rowsWritten;
}
