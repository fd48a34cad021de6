// What a failure of the Worker's own code leaves behind: a build with requests that fail on purpose (edge/src/failure.rs).

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { frame, grpcStatus, request } from "../support/raw.mjs";
import { encode } from "../support/wire.mjs";
import { until } from "../support/until.mjs";

const OK = 200;
const LOST = 503;
const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;

describe("a failure on purpose", () => {
  let deployment;
  let client;
  const fail = (path) => request(deployment.url, `/fail/${path}`, { method: "GET" });
  const rows = async () => Number((await fail("shard/rows")).body.toString());
  const sockets = async () => Number((await fail("shard/sockets")).body.toString());

  before(async () => {
    // A client that left is noticed at the next write at the latest: keepalives make one soon.
    const variables = { CONCLAVE_KEEPALIVE_INTERVAL_MS: "200" };
    deployment = await Deployment.start({ shards: 1, testBuild: true, variables });
    client = connect(deployment.url);
  });
  after(() => deployment?.stop());

  for (const how of ["panic", "trap", "overflow", "panic-in-transaction"]) {
    test(`${how} in a shard fails its caller, undoes the turn, and the next call is served`, async () => {
      const before = await rows();
      assert.equal((await fail(`shard/${how}`)).status, LOST);
      assert.equal(await rows(), before);
      assert.equal((await fail("shard/write")).status, OK);
      assert.equal(await rows(), before + 1);
    });
  }

  test("a panic keeps what was durable before it", async () => {
    const before = await rows();
    assert.equal((await fail("shard/panic-after-sync")).status, LOST);
    assert.equal(await rows(), before + 1);
  });

  test("an error inside a transaction undoes it, and a refused constraint is told apart", async () => {
    const before = await rows();
    assert.equal((await fail("shard/rollback")).status, OK);
    assert.equal(await rows(), before);
    assert.equal((await fail("shard/constraint")).body.toString(), "refused");
  });

  test("a call in progress fails when another one panics, and does not hang", async () => {
    await fail("shard/hold");
    const waiting = fail("shard/wait");
    // Two connections keep no order between them: the panic is not asked for before the other call is there.
    await fail("shard/held");
    assert.equal((await fail("shard/panic")).status, LOST);
    assert.equal((await waiting).status, LOST);
  });

  test("a call that takes longer than its caller waits is DEADLINE_EXCEEDED", async () => {
    const body = frame(Buffer.from(encode("xmtp.backend.v1.PublishRequest", { envelopes: [envelopes.groupMessage(envelopes.groupId(), "late")] })));
    const headers = { "content-type": "application/grpc-web", "grpc-timeout": "100m" };
    await fail("shard/hold");
    const late = await request(deployment.url, "/xmtp.backend.v1.PublishService/Publish", { headers, body });
    assert.equal(grpcStatus(late.body), DEADLINE_EXCEEDED);
    await fail("shard/release");
  });

  test("a panic in the Worker is UNAVAILABLE to its caller and unnoticed by an idle shard", async () => {
    const before = await rows();
    const headers = { "content-type": "application/grpc-web+proto" };
    const answer = await request(deployment.url, "/fail/worker/panic", { headers, body: frame(Buffer.alloc(0)) });
    assert.equal(answer.status, OK);
    assert.equal(answer.headers["access-control-allow-origin"], "*");
    assert.equal(grpcStatus(answer.body), UNAVAILABLE);
    assert.equal(await rows(), before);
  });

  // API-202, API-224, API-289
  test("envelopes, ids and instance survive a panic", async () => {
    const group = envelopes.groupId();
    const publish = async (text) =>
      (await client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] })).envelopeMetas[0];
    const first = await publish("before");
    const { routerInstanceId } = await client.router.getInstance({});
    assert.equal((await fail("shard/panic")).status, LOST);
    const second = await publish("after");
    assert.ok(second.cursor.sequenceId > first.cursor.sequenceId);
    const page = await client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }] });
    assert.deepEqual(page.envelopes.map(({ meta }) => meta), [first, second]);
    assert.equal((await client.router.getInstance({})).routerInstanceId, routerInstanceId);
  });

  test("a stream ends with UNAVAILABLE when what serves it is lost", async () => {
    const topics = [{ topic: envelopes.groupTopic(envelopes.groupId()) }];
    const stream = client.subscription.subscribeStatic({ topics })[Symbol.asyncIterator]();
    assert.equal((await stream.next()).value.response.case, "started");
    const end = failure(() => stream.next());
    await fail("shard/panic");
    assert.equal((await end).code, Code.Unavailable);
  });

  test("a client that goes away takes its message streams to the shards with it", async () => {
    const open = await sockets();
    const leaving = new AbortController();
    const topics = [{ topic: envelopes.groupTopic(envelopes.groupId()) }];
    const options = { signal: leaving.signal };
    const stream = client.subscription.subscribeStatic({ topics }, options)[Symbol.asyncIterator]();
    await stream.next();
    assert.equal(await sockets(), open + 1);
    leaving.abort();
    await assert.rejects(stream.next());
    await until("the message stream to be closed", async () => (await sockets()) === open);
  });
});
