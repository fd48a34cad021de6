// SubscribeStatic by connect-es: history, then what is published, without a seam.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";

for (const shards of [1, 16]) {
  describe(`a static stream over ${shards} topic shard(s)`, () => {
    let deployment;
    let client;

    before(async () => {
      deployment = await Deployment.start({ shards });
      client = connect(deployment.url);
    });
    after(() => deployment?.stop());

    const publish = async (group, text) =>
      (await client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] })).envelopeMetas[0];

    /** Opens a stream and yields its envelopes after its Started frame, which goes to `started`. */
    async function* follow(topics, signal, started) {
      let first = true;
      for await (const { response } of client.subscription.subscribeStatic({ topics }, { signal })) {
        if (first) assert.equal(response.case, "started");
        if (response.case === "started") started?.(response.value);
        if (response.case === "messages") yield* response.value.envelopes;
        first = false;
      }
    }

    /** The texts of the next `count` envelopes. */
    async function take(stream, count) {
      const texts = [];
      while (texts.length < count) {
        const { value, done } = await stream.next();
        assert.equal(done, false, "the stream ended early");
        texts.push(envelopes.textOf(value));
      }
      return texts;
    }

    // API-260, API-254
    test("targets come first, in request order, then the history and the live envelopes", async () => {
      const [busy, empty] = [envelopes.groupId(), envelopes.groupId()];
      await publish(busy, "one");
      const head = await publish(busy, "two");
      const controller = new AbortController();
      let started;
      const topics = [empty, busy].map((group) => ({ topic: envelopes.groupTopic(group) }));
      const stream = follow(topics, controller.signal, (frame) => { started = frame; });
      assert.deepEqual(await take(stream, 2), ["one", "two"]);
      assert.deepEqual(started.targets.map(({ throughSequenceId }) => throughSequenceId), [0n, head.cursor.sequenceId]);
      assert.ok(started.keepaliveIntervalMs > 0);
      await publish(empty, "three");
      await publish(busy, "four");
      assert.deepEqual((await take(stream, 2)).sort(), ["four", "three"]);
      controller.abort();
    });

    // API-254
    test("a stream starts after its cursor", async () => {
      const group = envelopes.groupId();
      const first = await publish(group, "before");
      await publish(group, "after");
      const controller = new AbortController();
      const stream = follow([{ topic: envelopes.groupTopic(group), cursor: first.cursor }], controller.signal);
      assert.deepEqual(await take(stream, 1), ["after"]);
      controller.abort();
    });

    // API-254
    test("envelopes published while history is read arrive once each, in order", async () => {
      const group = envelopes.groupId();
      const texts = Array.from({ length: 60 }, (_, number) => `${number}`);
      for (const text of texts.slice(0, 30)) await publish(group, text);
      const controller = new AbortController();
      const stream = follow([{ topic: envelopes.groupTopic(group) }], controller.signal);
      const received = take(stream, texts.length);
      for (const text of texts.slice(30)) await publish(group, text);
      assert.deepEqual(await received, texts);
      controller.abort();
    });

    // API-260
    test("no topic at all, and one topic twice, are refused", async () => {
      const topic = envelopes.groupTopic(envelopes.groupId());
      const controller = new AbortController();
      const open = (topics) => async () => {
        for await (const _ of follow(topics, controller.signal)) break;
      };
      assert.equal((await failure(open([]))).code, Code.InvalidArgument);
      assert.equal((await failure(open([{ topic }, { topic }]))).code, Code.InvalidArgument);
    });
  });
}
