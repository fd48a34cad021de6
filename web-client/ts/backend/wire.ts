/**
 * The wire format of Protocol Buffers, as far as the backend's messages use it: tables say what a message holds, and two functions
 * write and read it. Pure, and total: any bytes give a message or a {@link WireError}. Fields that no table names are
 * skipped. `tests/clients/client_wire.test.mjs` holds every table against the `.proto` files.
 */

/** Bytes that are no message. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/** A single value. `hex` are bytes as lowercase hexadecimal text, `safe` a uint64 that a number can carry. */
export type Scalar = "uint32" | "uint64" | "safe" | "bool" | "string" | "bytes" | "hex";

/** An enum by the names of its numbers. A number without a name stays a number. */
export interface Enum {
  readonly names: readonly (string | undefined)[];
}

/** A message that holds one value and is left out of what a caller sees. */
export interface Only {
  readonly only: Scalar;
}

/** What a field holds. */
export type Kind = Scalar | Enum | Only | Table | Union;

/** A field: its number, what it holds, and whether its absence says something, it is there many times, or it has to be there. */
export type Field = readonly [number: number, kind: Kind, rule?: "optional" | "repeated" | "required"];

/** The fields of a message by the properties they become. */
export interface Table {
  readonly fields: Readonly<Record<string, Field>>;
}

/**
 * A message that is one of several, told apart by `kind`. The path are the field numbers down to the one that is meant; a
 * value that is no message becomes the property `as`.
 */
export interface Union {
  readonly cases: Readonly<Record<string, Case>>;
}

export interface Case {
  readonly path: readonly number[];
  readonly holds: Table | Union | Scalar;
  readonly as?: string;
}

type Value = Record<string, unknown>;

const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;
const UTF8 = { write: new TextEncoder(), read: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }) };

const isUnion = (kind: object): kind is Union => "cases" in kind;

/** The encoded bytes of a message: fields in the order of the table, defaults left out. */
export function encode(kind: Table | Union, value: unknown): Uint8Array {
  const out = new Writer();
  writeMessage(out, kind, value as Value);
  return out.bytes();
}

/**
 * The message that bytes encode.
 *
 * @throws {@link WireError}
 */
export function decode(kind: Table | Union, bytes: Uint8Array): unknown {
  return isUnion(kind) ? readUnion(kind, bytes) : readTable(kind, bytes);
}

function writeMessage(out: Writer, kind: Table | Union, value: Value): void {
  if (!isUnion(kind)) {
    for (const [property, [number, holds, rule]] of Object.entries(kind.fields)) {
      const held = value[property];
      if (held === undefined || held === null) continue;
      for (const one of rule === "repeated" ? (held as unknown[]) : [held]) writeField(out, number, holds, one, rule !== undefined);
    }
    return;
  }
  const name = value["kind"] as string;
  const found = Object.hasOwn(kind.cases, name) ? kind.cases[name] : undefined;
  if (found === undefined) throw new TypeError(`there is no kind "${name}"`);
  const [number = 0, ...rest] = found.path;
  const inner = new Writer();
  if (typeof found.holds === "string") return writeField(out, number, found.holds, value[found.as ?? "value"], true);
  if (rest.length > 0) writeMessage(inner, { cases: { [name]: { ...found, path: rest } } }, value);
  else writeMessage(inner, found.holds, value);
  out.delimited(number, inner.bytes());
}

/** Writes a field, where it says more than its absence does. */
function writeField(out: Writer, number: number, kind: Kind, value: unknown, always: boolean): void {
  switch (kind) {
    case "bool":
      if (value === true || always) out.varint(number, value === true ? 1n : 0n);
      return;
    case "string":
    case "bytes":
    case "hex": {
      const bytes = bytesOf(kind, value);
      if (bytes.length > 0 || always) out.delimited(number, bytes);
      return;
    }
    case "uint32":
    case "uint64":
    case "safe": {
      const amount = BigInt(value as number | bigint);
      if (amount !== BigInt.asUintN(kind === "uint32" ? 32 : 64, amount)) throw new TypeError(`${amount} is not a ${kind}`);
      if (amount !== 0n || always) out.varint(number, amount);
      return;
    }
  }
  if ("names" in kind) {
    const amount = typeof value === "number" ? value : kind.names.indexOf(value as string);
    if (amount < 0) throw new TypeError(`there is no "${String(value)}"`);
    return writeField(out, number, "uint32", amount, always);
  }
  const inner = new Writer();
  if ("only" in kind) {
    writeField(inner, 1, kind.only, value, false);
    if (inner.length === 0 && !always) return;
  } else writeMessage(inner, kind, value as Value);
  out.delimited(number, inner.bytes());
}

function bytesOf(kind: "string" | "bytes" | "hex", value: unknown): Uint8Array {
  if (kind === "bytes") {
    if (value instanceof Uint8Array) return value;
    throw new TypeError("bytes are a Uint8Array");
  }
  if (typeof value !== "string") throw new TypeError("a text is a string");
  return kind === "string" ? UTF8.write.encode(value) : bytesOfHex(value);
}

/** The bytes of an even number of hexadecimal digits. */
export function bytesOfHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/** Bytes as lowercase hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function readTable(table: Table, bytes: Uint8Array): Value {
  const value: Value = {};
  const byNumber = new Map<number, readonly [string, Field]>();
  for (const [property, field] of Object.entries(table.fields)) {
    byNumber.set(field[0], [property, field]);
    const absent = field[2] === undefined ? absentOf(field[1]) : field[2] === "repeated" ? [] : undefined;
    if (absent !== undefined) value[property] = absent;
  }
  for (const entry of entries(bytes)) {
    const [property, field] = byNumber.get(entry.number) ?? [];
    if (property === undefined || field === undefined) continue;
    const [, kind, rule] = field;
    if (rule !== "repeated") value[property] = readValue(kind, entry);
    // One of several that this release does not know must not be overlooked.
    else (value[property] as unknown[]).push(readValue(kind, entry) ?? { kind: "unknown" });
  }
  for (const [property, [number, , rule]] of Object.entries(table.fields)) {
    if (rule === "required" && value[property] === undefined) throw new WireError(`field ${number} is missing`);
  }
  return value;
}

function readUnion(union: Union, bytes: Uint8Array): Value | undefined {
  let value: Value | undefined;
  for (const entry of entries(bytes)) {
    const cases = Object.entries(union.cases).filter(([, { path }]) => path[0] === entry.number);
    const [first] = cases;
    if (first === undefined) continue;
    const [name, { path, holds, as = "value" }] = first;
    if (path.length > 1) {
      // Only the rest of each path counts inside.
      const inside = cases.map(([name, held]) => [name, { ...held, path: held.path.slice(1) }] as const);
      value = readUnion({ cases: Object.fromEntries(inside) }, delimitedOf(entry));
    } else if (typeof holds === "string") value = { kind: name, [as]: readValue(holds, entry) };
    else value = { kind: name, ...(decode(holds, delimitedOf(entry)) as Value | undefined) };
  }
  return value;
}

/** What a field that is absent says; `undefined` for messages. */
function absentOf(kind: Kind): unknown {
  if (typeof kind === "object") return "only" in kind ? absentOf(kind.only) : "names" in kind ? nameOf(kind, 0) : undefined;
  if (kind === "bool") return false;
  if (kind === "uint64") return 0n;
  if (kind === "bytes") return new Uint8Array();
  return kind === "string" || kind === "hex" ? "" : 0;
}

const nameOf = ({ names }: Enum, number: number): string | number => names[number] ?? number;

function readValue(kind: Kind, entry: Entry): unknown {
  if (typeof kind === "object") {
    if ("names" in kind) return nameOf(kind, Number(BigInt.asIntN(32, varintOf(entry))));
    if ("only" in kind) return readTable({ fields: { only: [1, kind.only] } }, delimitedOf(entry))["only"];
    return decode(kind, delimitedOf(entry));
  }
  switch (kind) {
    case "bool":
      return varintOf(entry) !== 0n;
    case "uint32":
      return Number(BigInt.asUintN(32, varintOf(entry)));
    case "uint64":
      return varintOf(entry);
    case "safe": {
      const number = Number(varintOf(entry));
      if (!Number.isSafeInteger(number)) throw new WireError("a number is greater than 2^53 - 1");
      return number;
    }
    case "bytes":
      return delimitedOf(entry).slice();
    case "hex":
      return hexOf(delimitedOf(entry));
    case "string":
      try {
        return UTF8.read.decode(delimitedOf(entry));
      } catch (cause) {
        throw new WireError("a text is not UTF-8", { cause });
      }
  }
}

/** One field as it stands in the bytes. */
interface Entry {
  readonly number: number;
  readonly held: bigint | Uint8Array | undefined;
}

function varintOf({ number, held }: Entry): bigint {
  if (typeof held === "bigint") return held;
  throw new WireError(`field ${number} is no number`);
}

function delimitedOf({ number, held }: Entry): Uint8Array {
  if (held instanceof Uint8Array) return held;
  throw new WireError(`field ${number} has no length`);
}

function* entries(bytes: Uint8Array): Generator<Entry, undefined> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new WireError("a number is cut short");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new WireError("a number has more than ten bytes");
  };
  const take = (length: number): Uint8Array => {
    if (length > bytes.length - at) throw new WireError("a field is cut short");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    if (number === 0 || number > 0x1fffffff) throw new WireError("a field has no number");
    switch (Number(tag & 7n)) {
      case VARINT:
        yield { number, held: varint() };
        break;
      case DELIMITED:
        yield { number, held: take(Number(varint())) };
        break;
      case FIXED64:
        take(8);
        yield { number, held: undefined };
        break;
      case FIXED32:
        take(4);
        yield { number, held: undefined };
        break;
      default:
        throw new WireError(`field ${number} is a group`);
    }
  }
}

/** Collects encoded fields. */
class Writer {
  readonly #pieces: Uint8Array[] = [];
  length = 0;

  varint(number: number, value: bigint): void {
    this.#push(varintBytes((BigInt(number) << 3n) | BigInt(VARINT)));
    this.#push(varintBytes(value));
  }

  delimited(number: number, bytes: Uint8Array): void {
    this.#push(varintBytes((BigInt(number) << 3n) | BigInt(DELIMITED)));
    this.#push(varintBytes(BigInt(bytes.length)));
    this.#push(bytes);
  }

  bytes(): Uint8Array {
    const bytes = new Uint8Array(this.length);
    let at = 0;
    for (const piece of this.#pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }

  #push(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.length += piece.length;
  }
}

function varintBytes(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 0x80);
  } while (rest !== 0n);
  return Uint8Array.from(bytes);
}
