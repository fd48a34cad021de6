// Clients that stop reading, beside clients that go on, and a stream of many topics.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { request } from "../support/raw.mjs";
import { DeafSocket, TRANSPORTS } from "../support/subscriber.mjs";
import { until } from "../support/until.mjs";

const RESOURCE_EXHAUSTED = 8;
/** More than a stream's output and every buffer between hold. */
const BIG_ENVELOPES = 40;
const BIG_BYTES = 1_000_000;
const TOPICS = 1_000;

const body = TRANSPORTS["an open request body"];
const socket = TRANSPORTS["a WebSocket"];

describe("readers", () => {
  let deployment;
  let client;
  before(async () => {
    deployment = await Deployment.start({ shards: 1, testBuild: true });
    client = connect(deployment.url);
  });
  after(() => deployment?.stop());

  const publish = (group, text) => client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] });
  const sockets = async () => Number((await request(deployment.url, "/fail/shard/sockets", { method: "GET" })).body);

  // API-254, API-281
  test("that stop lose their streams, and those that go on get everything", async () => {
    const group = envelopes.groupId();
    const adds = [{ topic: envelopes.groupTopic(group) }];
    const fast = await Promise.all([body.open(deployment.url), socket.open(deployment.url)]);
    const slow = await body.open(deployment.url);
    const deaf = await DeafSocket.open(deployment.url);
    for (const stream of fast) stream.update(1, adds);
    deaf.send({ case: "update", value: { id: 1n, adds, removes: [] } });
    slow.update(1, adds);
    for (const stream of [...fast, slow]) {
      assert.equal((await stream.next()).case, "started");
      assert.equal((await stream.next()).case, "applied");
    }
    slow.response.pause();
    await until("four streams", async () => (await sockets()) === 4);
    const seen = fast.map(async (stream) => {
      let count = 0;
      while (count < BIG_ENVELOPES) {
        const frame = await stream.next();
        assert.equal(frame?.case, "messages", JSON.stringify(stream.ended));
        count += frame.value.envelopes.length;
      }
      return count;
    });
    const text = "x".repeat(BIG_BYTES);
    for (let number = 0; number < BIG_ENVELOPES; number += 1) await publish(group, `${number} ${text}`);
    assert.deepEqual(await Promise.all(seen), [BIG_ENVELOPES, BIG_ENVELOPES]);
    await until("the slow streams to lose their shard", async () => (await sockets()) === 2);
    slow.response.resume();
    while (await slow.next()) continue;
    assert.equal(slow.ended.status, RESOURCE_EXHAUSTED);
    assert.equal(await deaf.read(), RESOURCE_EXHAUSTED);
    for (const stream of [...fast, deaf]) stream.leave();
  });

  // API-252, API-254
  test(`of ${TOPICS} topics on one stream get what is published on any`, async () => {
    const groups = Array.from({ length: TOPICS }, envelopes.groupId);
    const stream = await socket.open(deployment.url);
    assert.equal((await stream.next()).case, "started");
    const adds = groups.map((group) => ({ topic: envelopes.groupTopic(group) }));
    stream.update(1, adds.slice(0, TOPICS / 2));
    stream.update(2, adds.slice(TOPICS / 2));
    for (const id of [1n, 2n]) {
      const { value } = await stream.next();
      assert.deepEqual([value.id, value.addedTargets.length], [id, TOPICS / 2]);
    }
    const texts = Array.from({ length: 40 }, (_, number) => `${number}`);
    for (const text of texts) await publish(groups[(Number(text) * 677) % TOPICS], text);
    const seen = [];
    while (seen.length < texts.length) seen.push(...(await stream.next()).value.envelopes.map(envelopes.textOf));
    assert.deepEqual(seen, texts);
    stream.leave();
  });
});
