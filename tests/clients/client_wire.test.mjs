// The package's own reading and writing of messages, held against a library's and the `.proto` files.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { draws } from "../support/draws.mjs";
import { message } from "../support/wire.mjs";

const dist = new URL("../../target/client-package/dist/", import.meta.url);
const tables = await import(new URL("backend/tables.js", dist));
const { decode, encode, WireError } = await import(new URL("backend/wire.js", dist));

const ROUNDS = 200;

/** Each table and the message it is of. */
const MESSAGES = [
  [tables.clientEnvelope, "ClientEnvelope"],
  [tables.listRequest, "PublishRequest"],
  [tables.publishResponse, "PublishResponse"],
  [tables.publishError, "PublishError"],
  [tables.queryRequest, "QueryRequest"],
  [tables.queryResponse, "QueryResponse"],
  [tables.queryNewestRequest, "QueryNewestRequest"],
  [tables.queryNewestResponse, "QueryNewestResponse"],
  [tables.subscribeRequest, "SubscribeRequest"],
  [tables.subscribeResponse, "SubscribeResponse"],
  [tables.subscribeStaticRequest, "SubscribeStaticRequest"],
  [tables.subscribeStaticResponse, "SubscribeStaticResponse"],
  [tables.listRequest, "GetInboxIdsRequest"],
  [tables.identifier, "GetInboxIdsRequest.Request"],
  [tables.getInboxIdsResponse, "GetInboxIdsResponse"],
  [tables.listRequest, "VerifySmartContractWalletSignaturesRequest"],
  [tables.walletSignature, "VerifySmartContractWalletSignaturesRequest.Signature"],
  [tables.verifyResponse, "VerifySmartContractWalletSignaturesResponse"],
  [tables.getConfigurationRequest, "GetConfigurationRequest"],
  [tables.getConfigurationResponse, "GetConfigurationResponse"],
].map(([table, name]) => [table, message(`xmtp.backend.v1.${name}`)]);

/** Messages whose one value takes their place. Absent and empty are the same to a caller. */
const TRANSPARENT = new Set(["Topic", "Cursor", "MessageHash", "Continuation"]);
/** Messages without which another says nothing. */
const ALWAYS_THERE = new Set(["EnvelopeMeta"]);

/** A value of a scalar, which is the default only where that may be. */
function scalar(kind, draw, mayBeDefault) {
  if (mayBeDefault && draw(4) === 0) return undefined;
  switch (kind) {
    case 8: // bool
      return true;
    case 9: // string
      return ["a", "é \u{1f600}", "x".repeat(200)][draw(3)];
    case 12: // bytes
      return Uint8Array.from({ length: 1 + draw(200) }, () => draw(256));
    case 4: // uint64
      return [1n, 127n, 128n, 300n, 2n ** 32n, 2n ** 53n - 1n][draw(6)];
    default: // uint32, int32
      return [1, 127, 128, 70_000, 2 ** 31 - 1][draw(5)];
  }
}

/** A message with every field filled in some way. */
function arbitrary(description, draw) {
  const value = create(description);
  const isTransparent = TRANSPARENT.has(description.name);
  for (const oneof of description.oneofs) {
    const field = oneof.fields[draw(oneof.fields.length)];
    value[oneof.localName] = { case: field.localName, value: one(field, draw, false) };
  }
  for (const field of description.fields.filter(({ oneof }) => oneof === undefined)) {
    if (field.fieldKind === "list") value[field.localName] = Array.from({ length: draw(4) }, () => one(field, draw, false));
    else if (field.fieldKind !== "message" || isTransparent || ALWAYS_THERE.has(field.message.name) || draw(4) > 0) {
      const drawn = one(field, draw, !isTransparent);
      if (drawn !== undefined) value[field.localName] = drawn;
    }
  }
  return value;
}

function one(field, draw, mayBeDefault) {
  const kind = field.fieldKind === "list" ? field.listKind : field.fieldKind;
  if (kind === "message") return arbitrary(field.message, draw);
  if (kind === "enum") return draw(12);
  return scalar(field.scalar, draw, mayBeDefault);
}

describe("messages", () => {
  for (const [table, description] of MESSAGES) {
    test(`${description.name} is read and written as its .proto file says, whole`, () => {
      const draw = draws(description.name.length);
      for (let round = 0; round < ROUNDS; round += 1) {
        const value = arbitrary(description, draw);
        const bytes = toBinary(description, value);
        const again = encode(table, decode(table, bytes));
        assert.ok(equals(description, fromBinary(description, again), value), Buffer.from(bytes).toString("hex"));
      }
    });
  }

  test("any bytes are a message or are refused by the one error", () => {
    const draw = draws(3);
    for (const [table, description] of MESSAGES) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const bytes = toBinary(description, arbitrary(description, draw)).slice(0, 60);
        for (let change = 0; change < 3 && bytes.length > 0; change += 1) bytes[draw(bytes.length)] = draw(256);
        try {
          decode(table, bytes);
        } catch (error) {
          assert.ok(error instanceof WireError, `${description.name} ${Buffer.from(bytes).toString("hex")}: ${error.stack}`);
        }
      }
    }
  });

  test("a field that no table names is skipped, and one of another form is refused", () => {
    const known = toBinary(message("xmtp.backend.v1.PublishError"), create(message("xmtp.backend.v1.PublishError"), { index: 7, message: "m" }));
    const strange = [0x7d, 1, 2, 3, 4, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7a, 1, 9, 0x78, 5];
    const read = decode(tables.publishError, Uint8Array.from([...strange, ...known, ...strange]));
    assert.deepEqual(read, { index: 7, reason: "unspecified", message: "m" });
    for (const bad of [[0x0a, 0], [0x1a, 5, 1], [0x18], [0x1a, 1, 0xff], [0x0b], [0x00, 1], [0x08, ...Array(10).fill(0x80), 1]]) {
      assert.throws(() => decode(tables.publishError, Uint8Array.from(bad)), WireError, bad.join());
    }
  });

  test("an action that this release does not know is seen, and a number without a name stays", () => {
    const update = [0x22, 2 + 4, 0x0a, 4, 0xfa, 0x01, 1, 0];
    assert.deepEqual(decode(tables.clientEnvelope, Uint8Array.from(update)).actions, [{ kind: "unknown" }]);
    assert.deepEqual(decode(tables.identifier, Uint8Array.from([0x10, 9])), { identifier: "", kind: 9 });
  });

  test("a number that its field can not hold is refused, not cut", () => {
    const update = (clientTimestampNs) => ({ kind: "identity-update", inboxId: "", actions: [], clientTimestampNs });
    for (const number of [2n ** 64n, -1n]) assert.throws(() => encode(tables.clientEnvelope, update(number)), TypeError);
    const most = 2n ** 64n - 1n;
    assert.equal(decode(tables.clientEnvelope, encode(tables.clientEnvelope, update(most))).clientTimestampNs, most);
  });
});
