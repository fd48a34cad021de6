// Streams of clients that come back with their cursors, while the runtime is killed again and again.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { TRANSPORTS } from "../support/subscriber.mjs";
import { until } from "../support/until.mjs";

const KILLS = 20;
const TOPICS = 4;
const SHARDS = 4;

/** What a client has received, by topic, over as many streams as it took. */
class Follower {
  received = new Map();
  streams = 0;
  #cursors = new Map();
  #isOver = false;
  #stream;

  constructor(url, transport, groups) {
    this.url = url;
    this.transport = transport;
    for (const group of groups) {
      const key = Buffer.from(group).toString("hex");
      this.received.set(key, []);
      this.#cursors.set(key, { topic: envelopes.groupTopic(group), cursor: { sequenceId: 0n } });
    }
  }

  count() {
    return [...this.received.values()].reduce((sum, texts) => sum + texts.length, 0);
  }

  /** Follows until `stop`. */
  async run() {
    while (!this.#isOver) {
      try {
        this.#stream = await this.transport.open(this.url);
        await this.#follow(this.#stream);
      } catch {
        // The runtime is not there.
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async #follow(stream) {
    this.streams += 1;
    // In two updates, the second on top of what the first one brings.
    const topics = [...this.#cursors.values()];
    stream.update(1, topics.slice(0, TOPICS / 2));
    stream.update(2, topics.slice(TOPICS / 2));
    for (let frame = await stream.next(); frame; frame = await stream.next()) {
      if (frame.case !== "messages") continue;
      for (const envelope of frame.value.envelopes) {
        const key = Buffer.from(envelope.meta.topic.topic.slice(1)).toString("hex");
        this.received.get(key).push(envelopes.textOf(envelope));
        this.#cursors.get(key).cursor = envelope.meta.cursor;
      }
    }
    stream.leave();
  }

  stop() {
    this.#isOver = true;
    this.#stream?.leave();
  }
}

describe("streams under kill -9", () => {
  // API-254
  test(`${KILLS} kills at any moment make no gap and no repeat`, async () => {
    const state = temporaryFolder();
    const deployment = await Deployment.start({ state: state.path, shards: SHARDS });
    const client = connect(deployment.url);
    const groups = Array.from({ length: TOPICS }, envelopes.groupId);
    const followers = Object.values(TRANSPORTS).map((transport) => new Follower(deployment.url, transport, groups));
    const running = followers.map((follower) => follower.run());
    const published = new Map(groups.map((group) => [Buffer.from(group).toString("hex"), []]));
    let isOver = false;
    const writers = groups.map(async (group) => {
      const texts = published.get(Buffer.from(group).toString("hex"));
      while (!isOver) {
        const text = `${texts.length}`;
        await until("a publish", () => client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] }));
        texts.push(text);
      }
    });
    const total = () => [...published.values()].reduce((sum, texts) => sum + texts.length, 0);
    try {
      for (let kill = 0; kill < KILLS; kill += 1) {
        // Some progress between two kills, of writers and of readers, and then anywhere in what follows.
        const [stored, seen] = [total(), followers.map((follower) => follower.count())];
        const more = Math.floor(Math.random() * 12);
        await until("more to be stored", () => total() > stored + more);
        await until("more to be seen", () => followers.every((follower, at) => follower.count() > seen[at]));
        await deployment.killRuntime();
      }
      isOver = true;
      await Promise.all(writers);
      await until("everything to be seen", () => followers.every((follower) => follower.count() >= total()));
      for (const follower of followers) {
        assert.deepEqual(follower.received, published);
        assert.ok(follower.streams > KILLS / 2, `${follower.streams} streams`);
      }
    } finally {
      isOver = true;
      for (const follower of followers) follower.stop();
      await Promise.allSettled([...running, ...writers]);
      await deployment.stop();
      state.remove();
    }
  });
});
