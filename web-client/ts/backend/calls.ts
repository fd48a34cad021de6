/** Unary calls of the backend: typed, repeated where that may help, and split to what a deployment takes at once. */
import { CallFailure, drawn } from "../transport/status.js";
import type { CallOptions, Connection } from "../transport/connection.js";
import { mayRepeat } from "./failure.js";
import { decode, encode, type Table, WireError } from "./wire.js";

/** The delay after a first failure, before jitter, in milliseconds. */
const FIRST_DELAY_MS = 100;
/** The longest delay, before jitter, in milliseconds. */
export const LONGEST_DELAY_MS = 5_000;
/** How often a call is made at most. */
export const ATTEMPTS_MAX = 5;

/** How long to wait after so many failures in a row, spread by a fifth so that clients do not come in step. */
export function delayAfter(failures: number): number {
  const delay = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), LONGEST_DELAY_MS);
  return delay * (0.8 + 0.4 * Math.random());
}

/** One RPC. */
export interface Rpc {
  readonly path: string;
  readonly request: Table;
  readonly response: Table;
}

/**
 * Calls an RPC, again with the same bytes while that may help, at most five times.
 *
 * @throws {@link CallFailure}, or the signal's reason.
 */
export async function call(connection: Connection, rpc: Rpc, value: unknown, options: CallOptions): Promise<unknown> {
  const request = encode(rpc.request, value);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { message } = await connection.unary(rpc.path, request, options);
      return decode(rpc.response, message);
    } catch (thrown) {
      const failure = thrown instanceof WireError ? malformed(thrown) : thrown;
      if (!(failure instanceof CallFailure) || attempt === ATTEMPTS_MAX || !mayRepeat(failure.end)) throw failure;
      await connection.pause(delayAfter(attempt), options.signal);
    }
  }
}

function malformed(cause: WireError): CallFailure {
  return new CallFailure(drawn("internal", `the answer does not decode: ${cause.message}`, cause));
}

/**
 * Values in order, in groups of at most `count` values and `bytes` encoded bytes. A value that is longer than that by itself
 * makes a group of its own.
 */
export function* groups<T>(
  values: Iterable<T>,
  count: number,
  bytes: number,
  bytesOf: (value: T) => number,
): Generator<readonly T[], undefined> {
  let group: T[] = [];
  let used = 0;
  for (const value of values) {
    const length = bytesOf(value);
    if (group.length > 0 && (group.length >= count || used + length > bytes)) {
      yield group;
      group = [];
      used = 0;
    }
    group.push(value);
    used += length;
  }
  if (group.length > 0) yield group;
}
