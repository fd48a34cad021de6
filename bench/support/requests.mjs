// Requests to the backend as bytes made beforehand, each different from the last by a number written into its payload.

import * as envelopes from "../../tests/support/envelopes.mjs";
import { frame, parse } from "../../tests/support/raw.mjs";
import { decode, encode } from "../../tests/support/wire.mjs";
import { post } from "./http.mjs";

const HEADERS = { "content-type": "application/grpc-web+proto" };

/** What a payload begins with where a number is to be written: no envelope holds it by chance. */
const MARK = Buffer.from("\u{1f511}number:");
const NUMBER_BYTES = 8;

/** Ends the body of a call that succeeded. */
const SUCCESS = "grpc-status:0\r\n";

/** A payload of a length whose number can be changed. */
export function payload(bytes) {
  return Buffer.concat([MARK, Buffer.alloc(NUMBER_BYTES), Buffer.alloc(bytes - MARK.length - NUMBER_BYTES, 0x61)]).toString();
}

let number = 0n;

/** A request whose marked payloads are given a number of their own each time it is taken. */
export class Fresh {
  #bytes;
  #places = [];

  constructor(bytes) {
    this.#bytes = bytes;
    for (let at = bytes.indexOf(MARK); at >= 0; at = bytes.indexOf(MARK, at + 1)) this.#places.push(at + MARK.length);
    if (this.#places.length === 0) throw new Error("the request has no number to change");
  }

  /** The bytes, to be sent before the next `take` of the same request. */
  take() {
    const copy = Buffer.from(this.#bytes);
    for (const place of this.#places) copy.writeBigUInt64BE(0x2020_2020_0000_0000n + (number += 1n), place);
    return copy;
  }
}

/** A unary call as bytes. */
export function unary(path, type, fields) {
  return post(path, HEADERS, frame(Buffer.from(encode(type, fields))));
}

/** A publish of these envelopes, whose payloads are marked. */
export function publish(list) {
  const bytes = unary("/xmtp.backend.v1.PublishService/Publish", "xmtp.backend.v1.PublishRequest", { envelopes: list });
  return new Fresh(bytes);
}

/** A query of these topics, each `[topic, cursor]`. */
export function query(positions, limit) {
  const queries = positions.map(([topic, sequenceId]) => ({ topic, cursor: { sequenceId } }));
  return unary("/xmtp.backend.v1.QueryService/Query", "xmtp.backend.v1.QueryRequest", { queries, limit });
}

/** Groups whose messages a publish may go to. */
export function groups(count) {
  return Array.from({ length: count }, () => envelopes.groupId());
}

/** Throws unless the backend answered with success. */
export function expectSuccess(answer) {
  const last = answer.body.at(-1) ?? Buffer.alloc(0);
  const end = answer.body.length > 1 ? Buffer.concat(answer.body.slice(-2)) : last;
  if (answer.status === 200 && end.subarray(-256).includes(SUCCESS)) return;
  throw new Error(`the backend answered ${answer.status}: ${end.subarray(-256).toString("latin1")}`);
}

/** Throws unless the backend refused what it was sent. */
export function expectRefusal(answer) {
  const end = Buffer.concat(answer.body).toString("latin1");
  if (!end.includes("grpc-status:3\r\n")) throw new Error(`the backend answered ${answer.status}: ${end}`);
}

/** Throws unless the floor answered with success. */
export function expectStatusOk(answer) {
  if (answer.status !== 200) throw new Error(`the floor answered ${answer.status}`);
}

/** The sequence id of the first envelope of a publish that succeeded. */
export function sequenceIdOf(answer) {
  const [message] = parse(Buffer.concat(answer.body)).messages;
  return decode("xmtp.backend.v1.PublishResponse", message).envelopeMetas[0].cursor.sequenceId;
}
