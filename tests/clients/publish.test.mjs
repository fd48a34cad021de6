// Publish and the reads after it, by connect-es over gRPC-Web.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure, publishError } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";

const REASON_MALFORMED_PAYLOAD = 1;
const REASON_TOO_LARGE = 5;

for (const shards of [1, 16]) {
  describe(`with ${shards} topic shard(s)`, () => {
    let deployment;
    let client;

    before(async () => {
      deployment = await Deployment.start({ shards });
      client = connect(deployment.url);
    });
    after(() => deployment?.stop());

    const publish = (...list) => client.publish.publish({ envelopes: list });
    const read = async (topic, sequenceId = 0n, limit = 0) =>
      client.query.query({ queries: [{ topic, cursor: { sequenceId } }], limit });

    // API-210, API-211, API-212, API-221, API-286
    test("a group message comes back as published, with the metadata the backend assigned", async () => {
      const group = envelopes.groupId();
      const envelope = envelopes.groupMessage(group, "hello");
      const before = BigInt(Date.now()) * 1_000_000n;
      const { envelopeMetas } = await publish(envelope);
      assert.equal(envelopeMetas.length, 1);
      const [meta] = envelopeMetas;
      assert.ok(meta.cursor.sequenceId >= 1n);
      assert.ok(meta.serverNs >= before - 5_000_000_000n);
      assert.deepEqual(meta.messageHash.hash.value, envelopes.hashOf(envelope));
      assert.deepEqual(meta.topic.topic, envelopes.groupTopic(group).topic);
      assert.equal(meta.expiryNs, meta.serverNs + 7_776_000n * 1_000_000_000n);
      assert.equal(meta.isCommitOrProposal, false);

      const page = await read(envelopes.groupTopic(group));
      assert.equal(page.envelopes.length, 1);
      assert.deepEqual(page.envelopes[0].meta, meta);
      assert.equal(envelopes.textOf(page.envelopes[0]), "hello");
      assert.equal(page.continuation.hasMore, false);
    });

    // API-212
    test("a commit is marked as one and never expires", async () => {
      const group = envelopes.groupId();
      const { envelopeMetas } = await publish(envelopes.commit(group, "commit"));
      assert.equal(envelopeMetas[0].isCommitOrProposal, true);
      assert.equal(envelopeMetas[0].expiryNs, 0n);
    });

    // API-230
    test("Welcomes and commit-log entries are stored on their own topics", async () => {
      const key = envelopes.installationKey();
      const group = envelopes.groupId();
      const welcome = await publish(envelopes.welcome(key, "welcome"));
      const entry = await publish(envelopes.commitLogEntry(group, 7n));
      assert.deepEqual(welcome.envelopeMetas[0].topic.topic, envelopes.welcomeTopic(key).topic);
      assert.deepEqual(entry.envelopeMetas[0].topic.topic, envelopes.commitLogTopic(group).topic);
      assert.equal(entry.envelopeMetas[0].expiryNs, 0n);
    });

    // API-220, API-221, API-202
    test("a commit and its Welcomes are stored together, wherever their topics lie", async () => {
      const group = envelopes.groupId();
      const keys = Array.from({ length: 8 }, () => envelopes.installationKey());
      const list = [envelopes.commit(group, "add eight"), ...keys.map((key) => envelopes.welcome(key, "come in"))];
      const { envelopeMetas } = await publish(...list);
      assert.equal(envelopeMetas.length, list.length);
      assert.equal(new Set(envelopeMetas.map(({ serverNs }) => serverNs)).size, 1);
      const topics = [envelopes.groupTopic(group), ...keys.map(envelopes.welcomeTopic)];
      const page = await client.query.query({ queries: topics.map((topic) => ({ topic })), limit: 100 });
      const stored = new Map(page.envelopes.map(({ meta }) => [Buffer.from(meta.topic.topic).toString("hex"), meta]));
      topics.forEach(({ topic }, at) =>
        assert.deepEqual(stored.get(Buffer.from(topic).toString("hex")), envelopeMetas[at]));
      const again = await publish(...list);
      assert.deepEqual(again.envelopeMetas, envelopeMetas);
    });

    // API-220, API-223
    test("one malformed envelope among many topics stores nothing on any of them", async () => {
      const keys = Array.from({ length: 20 }, () => envelopes.installationKey());
      const malformed = { payload: { case: "welcomeMessage", value: {} } };
      const error = await failure(() => publish(...keys.map((key) => envelopes.welcome(key, "no")), malformed));
      assert.equal(error.code, Code.InvalidArgument);
      assert.equal(publishError(error).index, 20);
      const queries = keys.map((key) => ({ topic: envelopes.welcomeTopic(key) }));
      assert.equal((await client.query.query({ queries })).envelopes.length, 0);
    });

    // API-222, API-220
    test("publishes of the same many topics at once, in opposite orders, are all stored", async () => {
      const groups = Array.from({ length: 12 }, () => envelopes.groupId());
      const writer = (name) => {
        const order = name % 2 ? groups : [...groups].reverse();
        return publish(...order.map((group) => envelopes.groupMessage(group, `from ${name}`)));
      };
      await Promise.all(Array.from({ length: 6 }, (_, name) => writer(name)));
      const queries = groups.map((group) => ({ topic: envelopes.groupTopic(group) }));
      const { envelopes: stored } = await client.query.query({ queries, limit: 1000 });
      assert.equal(stored.length, 6 * groups.length);
    });

    // API-222, API-221, API-224, API-288
    test("the same bytes again, in one request or the next, are the stored envelope", async () => {
      const group = envelopes.groupId();
      const envelope = envelopes.groupMessage(group, "once");
      const first = await publish(envelope, envelope);
      const second = await publish(envelope);
      assert.deepEqual(first.envelopeMetas[0], first.envelopeMetas[1]);
      assert.deepEqual(second.envelopeMetas[0], first.envelopeMetas[0]);
      assert.equal((await read(envelopes.groupTopic(group))).envelopes.length, 1);
    });

    // API-222
    test("the same bytes published by many at once are stored once", async () => {
      const group = envelopes.groupId();
      const envelope = envelopes.groupMessage(group, "raced");
      const answers = await Promise.all(Array.from({ length: 16 }, () => publish(envelope)));
      const ids = new Set(answers.map(({ envelopeMetas }) => envelopeMetas[0].cursor.sequenceId));
      assert.equal(ids.size, 1);
      assert.equal((await read(envelopes.groupTopic(group))).envelopes.length, 1);
    });

    // API-287, API-289
    test("each later publish, on whichever topic, gets a greater id", async () => {
      let last = 0n;
      for (let round = 0; round < 12; round += 1) {
        const { envelopeMetas } = await publish(envelopes.groupMessage(envelopes.groupId(), `round ${round}`));
        assert.ok(envelopeMetas[0].cursor.sequenceId > last);
        last = envelopeMetas[0].cursor.sequenceId;
      }
    });

    // API-220, API-223, API-230
    test("one malformed envelope stores nothing and is named by its index", async () => {
      const group = envelopes.groupId();
      const malformed = { payload: { case: "groupMessage", value: { data: new Uint8Array([1, 2, 3]) } } };
      const error = await failure(() => publish(envelopes.groupMessage(group, "good"), malformed, malformed));
      assert.equal(error.code, Code.InvalidArgument);
      const detail = publishError(error);
      assert.equal(detail.index, 1);
      assert.equal(detail.reason, REASON_MALFORMED_PAYLOAD);
      assert.equal((await read(envelopes.groupTopic(group))).envelopes.length, 0);
    });

    // API-223, API-230
    test("an envelope without a payload is malformed", async () => {
      const error = await failure(() => publish({}));
      assert.equal(error.code, Code.InvalidArgument);
      assert.equal(publishError(error).reason, REASON_MALFORMED_PAYLOAD);
      assert.equal(publishError(error).index, 0);
    });

    // API-223, API-281
    test("an envelope over its bound is too large", async () => {
      const error = await failure(() => publish(envelopes.groupMessage(envelopes.groupId(), "x".repeat(1_048_577))));
      assert.equal(error.code, Code.InvalidArgument);
      assert.equal(publishError(error).reason, REASON_TOO_LARGE);
    });

    // API-240, API-201
    test("pages hold the lowest ids in order, and has_more is exact", async () => {
      const group = envelopes.groupId();
      for (let number = 0; number < 7; number += 1) await publish(envelopes.groupMessage(group, `${number}`));
      const seen = [];
      let cursor = 0n;
      let pages = 0;
      for (;;) {
        const page = await read(envelopes.groupTopic(group), cursor, 3);
        pages += 1;
        for (const envelope of page.envelopes) {
          assert.ok(envelope.meta.cursor.sequenceId > cursor);
          cursor = envelope.meta.cursor.sequenceId;
          seen.push(envelopes.textOf(envelope));
        }
        if (!page.continuation.hasMore) break;
        assert.equal(page.envelopes.length, 3);
      }
      assert.deepEqual(seen, ["0", "1", "2", "3", "4", "5", "6"]);
      assert.equal(pages, 3);
    });

    // API-242
    test("a topic named twice is read from its lowest cursor", async () => {
      const group = envelopes.groupId();
      const topic = envelopes.groupTopic(group);
      const first = await publish(envelopes.groupMessage(group, "first"));
      await publish(envelopes.groupMessage(group, "second"));
      const { sequenceId } = first.envelopeMetas[0].cursor;
      const page = await client.query.query({ queries: [{ topic, cursor: { sequenceId } }, { topic }] });
      assert.deepEqual(page.envelopes.map(envelopes.textOf), ["first", "second"]);
    });

    // API-243
    test("a key package topic cannot be paged", async () => {
      const topic = { topic: new Uint8Array([3, ...envelopes.installationKey()]) };
      assert.equal((await failure(() => read(topic))).code, Code.InvalidArgument);
    });

    // API-244, API-245
    test("the newest envelope of each topic that has one, with its body only on request", async () => {
      const [one, two, empty] = [envelopes.groupId(), envelopes.groupId(), envelopes.groupId()];
      await publish(envelopes.groupMessage(one, "old"));
      const newest = await publish(envelopes.groupMessage(one, "new"));
      await publish(envelopes.groupMessage(two, "other"));
      const topics = [empty, one, two, one].map(envelopes.groupTopic);
      const bare = await client.query.queryNewest({ topics });
      assert.equal(bare.results.length, 2);
      const ofOne = bare.results.find(({ topic }) => Buffer.from(topic.topic).equals(topics[1].topic));
      assert.deepEqual(ofOne.meta, newest.envelopeMetas[0]);
      assert.equal(ofOne.envelope, undefined);
      const full = await client.query.queryNewest({ topics: [topics[1]], includeFullEnvelope: true });
      assert.equal(envelopes.textOf(full.results[0]), "new");
    });

    // API-202
    test("a query that follows a publish sees it", async () => {
      const group = envelopes.groupId();
      for (let round = 0; round < 10; round += 1) {
        await publish(envelopes.groupMessage(group, `${round}`));
        assert.equal((await read(envelopes.groupTopic(group))).envelopes.length, round + 1);
      }
    });

    // API-281
    test("cursors above the range and malformed topics are refused", async () => {
      const topic = envelopes.groupTopic(envelopes.groupId());
      assert.equal((await failure(() => read(topic, 9223372036854775808n))).code, Code.InvalidArgument);
      assert.equal((await read(topic, 9223372036854775807n)).envelopes.length, 0);
      assert.equal((await failure(() => read({ topic: new Uint8Array([9, 1]) }))).code, Code.InvalidArgument);
    });
  });
}
