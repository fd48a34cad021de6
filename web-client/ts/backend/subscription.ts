/** Topics as they grow (Backend API contract, section 5): one stream after another, from where each topic was read up to. */
import { BackendError } from "../errors.js";
import type { Connection } from "../transport/connection.js";
import { CallFailure, drawn, type End } from "../transport/status.js";
import type { Stream } from "../transport/stream.js";
import { ATTEMPTS_MAX, delayAfter, LONGEST_DELAY_MS } from "./calls.js";
import { backendError, mayRepeat } from "./failure.js";
import { Interest, type Registration } from "./interest.js";
import * as tables from "./tables.js";
import { parseTopics } from "./topics.js";
import type { Limits, StoredEnvelope, Topic, TopicInput, Topics } from "./types.js";
import { decode, encode, WireError } from "./wire.js";

const SUBSCRIBE = "/xmtp.backend.v1.SubscriptionService/Subscribe";
const SUBSCRIBE_STATIC = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";
/** A stream is given up after this many signs of life that did not come. */
const KEEPALIVES_MISSED_MAX = 3;
/** The most envelopes that wait for the reader. At either bound a stream is not read on before it took some. */
const WAITING_MAX = 4_096;
/** The bytes that wait for the reader, at most, as they arrived; the message that passes this is the last. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;

/** What a stream brings, of either kind. */
type Frame =
  | { kind: "started"; keepaliveIntervalMs: number; targets?: Target[] }
  | { kind: "applied"; id: bigint; targets: Target[] }
  | { kind: "messages"; envelopes: StoredEnvelope[] }
  | { kind: "ping" | "pong"; nonce: bigint }
  | { kind: "keepalive" };

/** What the reader has not taken yet. */
interface Waiting {
  readonly stored: StoredEnvelope;
  readonly registration: Registration;
  /** The bytes of the message it came in, if it is the last of it, and 0 otherwise. */
  bytes: number;
}

interface Target {
  topic: Topic;
  through: bigint;
}

/**
 * The envelopes of topics: what is stored, then what is published, without an end. Each envelope comes once, in the order of
 * its topic, over every connection that is lost meanwhile. It has one reader.
 *
 * A deployment that can not be reached is tried again until it can; a refusal is thrown as {@link BackendError}, and so is a
 * credential that could not be obtained five times in a row.
 *
 * @example
 * ```ts
 * const subscription = backend.subscribe(topics.welcomes(key));
 * for await (const { meta, envelope } of subscription) {
 *   if (envelope?.kind === "welcome") subscription.add(topics.groupMessages(groupOf(envelope)));
 * }
 * ```
 */
export class Subscription implements AsyncIterableIterator<StoredEnvelope, undefined> {
  readonly #connection: Connection;
  readonly #limits: Limits;
  readonly #interest = new Interest();
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  readonly #ended = new AbortController();
  #failure: BackendError | undefined;
  #stream: Stream | undefined;
  #isDuplex = false;
  #updates = 0;
  #updateTimer: ReturnType<typeof setTimeout> | undefined;
  /** Wakes those who wait for an envelope. */
  #readers: (() => void)[] = [];
  /** Wakes the pump, which waits for room or for a topic. */
  #wakePump: (() => void) | undefined;
  #caughtUp: (() => void)[] = [];

  /** @internal */
  constructor(connection: Connection, limits: Limits, input: Topics, signals: readonly (AbortSignal | undefined)[]) {
    this.#connection = connection;
    this.#limits = limits;
    this.#add(input);
    for (const signal of signals) {
      if (signal?.aborted === true) this.#end();
      else signal?.addEventListener("abort", () => this.#end(), { once: true, signal: this.#ended.signal });
    }
    void this.#pump();
  }

  /**
   * Reads more topics, without opening another stream. A topic that is read goes on from where it is.
   *
   * @throws {@link BackendError} `invalid-argument`
   */
  add(topics: Topics): void {
    this.#add(topics);
    this.#changed();
  }

  /** Reads topics no longer; nothing more of them comes. */
  remove(topics: TopicInput | Iterable<TopicInput>): void {
    for (const topic of parseTopics(topics).keys()) this.#interest.remove(topic);
    this.#changed();
    this.#settleCaughtUp();
  }

  /** Where each topic was taken up to: what another subscription goes on from. */
  cursors(): Map<Topic, bigint> {
    return this.#interest.cursors();
  }

  /**
   * Resolves when the reader has taken everything that the topics held when they were registered, or when the subscription has
   * ended.
   */
  caughtUp(): Promise<void> {
    return new Promise((resolve) => {
      this.#caughtUp.push(resolve);
      this.#settleCaughtUp();
    });
  }

  async next(): Promise<IteratorResult<StoredEnvelope, undefined>> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first !== undefined) {
        const { stored, registration, bytes } = first;
        this.#waitingBytes -= bytes;
        this.#wakePump?.();
        // What waited of a topic that was removed since is of no interest.
        if (!this.#interest.holds(registration)) continue;
        this.#interest.hand(registration, stored.meta.sequenceId);
        this.#settleCaughtUp();
        return { done: false, value: stored };
      }
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure !== undefined) throw failure;
      if (this.#ended.signal.aborted) return { done: true, value: undefined };
      await new Promise<void>((resolve) => this.#readers.push(resolve));
    }
  }

  /** Ends the subscription. */
  return(): Promise<IteratorResult<StoredEnvelope, undefined>> {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #add(input: Topics): void {
    const cursors = parseTopics(input);
    const { maxStreamTopics } = this.#limits;
    if (this.#interest.size + cursors.size > maxStreamTopics) {
      throw new BackendError("invalid-argument", `A subscription carries at most ${maxStreamTopics} topics: open another.`);
    }
    for (const [topic, after] of cursors) this.#interest.add(topic, after);
  }

  /** Opens one stream after another until the subscription ends. */
  async #pump(): Promise<void> {
    let failures = 0;
    /** Streams in a row that began and ended soon, without an envelope: a server may take every stream, and end it at once. */
    let brief = 0;
    let refusals = 0;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      if (this.#interest.size === 0) {
        await this.#change();
        continue;
      }
      let begunAt = Infinity;
      const end = await this.#read((isNews) => {
        begunAt = Math.min(begunAt, Date.now());
        if (isNews) brief = 0;
      }).catch((thrown: unknown) => (thrown instanceof CallFailure ? thrown.end : drawn("internal", String(thrown), thrown)));
      this.#stream?.close();
      this.#stream = undefined;
      clearTimeout(this.#updateTimer);
      this.#updateTimer = undefined;
      if (end === "reopened" || signal.aborted) continue;
      refusals = end.code === "unauthenticated" ? refusals + 1 : 0;
      // A server that ends a stream well, or gives it up, leaves it to be opened again.
      if (end.code !== "ok" && end.code !== "cancelled" && (!mayRepeat(end) || refusals === ATTEMPTS_MAX)) {
        this.#failure = backendError("Subscribe", new CallFailure(end));
        return this.#end();
      }
      if (Date.now() - begunAt >= LONGEST_DELAY_MS) brief = 0;
      failures = begunAt < Infinity ? (brief += 1) : failures + 1;
      await this.#connection.pause(delayAfter(failures), signal);
    }
  }

  /** Reads one stream to its end. */
  async #read(onMessage: (isNews: boolean) => void): Promise<End | "reopened"> {
    const stream = this.#open();
    for (;;) {
      while (this.#isFull && !this.#ended.signal.aborted) await this.#change();
      const arrival = await stream.next();
      if (this.#ended.signal.aborted || this.#stream !== stream) return "reopened";
      if ("end" in arrival) return arrival.end;
      try {
        const table = this.#isDuplex ? tables.subscribeResponse : tables.subscribeStaticResponse;
        onMessage(this.#take(decode(table, arrival.message) as Frame | undefined, arrival.message.length, stream));
      } catch (thrown) {
        if (!(thrown instanceof WireError)) throw thrown;
        return drawn("internal", `a message of the stream does not decode: ${thrown.message}`, thrown);
      }
    }
  }

  #open(): Stream {
    const connection = this.#connection;
    const { maxStaticTopics } = this.#limits;
    const isOnlyDuplex = this.#interest.size > maxStaticTopics;
    this.#isDuplex = connection.canDuplex || (isOnlyDuplex && !connection.isDuplexBlocked);
    if (this.#isDuplex) {
      this.#interest.begin();
      this.#updates = 0;
      this.#stream = connection.openDuplex(SUBSCRIBE);
      this.#update();
      return this.#stream;
    }
    if (isOnlyDuplex) {
      const message = `WebSockets do not get through, and without one a subscription carries at most ${maxStaticTopics} topics`;
      throw new CallFailure(drawn("invalid-argument", message));
    }
    const request = encode(tables.subscribeStaticRequest, { topics: this.#interest.whole() });
    this.#stream = connection.open(SUBSCRIBE_STATIC, request);
    return this.#stream;
  }

  get #isFull(): boolean {
    return this.#waiting.length >= WAITING_MAX || this.#waitingBytes >= WAITING_BYTES_MAX;
  }

  /** Takes a message of so many bytes; says whether it brought an envelope. */
  #take(frame: Frame | undefined, bytes: number, stream: Stream): boolean {
    let last: Waiting | undefined;
    switch (frame?.kind) {
      case "started": {
        const probe = this.#isDuplex ? encode(tables.subscribeRequest, { kind: "ping", nonce: 1n }) : undefined;
        if (frame.keepaliveIntervalMs > 0) stream.expect(frame.keepaliveIntervalMs * KEEPALIVES_MISSED_MAX, probe);
        this.#interest.aim(frame.targets ?? []);
        break;
      }
      case "applied":
        this.#interest.applied(frame.id, frame.targets);
        this.#update();
        break;
      case "messages":
        for (const stored of frame.envelopes) {
          const registration = this.#interest.take(stored.meta.topic, stored.meta.sequenceId);
          if (registration !== undefined) this.#waiting.push((last = { stored, registration, bytes: 0 }));
        }
        if (last !== undefined) {
          last.bytes = bytes;
          this.#waitingBytes += bytes;
        }
        this.#wakeReaders();
        break;
      case "ping":
        stream.send(encode(tables.subscribeRequest, { kind: "pong", nonce: frame.nonce }));
        break;
      default:
    }
    this.#settleCaughtUp();
    return last !== undefined;
  }

  /** What is read has changed: the open stream is told, or another is opened. */
  #changed(): void {
    this.#wakePump?.();
    if (this.#stream === undefined) return;
    if (this.#isDuplex) this.#update();
    else if (this.#interest.hasUnread) {
      const stream = this.#stream;
      this.#stream = undefined;
      stream.close();
    }
  }

  /** Tells the open stream what changed, once this turn is over, and not more often than the deployment takes (API-258). */
  #update(): void {
    if (this.#updateTimer !== undefined) return;
    const { maxUpdateBurst, maxUpdateFramesPerSecond, maxUpdateAdds, maxUpdateRemoves } = this.#limits;
    const delayMs = this.#updates < maxUpdateBurst / 2 ? 0 : Math.ceil(1_000 / maxUpdateFramesPerSecond);
    this.#updateTimer = setTimeout(() => {
      this.#updateTimer = undefined;
      const update = this.#interest.nextUpdate(maxUpdateAdds, maxUpdateRemoves);
      if (update === undefined) return;
      this.#updates += 1;
      this.#stream?.send(encode(tables.subscribeRequest, { kind: "update", ...update }));
    }, delayMs);
  }

  /** Resolves at the next change of the topics, when the reader takes something, or at the end. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakePump = resolve;
    });
  }

  #settleCaughtUp(): void {
    if (this.#caughtUp.length === 0 || (!this.#ended.signal.aborted && !this.#interest.isCaughtUp)) return;
    for (const resolve of this.#caughtUp.splice(0)) resolve();
  }

  #end(): void {
    this.#ended.abort();
    this.#stream?.close();
    clearTimeout(this.#updateTimer);
    this.#wakePump?.();
    this.#wakeReaders();
    this.#settleCaughtUp();
  }

  /** Wakes everyone who waits for an envelope; who finds none waits again. */
  #wakeReaders(): void {
    for (const wake of this.#readers.splice(0)) wake();
  }
}
