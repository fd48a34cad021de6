// Subscribe in the real runtime, over an open request body and over a WebSocket.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { frame, request } from "../support/raw.mjs";
import { TRANSPORTS } from "../support/subscriber.mjs";
import { until } from "../support/until.mjs";

const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;

const from = (cursor, ...groups) => groups.map((group) => ({ topic: envelopes.groupTopic(group), cursor }));

for (const [name, transport] of Object.entries(TRANSPORTS)) {
  describe(`Subscribe over ${name}`, () => {
    let deployment;
    let client;
    before(async () => {
      deployment = await Deployment.start({ shards: 4, testBuild: true });
      client = connect(deployment.url);
    });
    after(() => deployment?.stop());

    const publish = async (group, text) =>
      (await client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] })).envelopeMetas[0];
    const open = async () => {
      const stream = await transport.open(deployment.url);
      assert.equal((await stream.next()).case, "started");
      return stream;
    };
    /** The next frame, which must be of this kind. */
    const expect = async (stream, kind) => {
      const frame = await stream.next();
      assert.equal(frame?.case, kind, JSON.stringify(stream.ended));
      return frame.value;
    };
    /** The texts of the next `count` envelopes. */
    const take = async (stream, count) => {
      const texts = [];
      while (texts.length < count) texts.push(...(await expect(stream, "messages")).envelopes.map(envelopes.textOf));
      return texts;
    };
    const ending = async (stream) => {
      while (await stream.next()) continue;
      return stream.ended.status;
    };

    // API-250, API-255
    test("starts before the client has sent anything", async () => {
      const stream = await transport.open(deployment.url);
      const started = await expect(stream, "started");
      assert.equal(started.keepaliveIntervalMs, 30_000);
      if (stream.headers) assert.match(stream.headers["conclave-router-instance"], /^rti_/);
      stream.leave();
    });

    // API-252, API-253, API-254
    test("topics are added and removed while it runs, each from its own cursor", async () => {
      const [busy, empty] = [envelopes.groupId(), envelopes.groupId()];
      const first = await publish(busy, "one");
      const head = await publish(busy, "two");
      const stream = await open();
      stream.update(1, from(undefined, busy, empty));
      const applied = await expect(stream, "applied");
      assert.equal(applied.id, 1n);
      assert.deepEqual(applied.addedTargets.map(({ throughSequenceId }) => throughSequenceId), [head.cursor.sequenceId, 0n]);
      assert.deepEqual(await take(stream, 2), ["one", "two"]);
      await publish(empty, "three");
      assert.deepEqual(await take(stream, 1), ["three"]);
      stream.update(2, [], [envelopes.groupTopic(busy)]);
      assert.deepEqual((await expect(stream, "applied")).addedTargets, []);
      await publish(busy, "unseen");
      await publish(empty, "four");
      assert.deepEqual(await take(stream, 1), ["four"]);
      stream.update(3, from(first.cursor, busy));
      await expect(stream, "applied");
      assert.deepEqual(await take(stream, 2), ["two", "unseen"]);
      stream.leave();
    });

    // API-256
    test("a Ping is answered with its nonce", async () => {
      const stream = await open();
      stream.ping(2n ** 64n - 1n);
      assert.equal((await expect(stream, "pong")).nonce, 2n ** 64n - 1n);
      stream.leave();
    });

    // API-259
    test("a client that ends its half is answered, and the stream ends without an error", async () => {
      const stream = await open();
      stream.update(1, from(undefined, envelopes.groupId()));
      stream.end();
      await expect(stream, "applied");
      assert.equal(await ending(stream), 0);
      if (stream.closed) assert.equal(await stream.closed(), 1000);
    });

    // API-251, API-281
    test("what may not be sent fails the stream with its code", async () => {
      const group = envelopes.groupId();
      const cases = [
        [INVALID_ARGUMENT, (stream) => stream.update(0)],
        [INVALID_ARGUMENT, (stream) => stream.update(1, from(undefined, group), [envelopes.groupTopic(group)])],
        [INVALID_ARGUMENT, (stream) => stream.sendFrame(frame(Buffer.alloc(0)))],
        [UNIMPLEMENTED, (stream) => stream.sendFrame(frame(Buffer.from([1]), 1))],
        [INTERNAL, (stream) => stream.sendFrame(frame(Buffer.alloc(3), 0x40))],
      ];
      if (name === "a WebSocket") {
        cases.push([INTERNAL, (stream) => stream.sendText("text")]);
        cases.push([INTERNAL, (stream) => stream.sendFrame(Buffer.from([0, 0, 0]))]);
      }
      for (const [status, send] of cases) {
        const stream = await open();
        send(stream);
        assert.equal(await ending(stream), status, send.toString());
        if (stream.closed) assert.equal(await stream.closed(), 4000 + status);
        stream.leave();
      }
    });

    // API-258
    test("more updates than the bucket holds fail the stream, and any number of Pongs does not", async () => {
      const stream = await open();
      for (let nonce = 0n; nonce < 500n; nonce += 1n) stream.pong(nonce);
      stream.ping(1);
      await expect(stream, "pong");
      for (let id = 1; id <= 400; id += 1) stream.update(id);
      assert.equal(await ending(stream), RESOURCE_EXHAUSTED);
      stream.leave();
    });

    test("a client that leaves closes every socket to a shard", async () => {
      const sockets = async () => Number((await request(deployment.url, "/fail/shard/sockets", { method: "GET" })).body);
      const stream = await open();
      // Enough topics that every shard has one.
      stream.update(1, from(undefined, ...Array.from({ length: 64 }, () => envelopes.groupId())));
      await expect(stream, "applied");
      assert.ok((await sockets()) > 0);
      stream.leave();
      await until("the sockets to close", async () => (await sockets()) === 0);
    });
  });
}
