// A concurrent workload that records what it does and sees: publishes to a few hot topics, across shards, in batches, twice
// at once, what others have published; pages, newest ids, boundaries and streams. Clients do as API-224 and API-284 say:
// the same bytes again until there is an answer.

import { Code, ConnectError } from "@connectrpc/connect";
import { connect } from "../clients.mjs";
import * as envelopes from "../envelopes.mjs";
import { SOON_MS, until } from "../until.mjs";
import { keyOf, plainMeta } from "./history.mjs";

/** How long one attempt may take. */
const ATTEMPT_MS = 10_000;

/** Refusals for good: what this workload sends must meet none. */
const REFUSALS = [Code.InvalidArgument, Code.Unimplemented, Code.FailedPrecondition, Code.OutOfRange, Code.DataLoss];

const MESSAGES_MAX = 6;
const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** Numbers from 0 on, below 1, the same for the same seed. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Throws what no repetition can mend; everything else means "again". */
function unlessRefused(error) {
  const failure = ConnectError.from(error);
  if (REFUSALS.includes(failure.code)) throw failure;
}

export class Workload {
  #history;
  #random;
  #clients;
  #number = 0;
  #isOver = false;
  #failure;
  #groups;
  #keys;
  #topics;
  #sent = [];

  constructor(url, history, seed) {
    this.#history = history;
    this.#random = randomFrom(seed);
    this.#clients = [0, 1, 2].map(() => connect(url));
    this.#groups = Array.from({ length: 8 }, envelopes.groupId);
    this.#keys = Array.from({ length: 8 }, envelopes.installationKey);
    this.#topics = [
      ...this.#groups.map((group) => envelopes.groupTopic(group).topic),
      ...this.#keys.map((key) => envelopes.welcomeTopic(key).topic),
    ];
  }

  #below(count) {
    return Math.floor(this.#random() * count);
  }

  #one(list) {
    return list[this.#below(list.length)];
  }

  #some(list, most) {
    return Array.from({ length: 1 + this.#below(most) }, () => this.#one(list));
  }

  #client() {
    return this.#one(this.#clients);
  }

  #text() {
    this.#number += 1;
    return `${this.#number}`.padEnd(40);
  }

  #message() {
    // The first groups are hot.
    const group = this.#groups[Math.min(this.#below(8), this.#below(8))];
    return { topic: envelopes.groupTopic(group).topic, envelope: envelopes.groupMessage(group, this.#text()) };
  }

  #welcome() {
    const key = this.#one(this.#keys);
    return { topic: envelopes.welcomeTopic(key).topic, envelope: envelopes.welcome(key, this.#text()) };
  }

  #commit() {
    const group = this.#one(this.#groups);
    return { topic: envelopes.groupTopic(group).topic, envelope: envelopes.commit(group, this.#text()) };
  }

  #contents() {
    const kind = this.#random();
    if (kind < 0.45) return [this.#message()];
    if (kind < 0.6) return Array.from({ length: 2 + this.#below(MESSAGES_MAX) }, () => this.#message());
    if (kind < 0.75) return [this.#commit(), ...Array.from({ length: 1 + this.#below(4) }, () => this.#welcome())];
    if (this.#sent.length === 0 || kind < 0.85) return [this.#welcome()];
    // What somebody has published, beside something new; some of it at the same time as its first publish.
    return [...this.#one(this.#sent.slice(-8)), this.#message()];
  }

  #publish() {
    const contents = this.#contents();
    this.#sent.push(contents);
    const keys = contents.map(({ topic, envelope }) => keyOf({ topic: hex(topic), hash: hex(envelopes.hashOf(envelope)) }));
    const publish = { keys, attempts: [], request: { envelopes: contents.map(({ envelope }) => envelope) } };
    this.#history.publishes.push(publish);
    return publish;
  }

  /** One attempt. Whether it was answered. */
  async #attempt(publish) {
    const attempt = { invoked: this.#history.tick() };
    publish.attempts.push(attempt);
    try {
      const { envelopeMetas } = await this.#client().publish.publish(publish.request, { timeoutMs: ATTEMPT_MS });
      attempt.returned = this.#history.tick();
      attempt.metas = envelopeMetas.map(plainMeta);
      return true;
    } catch (error) {
      unlessRefused(error);
      return false;
    }
  }

  #settle(publish) {
    return this.#again("a publish to be answered", () => this.#attempt(publish));
  }

  /** Tries until it is answered, or something was refused that is for good. */
  async #again(what, probe) {
    let refusal;
    await until(what, async () => {
      try {
        return await probe();
      } catch (error) {
        refusal = error;
        return true;
      }
    }, 2 * SOON_MS);
    if (refusal) throw refusal;
  }

  #query(positions, limit) {
    const queries = positions.map(([topic, sequenceId]) => ({ topic: { topic }, cursor: { sequenceId } }));
    return this.#again("a page", async () => {
      const invoked = this.#history.tick();
      try {
        const page = await this.#client().query.query({ queries, limit }, { timeoutMs: ATTEMPT_MS });
        this.#history.queries.push({
          invoked,
          returned: this.#history.tick(),
          positions: positions.map(([topic, after]) => [hex(topic), after]),
          limit,
          metas: page.envelopes.map(({ meta }) => plainMeta(meta)),
          hasMore: page.continuation?.hasMore ?? false,
        });
        return true;
      } catch (error) {
        unlessRefused(error);
        return false;
      }
    });
  }

  #status() {
    return this.#again("the boundary", async () => {
      const invoked = this.#history.tick();
      try {
        const status = await this.#client().operator.getStatus({}, { timeoutMs: ATTEMPT_MS });
        this.#history.statuses.push({
          invoked,
          returned: this.#history.tick(),
          boundary: status.closedAllocationBoundary,
          lastAllocated: status.lastAllocatedSequenceId,
        });
        return true;
      } catch (error) {
        unlessRefused(error);
        return false;
      }
    });
  }

  #page() {
    const topics = [...new Set(this.#some(this.#topics, 6))];
    const seen = this.#history.queries.at(-1)?.metas ?? [];
    const after = () => (seen.length > 0 && this.#random() < 0.7 ? this.#one(seen).id : 0n);
    return this.#query(topics.map((topic) => [topic, after()]), 1 + this.#below(60));
  }

  async #writer() {
    while (!this.#isOver) {
      const kind = this.#random();
      if (kind < 0.12) await this.#status();
      else if (kind < 0.4) await this.#page();
      else if (kind < 0.55) {
        // The same bytes twice at once, through different connections.
        const publish = this.#publish();
        await Promise.all([this.#settle(publish), this.#settle(publish)]);
      } else await this.#settle(this.#publish());
    }
  }

  /** Reads some topics by streams, each opened where the one before it ended, until all that is stored was delivered. */
  async #reader(topics) {
    const cursors = new Map(topics.map((topic) => [hex(topic), 0n]));
    const isDone = () => this.#isOver && [...cursors].every(([topic, cursor]) => cursor === this.#heads?.get(topic));
    while (!isDone() && !this.#failure) {
      const stream = { positions: [...cursors], frames: [] };
      this.#history.streams.push(stream);
      const leaving = new AbortController();
      const stop = () => isDone() && leaving.abort();
      this.#whenOver.push(stop);
      const request = {
        topics: topics.map((topic) => ({ topic: { topic }, cursor: { sequenceId: cursors.get(hex(topic)) } })),
      };
      try {
        for await (const { response } of this.#client().subscription.subscribeStatic(request, { signal: leaving.signal })) {
          if (response.case !== "messages") continue;
          const metas = response.value.envelopes.map(({ meta }) => plainMeta(meta));
          stream.frames.push({ moment: this.#history.tick(), metas });
          for (const { topic, id } of metas) cursors.set(topic, id);
          stop();
        }
      } catch (error) {
        unlessRefused(error);
      }
    }
  }

  #whenOver = [];
  #heads;

  /** Runs until `disturbances` resolves, then until everything is answered, read and delivered. */
  async run(disturbances) {
    const guard = (work) => work.catch((error) => {
      this.#failure ??= error;
      this.#isOver = true;
    });
    const writers = Array.from({ length: 8 }, () => guard(this.#writer()));
    const half = this.#topics.length / 2;
    const readers = [this.#topics, this.#topics.slice(0, half), this.#topics.slice(half), this.#topics.slice(0, 1)]
      .map((topics) => guard(this.#reader(topics)));
    await Promise.race([disturbances, Promise.all(writers)]);
    this.#isOver = true;
    await Promise.all(writers);
    if (!this.#failure) {
      await this.#readLogs();
      this.#heads = new Map(this.#topics.map((topic) => [hex(topic), this.#history.logs.get(hex(topic)).at(-1)?.id ?? 0n]));
      for (const stop of this.#whenOver) stop();
      let isDelivered = false;
      Promise.all(readers).then(() => { isDelivered = true; });
      await until("the streams to deliver everything", () => isDelivered || this.#failure, 2 * SOON_MS);
    }
    if (this.#failure) throw this.#failure;
  }

  /** Reads each topic from its beginning to its end. */
  async #readLogs() {
    for (const topic of this.#topics) {
      const log = [];
      for (let hasMore = true; hasMore; ) {
        await this.#query([[topic, log.at(-1)?.id ?? 0n]], 1000);
        const page = this.#history.queries.at(-1);
        log.push(...page.metas);
        ({ hasMore } = page);
      }
      this.#history.logs.set(hex(topic), log);
    }
  }
}
