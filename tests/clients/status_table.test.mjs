// The status table of the contract's section 7, row by row: each condition is provoked, and read by connect-es as the code the
// table names.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { compressionGzip, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Code, connect, failure, publishError } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import { changeOnDisk } from "../support/disk.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { account, add, create, HANDLE, identityUpdate, inboxId, installation, keyPackageTopic, wallet } from "../support/identities.mjs";
import { request } from "../support/raw.mjs";
import { PublishService } from "../support/wire.mjs";

const REASON_MALFORMED_PAYLOAD = 1;
const TRANSPORT_CEILING_BYTES = 26_214_400;
/** A chain whose node nobody runs: nothing ever listens there. */
const DEAD_CHAIN = { CONCLAVE_CHAIN_5_RPC_URL: "http://127.0.0.1:1" };

const message = (text = "hello") => envelopes.groupMessage(envelopes.groupId(), text);

describe("the status table", () => {
  let deployment;
  let client;

  before(async () => {
    deployment = await Deployment.start({ variables: DEAD_CHAIN });
    client = connect(deployment.url);
  });
  after(() => deployment?.stop());

  const publish = (...list) => client.publish.publish({ envelopes: list });
  const code = async (call) => (await failure(call)).code;

  // API-223, API-281
  test("INVALID_ARGUMENT: an envelope fails admission, with a PublishError detail", async () => {
    const error = await failure(() => publish(message(), {}));
    assert.equal(error.code, Code.InvalidArgument);
    const { index, reason } = publishError(error);
    assert.deepEqual({ index, reason }, { index: 1, reason: REASON_MALFORMED_PAYLOAD });
  });

  // The rows of the bounds table are those of bounds_table.test.mjs.
  const malformed = {
    "a topic of no kind": () => client.query.query({ queries: [{ topic: { topic: new Uint8Array([9]) } }] }),
    "a page of key packages": () => client.query.query({ queries: [{ topic: keyPackageTopic(randomBytes(32)) }] }),
    "a static stream of no topic": async () => {
      for await (const _ of client.subscription.subscribeStatic({ topics: [] })) break;
    },
    "a handle that is none": () =>
      client.identity.getInboxIds({ requests: [{ identifier: "-", identifierKind: HANDLE }] }),
    "an account that is none": () =>
      client.identity.verifySmartContractWalletSignatures({ signatures: [{ accountId: "nobody", hash: randomBytes(32) }] }),
  };
  for (const [what, call] of Object.entries(malformed)) {
    // API-281
    test(`INVALID_ARGUMENT: a request is malformed in a way the contract names: ${what}`, async () => {
      assert.equal(await code(call), Code.InvalidArgument);
    });
  }

  // API-281, API-282
  test("OUT_OF_RANGE: the wire length of a request is longer than max_request_bytes or the transport ceiling", async () => {
    const { limits } = await client.configuration.getConfiguration({});
    assert.equal(Number(limits.maxRequestBytes), TRANSPORT_CEILING_BYTES, "the default is the ceiling itself");
    const data = new Uint8Array(TRANSPORT_CEILING_BYTES);
    const tooLong = { payload: { case: "groupMessage", value: { data } } };
    assert.equal(await code(() => publish(tooLong)), Code.OutOfRange);
    const small = await Deployment.start({ shards: 1, variables: { CONCLAVE_MAX_ENVELOPE_BYTES: "500", CONCLAVE_MAX_REQUEST_BYTES: "600" } });
    try {
      const envelope = message("x".repeat(700));
      assert.equal(await code(() => connect(small.url).publish.publish({ envelopes: [envelope] })), Code.OutOfRange);
    } finally {
      await small.stop();
    }
  });

  // API-281, API-282, API-283
  test("OUT_OF_RANGE: an encoded unary response is longer than max_response_bytes or the ceiling", async () => {
    const group = envelopes.groupId();
    for (let half = 0; half < 2; half += 1) {
      await publish(...Array.from({ length: 13 }, (_, index) => envelopes.groupMessage(group, `${half}${index}`.padEnd(1_040_000, "x"))));
    }
    const queries = [{ topic: envelopes.groupTopic(group) }];
    assert.equal(await code(() => client.query.query({ queries })), Code.OutOfRange);
    const { envelopes: some, continuation } = await client.query.query({ queries, limit: 25 });
    assert.equal(some.length, 25);
    assert.equal(continuation.hasMore, true, "asking for less carries all but what is more than the ceiling");
  });

  // API-281
  test("UNIMPLEMENTED: a request arrives with a compression encoding", async () => {
    const transport = createGrpcWebTransport({
      baseUrl: deployment.url,
      httpVersion: "1.1",
      sendCompression: compressionGzip,
      compressMinBytes: 0,
    });
    const compressing = createClient(PublishService, transport);
    assert.equal(await code(() => compressing.publish({ envelopes: [message()] })), Code.Unimplemented);
  });

  // API-232, API-281
  test("ABORTED: the identity history changed during validation", async () => {
    const owner = account();
    const inbox = inboxId(owner);
    await publish(await identityUpdate(inbox, [create(owner)]));
    const updates = await Promise.all(Array.from({ length: 6 }, () => identityUpdate(inbox, [add(installation(), owner)])));
    const outcomes = await Promise.allSettled(updates.map((update) => publish(update)));
    const refused = outcomes.filter(({ status }) => status === "rejected");
    assert.ok(refused.length > 0);
    for (const { reason } of refused) assert.equal(reason.code, Code.Aborted);
  });

  // API-231, API-281
  test("UNAVAILABLE: a chain RPC or verifier failure", async () => {
    const owner = wallet(5);
    const update = await identityUpdate(inboxId(owner), [create(owner)]);
    assert.equal(await code(() => publish(update)), Code.Unavailable);
    const accountId = `eip155:5:${owner.text}`;
    const signatures = [{ accountId, hash: randomBytes(32), signature: randomBytes(65) }];
    assert.equal(await code(() => client.identity.verifySmartContractWalletSignatures({ signatures })), Code.Unavailable);
  });
});

describe("the status table, where something fails beneath the backend", () => {
  // API-224, API-281
  test("UNAVAILABLE: the store is unreachable", async () => {
    const deployment = await Deployment.start({ shards: 1, testBuild: true });
    try {
      const client = connect(deployment.url);
      const fail = (how) => request(deployment.url, `/fail/shard/${how}`, { method: "GET" });
      await fail("hold");
      const envelope = message();
      const lost = failure(() => client.publish.publish({ envelopes: [envelope] }));
      // The publish is in the shard before the panic: a shard takes its calls in the order they come.
      await fail("held");
      await fail("panic");
      assert.equal((await lost).code, Code.Unavailable);
      const { envelopeMetas } = await client.publish.publish({ envelopes: [envelope] });
      assert.equal(envelopeMetas.length, 1, "the same bytes settle it");
    } finally {
      await deployment.stop();
    }
  });

  // API-224, API-281
  test("DEADLINE_EXCEEDED: a publish or a store operation exceeds the backend's own time limit", async () => {
    const variables = { CONCLAVE_MAX_CALL_DURATION_MS: "300" };
    const deployment = await Deployment.start({ shards: 1, testBuild: true, variables });
    try {
      const client = connect(deployment.url);
      const fail = (how) => request(deployment.url, `/fail/shard/${how}`, { method: "GET" });
      await fail("hold");
      const envelope = message();
      assert.equal((await failure(() => client.publish.publish({ envelopes: [envelope] }))).code, Code.DeadlineExceeded);
      await fail("release");
      const { envelopeMetas } = await client.publish.publish({ envelopes: [envelope] });
      const { envelopes: stored } = await client.query.query({ queries: [{ topic: envelopeMetas[0].topic }] });
      assert.equal(stored.length, 1, "stored once, by whichever of the two");
    } finally {
      await deployment.stop();
    }
  });

  // API-281
  test("INTERNAL: a stored value violates an invariant the backend maintains", async () => {
    const state = temporaryFolder();
    let deployment;
    const start = async () => {
      deployment = await Deployment.start({ shards: 1, state: state.path });
      return connect(deployment.url);
    };
    try {
      const { envelopeMetas } = await (await start()).publish.publish({ envelopes: [message()] });
      await deployment.stop();
      changeOnDisk(state.path, "UPDATE envelope SET hash = x'00'");
      const client = await start();
      const [{ topic }] = envelopeMetas;
      for (const read of [
        () => client.query.query({ queries: [{ topic }] }),
        () => client.query.queryNewest({ topics: [topic], includeFullEnvelope: false }),
      ]) {
        assert.equal((await failure(read)).code, Code.Internal);
      }
    } finally {
      await deployment?.stop();
      state.remove();
    }
  });
});
