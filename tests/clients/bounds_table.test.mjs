// The bounds table of the contract's section 7, row by row, and every other limit that GetConfiguration publishes: each is read
// from there, reached, and exceeded by one.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure, publishError } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { account, add, create, ETHEREUM, identityUpdate, inboxId, installation, wallet } from "../support/identities.mjs";
import { frame, grpcStatus, parse, request, statusDetails } from "../support/raw.mjs";
import { decode, encode } from "../support/wire.mjs";

const REASON_INVALID_IDENTITY_UPDATE = 3;
const REASON_TOO_LARGE = 5;
const OK = 0;
const INVALID_ARGUMENT = 3;
const MAX_CURSOR = 9_223_372_036_854_775_807n;
const BINARY = { "content-type": "application/grpc-web+proto" };

/** Low enough that exceeding each costs little. */
const VARIABLES = {
  CONCLAVE_MAX_ENVELOPE_BYTES: "2000",
  CONCLAVE_MAX_REQUEST_BYTES: "20000",
  CONCLAVE_MAX_RESPONSE_BYTES: "8000",
  CONCLAVE_MAX_PUBLISH_TOPICS: "3",
  CONCLAVE_MAX_QUERY_TOPICS: "3",
  CONCLAVE_MAX_QUERY_LIMIT: "5",
  CONCLAVE_DEFAULT_QUERY_LIMIT: "2",
  CONCLAVE_MAX_NEWEST_METADATA_TOPICS: "4",
  CONCLAVE_MAX_NEWEST_FULL_TOPICS: "2",
  CONCLAVE_MAX_STATIC_TOPICS: "3",
  CONCLAVE_MAX_LOOKUP_IDENTIFIERS: "3",
  CONCLAVE_MAX_SCW_SIGNATURES: "2",
  CONCLAVE_MAX_IDENTITY_ENTRIES: "2",
  CONCLAVE_MAX_UPDATE_ADDS: "3",
  CONCLAVE_MAX_UPDATE_REMOVES: "3",
  CONCLAVE_MAX_STREAM_TOPICS: "4",
};

const times = (count, make) => Array.from({ length: Number(count) }, (_, index) => make(index));
const topic = () => envelopes.groupTopic(envelopes.groupId());

/** A field of protobuf whose value is bytes. */
const field = (number, ...value) => {
  const bytes = Buffer.concat(value);
  const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7];
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes]);
};

describe("the bounds table", () => {
  let deployment;
  let client;
  let limits;

  before(async () => {
    deployment = await Deployment.start({ variables: VARIABLES });
    client = connect(deployment.url);
    ({ limits } = await client.configuration.getConfiguration({}));
  });
  after(() => deployment?.stop());

  const publish = (...list) => client.publish.publish({ envelopes: list });
  const newest = (topics, includeFullEnvelope) => client.query.queryNewest({ topics, includeFullEnvelope });
  const signature = () => ({
    accountId: `eip155:1:0x${randomBytes(20).toString("hex")}`,
    hash: randomBytes(32),
    signature: randomBytes(65),
  });

  /** Opens a static stream and leaves it after its first frame. */
  const openStatic = async (topics) => {
    const controller = new AbortController();
    try {
      for await (const _ of client.subscription.subscribeStatic({ topics }, { signal: controller.signal })) break;
    } finally {
      controller.abort();
    }
  };

  /** An identity update of so many wallet signatures. */
  const walletUpdate = async (count) => {
    const owner = wallet();
    const steps = [create(owner), add(installation(), owner), ...times(count - 2, () => add(wallet(), account()))];
    return identityUpdate(inboxId(owner), steps);
  };

  // What is within a bound may still fail for another reason: a wallet whose chain nobody can ask is UNAVAILABLE.
  const isWithin = async (call) => {
    try {
      await call();
    } catch (error) {
      assert.equal(error.code, Code.Unavailable, error.message);
    }
  };

  const rows = [
    {
      row: "Publish: each envelope's re-encoded length not longer than max_envelope_bytes",
      limit: "maxEnvelopeBytes",
      call: (count) => publish(envelopes.groupMessage(envelopes.groupId(), "first"), envelopes.groupMessageOf(Number(count))),
      publishFailure: { index: 1, reason: REASON_TOO_LARGE },
    },
    {
      row: "Publish: distinct topics not more than max_publish_topics",
      limit: "maxPublishTopics",
      call: (count) =>
        publish(
          ...times(count, envelopes.groupId).flatMap((group) => [
            envelopes.groupMessage(group, "one"),
            envelopes.groupMessage(group, "two"),
          ]),
        ),
      publishFailure: { index: undefined, reason: REASON_TOO_LARGE },
    },
    {
      row: "Publish: ERC-6492 signatures in one identity update not more than max_scw_signatures",
      limit: "maxScwSignatures",
      call: async (count) => publish(await walletUpdate(Number(count))),
      publishFailure: { index: 0, reason: REASON_TOO_LARGE },
    },
    {
      row: "Query: entries in queries not more than max_query_topics",
      limit: "maxQueryTopics",
      call: (count) => client.query.query({ queries: times(count, () => ({ topic: envelopes.groupTopic(new Uint8Array(16)) })) }),
    },
    {
      row: "QueryNewest: topics not more than max_newest_full_topics with include_full_envelope true",
      limit: "maxNewestFullTopics",
      call: (count) => newest(times(count, () => envelopes.groupTopic(new Uint8Array(16))), true),
    },
    {
      row: "QueryNewest: topics not more than max_newest_metadata_topics with it false",
      limit: "maxNewestMetadataTopics",
      call: (count) => newest(times(count, () => envelopes.groupTopic(new Uint8Array(16))), false),
    },
    {
      row: "GetInboxIds: entries not more than max_lookup_identifiers",
      limit: "maxLookupIdentifiers",
      call: (count) =>
        client.identity.getInboxIds({
          requests: times(count, () => ({ identifier: `0x${"00".repeat(20)}`, identifierKind: ETHEREUM })),
        }),
    },
    {
      row: "VerifySmartContractWalletSignatures: entries not more than max_scw_signatures",
      limit: "maxScwSignatures",
      call: (count) => client.identity.verifySmartContractWalletSignatures({ signatures: times(count, signature) }),
    },
    {
      row: "SubscribeStatic: topics not more than max_static_topics",
      limit: "maxStaticTopics",
      call: (count) => openStatic(times(count, () => ({ topic: topic() }))),
    },
  ];

  for (const { row, limit, call, publishFailure } of rows) {
    // API-281
    test(row, async () => {
      const max = BigInt(limits[limit]);
      await isWithin(() => call(max));
      const error = await failure(() => call(max + 1n));
      assert.equal(error.code, Code.InvalidArgument, error.message);
      if (publishFailure) {
        const { index, reason } = publishError(error);
        assert.deepEqual({ index, reason }, publishFailure);
      }
    });
  }

  // API-281
  test("Publish: re-encoded request not longer than max_request_bytes", async () => {
    const max = Number(limits.maxRequestBytes);
    /** Requests of so many bytes on the wire, five of which the backend's own encoding adds: a negative enum of five bytes. */
    const shortened = (wireBytes) => {
      const key = randomBytes(32);
      const last = (padding) => {
        const v1 = [field(1, key), field(2, Buffer.alloc(padding)), Buffer.from([0x20, 0xff, 0xff, 0xff, 0xff, 0x0f])];
        return field(1, field(2, field(1, ...v1)));
      };
      const group = envelopes.groupId();
      const others = encode("xmtp.backend.v1.PublishRequest", {
        envelopes: times(Math.floor((wireBytes - 500) / 1893), () => envelopes.groupMessageOf(1890, group)),
      });
      const rest = wireBytes - others.length;
      const padded = last(rest - 60);
      const body = Buffer.concat([others, last(rest - 60 + rest - padded.length)]);
      assert.equal(body.length, wireBytes);
      return body;
    };
    const send = (body) => request(deployment.url, "/xmtp.backend.v1.PublishService/Publish", { headers: BINARY, body: frame(body) });
    const within = await send(shortened(max - 5));
    assert.equal(grpcStatus(within.body), OK, parse(within.body).trailers);
    for (const wireBytes of [max - 4, max]) {
      const { body } = await send(shortened(wireBytes));
      assert.equal(grpcStatus(body), INVALID_ARGUMENT);
      const [detail] = statusDetails(body).details;
      const { index, reason } = decode("xmtp.backend.v1.PublishError", detail.value);
      assert.deepEqual({ index, reason }, { index: undefined, reason: REASON_TOO_LARGE });
    }
  });

  // API-281
  test("Any request: every Cursor.sequence_id not greater than 9223372036854775807", async () => {
    for (const open of [
      (sequenceId) => client.query.query({ queries: [{ topic: topic(), cursor: { sequenceId } }] }),
      (sequenceId) => openStatic([{ topic: topic(), cursor: { sequenceId } }]),
    ]) {
      await open(MAX_CURSOR);
      assert.equal((await failure(() => open(MAX_CURSOR + 1n))).code, Code.InvalidArgument);
    }
  });

  // API-241
  test("a page holds default_query_limit envelopes where none is asked for, and never more than max_query_limit", async () => {
    const group = envelopes.groupId();
    await publish(...times(limits.maxQueryLimit + 1, (index) => envelopes.groupMessage(group, `${index}`)));
    const length = async (limit) =>
      (await client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }], limit })).envelopes.length;
    assert.equal(await length(0), limits.defaultQueryLimit);
    assert.equal(await length(limits.maxQueryLimit + 1), limits.maxQueryLimit);
    assert.equal(await length(0xffff_ffff), limits.maxQueryLimit);
  });

  // API-234
  test("an identity topic holds max_identity_entries updates", async () => {
    const owner = account();
    const inbox = inboxId(owner);
    const update = (steps) => identityUpdate(inbox, steps);
    await publish(await update([create(owner)]));
    for (let entries = 1; entries < limits.maxIdentityEntries; entries += 1) {
      await publish(await update([add(installation(), owner)]));
    }
    const error = await failure(async () => publish(await update([add(installation(), owner)])));
    assert.equal(error.code, Code.InvalidArgument);
    assert.equal(publishError(error).reason, REASON_INVALID_IDENTITY_UPDATE);
  });

  // API-282, API-283
  test("a unary response has at most max_response_bytes, and one byte more fails whole", async () => {
    const max = Number(limits.maxResponseBytes);
    const page = async (group) => {
      const query = encode("xmtp.backend.v1.QueryRequest", { queries: [{ topic: envelopes.groupTopic(group) }], limit: 5 });
      return (await request(deployment.url, "/xmtp.backend.v1.QueryService/Query", { headers: BINARY, body: frame(query) })).body;
    };
    for (const excess of [0, 1]) {
      const group = envelopes.groupId();
      const bytes = 1500;
      await publish(...times(4, () => envelopes.groupMessageOf(bytes, group)).map((envelope, index) => {
        // Each another envelope of the same length.
        const { data } = envelope.payload.value;
        data[data.length - 1] = 65 + index;
        return envelope;
      }));
      const [four] = parse(await page(group)).messages;
      const [one] = decode("xmtp.backend.v1.QueryResponse", four).envelopes;
      const around = encode("xmtp.backend.v1.QueryResponse", { envelopes: [one] }).length - bytes;
      await publish(envelopes.groupMessageOf(max + excess - four.length - around, group));
      const body = await page(group);
      if (excess === 0) assert.equal(parse(body).messages[0].length, max);
      else assert.equal(grpcStatus(body), Code.OutOfRange);
    }
  });

  test("every published limit is reached and exceeded here, or on a stream", () => {
    const reached = new Set([
      ...rows.map(({ limit }) => limit),
      ...["maxRequestBytes", "maxResponseBytes", "maxQueryLimit", "defaultQueryLimit", "maxIdentityEntries"],
      // tests/clients/status_table_streams.test.mjs
      ...["maxUpdateAdds", "maxUpdateRemoves", "maxStreamTopics", "maxUpdateFramesPerSecond", "maxUpdateBurst"],
      ...["maxPingFramesPerSecond", "maxPingBurst"],
    ]);
    const { $typeName: _, ...published } = limits;
    assert.deepEqual(new Set(Object.keys(published)), reached);
  });
});
