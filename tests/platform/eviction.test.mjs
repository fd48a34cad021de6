// Objects that the runtime evicts, as it does when they are idle: nothing that was stored or delivered changes, and streams go
// on.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { temporaryFolder } from "../support/deployment.mjs";
import { SCRIPT, addressOf, startEmulator } from "../support/emulator.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { TRANSPORTS } from "../support/subscriber.mjs";

const SHARDS = 4;

describe("eviction", () => {
  let state;
  let runtime;
  let client;
  let url;

  before(async () => {
    state = temporaryFolder();
    const variables = { CONCLAVE_IDENTIFIER: "eviction", CONCLAVE_SHARDS: String(SHARDS) };
    runtime = startEmulator({ state: state.path, variables });
    url = await addressOf(runtime);
    client = connect(url);
  });
  after(async () => {
    await runtime?.dispose();
    state?.remove();
  });

  const publish = async (group, text) =>
    (await client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] })).envelopeMetas[0];
  /** Evicts what runs. How many objects did. */
  const evictAll = async (webSockets) => {
    const shards = Array.from({ length: SHARDS }, (_, index) => ["Shard", `shard-${index}`]);
    let evicted = 0;
    for (const [className, name] of [...shards, ["Sequencer", "sequencer"]]) {
      try {
        await runtime.unsafeEvictDurableObject(SCRIPT, className, { name, webSockets });
        evicted += 1;
      } catch (error) {
        assert.match(error.message, /not currently running/);
      }
    }
    return evicted;
  };

  // API-202, API-222, API-288, API-289, API-291
  test("of every object between two publishes keeps ids, order, duplicates and the instance", async () => {
    const group = envelopes.groupId();
    const stored = [];
    let boundary = 0n;
    const { routerInstanceId } = await client.router.getInstance({});
    for (let round = 0; round < 3; round += 1) {
      stored.push(await publish(group, `${round}`), await publish(envelopes.groupId(), `${round}`));
      assert.ok(await evictAll("close") >= 2, "a shard and the Sequencer");
      assert.deepEqual(await publish(group, `${round}`), stored.at(-2));
      const status = await client.operator.getStatus({});
      assert.equal(status.routerInstanceId, routerInstanceId);
      assert.ok(status.closedAllocationBoundary >= boundary);
      boundary = status.closedAllocationBoundary;
    }
    const ids = stored.map(({ cursor }) => cursor.sequenceId);
    assert.deepEqual(ids, ids.toSorted((one, other) => (one < other ? -1 : 1)));
    const page = await client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }] });
    assert.deepEqual(page.envelopes.map(({ meta }) => meta), stored.filter((_, at) => at % 2 === 0));
  });

  // API-254
  test("of a shard that keeps its sockets skips and repeats nothing on a stream", async () => {
    const groups = Array.from({ length: 8 }, envelopes.groupId);
    const leaving = new AbortController();
    const topics = groups.map((group) => ({ topic: envelopes.groupTopic(group) }));
    const stream = client.subscription.subscribeStatic({ topics }, { signal: leaving.signal })[Symbol.asyncIterator]();
    assert.equal((await stream.next()).value.response.case, "started");
    const expected = [];
    const received = [];
    for (let round = 0; round < 3; round += 1) {
      for (const group of groups) {
        await publish(group, `${round}`);
        expected.push(`${Buffer.from(group).toString("hex")} ${round}`);
      }
      while (received.length < expected.length) {
        const { response } = (await stream.next()).value;
        if (response.case !== "messages") continue;
        for (const envelope of response.value.envelopes) {
          const topic = Buffer.from(envelope.meta.topic.topic.slice(1)).toString("hex");
          received.push(`${topic} ${envelopes.textOf(envelope)}`);
        }
      }
      assert.ok(await evictAll("hibernate") >= 2, "a shard and the Sequencer");
    }
    leaving.abort();
    assert.deepEqual(received.toSorted(), expected.toSorted());
  });

  // API-252, API-254
  test("of a shard between the updates of a Subscribe stream makes it forget no topic", async () => {
    const stream = await TRANSPORTS["a WebSocket"].open(url);
    assert.equal((await stream.next()).case, "started");
    const groups = [];
    const expected = [];
    const received = [];
    for (let round = 1; round <= 4; round += 1) {
      const fresh = Array.from({ length: 2 * SHARDS }, envelopes.groupId);
      stream.update(round, fresh.map((group) => ({ topic: envelopes.groupTopic(group) })));
      assert.equal((await stream.next()).value.id, BigInt(round));
      groups.push(...fresh);
      await evictAll("hibernate");
      for (const [at, group] of groups.entries()) {
        await publish(group, `${at} ${round}`);
        expected.push(`${at} ${round}`);
      }
      while (received.length < expected.length) {
        received.push(...(await stream.next()).value.envelopes.map(envelopes.textOf));
      }
      await evictAll("hibernate");
    }
    stream.leave();
    assert.deepEqual(received.toSorted(), expected.toSorted());
  });
});
