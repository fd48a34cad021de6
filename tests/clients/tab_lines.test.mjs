// What the tabs of one store say to each other, without a browser: the parser, the requests, the owner's desk.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../../target/client-package/dist/", import.meta.url));
const { parse, sealed, IN_FLIGHT_MAX } = await import(`${dist}tabs/protocol.js`);
const { Line, LOST } = await import(`${dist}tabs/line.js`);
const { Desk } = await import(`${dist}tabs/desk.js`);
const { Messages } = await import(`${dist}messages.js`);
const { Broadcast } = await import(`${dist}broadcast.js`);
const { TabSubscription } = await import(`${dist}tabs/subscription.js`);
const { AcknowledgeError, ConclaveError, fromCore, HistoryError, ListenError, SendError } = await import(`${dist}errors.js`);

/** An endpoint that a test answers for: each request waits in `asked` until it is settled. */
class Scripted {
  asked = [];
  listeners = new Set();
  request(operation, argumentsJson, signal) {
    return new Promise((resolve, reject) => this.asked.push({ operation, argumentsJson, signal, resolve, reject }));
  }
  watch(listener) {
    this.listeners.add(listener);
    listener('["now"]');
    return () => this.listeners.delete(listener);
  }
  /** The requests there are, as `operation arguments`, once what was set off has run. */
  async words() {
    await turn();
    return this.asked.map(({ operation, argumentsJson }) => `${operation} ${argumentsJson}`);
  }
}

/** Everything that was set off has run. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A line to an endpoint of its own, over messages that cross as they do between tabs. */
const lineTo = (running, epoch = "epoch", reckon = async () => undefined) => {
  const desk = new Desk(running, epoch, reckon);
  const attendance = desk.attend((message) => line.take(parse(structuredClone(sealed(message)))));
  const line = new Line(epoch, (message) => attendance.take(parse(structuredClone(sealed(message)))));
  return { line, desk, leave: attendance.leave };
};

const delivery = (letter) => JSON.stringify({ token: `dlv_${letter.repeat(43)}`, message: { postId: letter } });

describe("the words of tabs", () => {
  test("every message of the protocol is read back as it was", () => {
    for (const message of [
      { kind: "hello", tab: "a" },
      { kind: "owner", epoch: "e", state: "opening" },
      { kind: "welcome", epoch: "e", terms: "{}" },
      { kind: "ask", epoch: "e", number: 1, operation: "send", argumentsJson: "{}" },
      { kind: "abort", epoch: "e", number: 1 },
      { kind: "bye", epoch: "e" },
      { kind: "answer", epoch: "e", number: 1, json: "" },
      { kind: "failure", epoch: "e", number: 1, failure: { code: "closed" } },
      { kind: "events", epoch: "e", number: 1, events: "[]" },
    ]) {
      const { protocol, ...read } = parse(sealed(message));
      assert.equal(protocol, 1);
      assert.deepEqual(read, message);
    }
  });

  test("anything else is nothing, and only an owner of another protocol is foreign", () => {
    const good = sealed({ kind: "answer", epoch: "e", number: 1, json: "" });
    for (const data of [
      undefined, null, 7, "hello", [], {}, { kind: "hello", tab: "a" }, { ...good, number: "1" }, { ...good, json: undefined },
      { ...good, kind: "toString" }, { ...good, protocol: "1" }, { protocol: 1, kind: "failure", epoch: "e", number: 1, failure: null },
      { ...good, protocol: 2 }, { protocol: 2, kind: "hello", tab: "a" }, { protocol: 2, kind: "owner", state: "leaving" },
    ]) {
      assert.equal(parse(data), undefined, JSON.stringify(data));
    }
    assert.equal(parse({ protocol: 2, kind: "owner", state: "open" }), "foreign");
    assert.equal(parse({ protocol: 0, kind: "welcome" }), "foreign");
  });
});

describe("a line to the owner", () => {
  test("answers come to their own requests, whatever their order", async () => {
    const running = new Scripted();
    const { line } = lineTo(running);
    const [one, two] = [line.request("history", "1"), line.request("verify", "2")];
    running.asked[1].resolve("second");
    running.asked[0].resolve("first");
    assert.deepEqual(await Promise.all([one, two]), ["first", "second"]);
  });

  test("a failure crosses with its class, code, words, retryability and cause", async () => {
    const running = new Scripted();
    const { line } = lineTo(running);
    const sending = line.request("send", "{}");
    const cause = new AcknowledgeError("persistence-failed", "the disk", { cause: new RangeError("deep") });
    running.asked[0].reject(new SendError("network-unavailable", "out of reach", { retryable: true, cause }));
    const failure = await sending.catch((error) => error);
    assert.ok(failure instanceof SendError);
    assert.deepEqual([failure.code, failure.message, failure.retryable], ["network-unavailable", "out of reach", true]);
    assert.ok(failure.cause instanceof AcknowledgeError);
    assert.equal(failure.cause.code, "persistence-failed");
    assert.ok(failure.cause.cause instanceof RangeError);
  });

  test("an abort rejects with the signal's reason at once and reaches the owner", async () => {
    const running = new Scripted();
    const { line } = lineTo(running);
    const controller = new AbortController();
    const sending = line.request("send", "{}", controller.signal);
    controller.abort("enough");
    assert.equal(await sending.catch((reason) => reason), "enough");
    assert.ok(running.asked[0].signal.aborted);
  });

  test("what waits when the owner is gone is to be asked again, and a late answer is nobody's", async () => {
    const running = new Scripted();
    const { line } = lineTo(running);
    const sending = line.request("send", "{}");
    line.lose();
    running.asked[0].resolve("late");
    assert.equal(await sending.catch((reason) => reason), LOST);
    assert.equal(await line.request("send", "{}").catch((reason) => reason), LOST);
  });

  test("a tab has no more than its share of requests open, on either side", async () => {
    const running = new Scripted();
    const { line, desk } = lineTo(running);
    const waiting = Array.from({ length: IN_FLIGHT_MAX }, () => line.request("send", "{}"));
    const crowded = await line.request("send", "{}").catch((error) => error);
    assert.ok(crowded instanceof SendError && crowded.retryable);
    assert.match(crowded.message, /this tab has 1024 requests open/);
    assert.equal(running.asked.length, IN_FLIGHT_MAX);
    running.asked[0].resolve("");
    await waiting[0];
    line.request("send", "{}");
    assert.equal(running.asked.length, IN_FLIGHT_MAX + 1);
    const said = [];
    const careless = desk.attend((message) => said.push(message));
    for (let number = 0; number <= IN_FLIGHT_MAX; number += 1) {
      careless.take({ kind: "ask", epoch: "epoch", number, operation: "send", argumentsJson: "{}" });
    }
    assert.equal(running.asked.length, 2 * IN_FLIGHT_MAX + 1);
    assert.deepEqual(said.map(({ kind, number }) => [kind, number]), [["failure", IN_FLIGHT_MAX]]);
  });

  test("a request beyond what the owner still carries out of given up ones is refused and not left without an answer", async () => {
    const running = new Scripted();
    const { line } = lineTo(running);
    const controller = new AbortController();
    const given = Array.from({ length: IN_FLIGHT_MAX }, () => line.request("send", "{}", controller.signal));
    controller.abort("enough");
    await Promise.allSettled(given);
    const refused = await line.request("history", "{}").catch((error) => error);
    assert.ok(refused instanceof HistoryError && refused.retryable, String(refused));
    assert.match(refused.message, /this tab has 1024 requests open/);
    running.asked[0].reject("enough");
    await turn();
    const taken = line.request("history", "{}");
    running.asked.at(-1).resolve("page");
    assert.equal(await taken, "page");
  });

  test("a failure of an operation that is not known here is a failure all the same", () => {
    const failure = fromCore({ operation: "backend", code: "unavailable", message: "away", retryable: true });
    assert.ok(failure instanceof ConclaveError);
    assert.deepEqual([failure.code, failure.message, failure.retryable], ["unavailable", "away", true]);
  });

  test("a watch begins with the present state and ends on both sides", async () => {
    const running = new Scripted();
    const { line } = lineTo(running);
    const heard = [];
    const stop = line.watch((events) => heard.push(events));
    for (const listener of running.listeners) listener('["then"]');
    stop();
    await turn();
    assert.deepEqual(heard, ['["now"]', '["then"]']);
    assert.equal(running.listeners.size, 0);
  });

  test("a tab that leaves gives back its subscription, one taken while it left too", async () => {
    const running = new Scripted();
    const first = lineTo(running);
    void first.line.request("subscribe", "{}");
    running.asked[0].resolve("1");
    await turn();
    first.leave();
    const second = lineTo(running);
    void second.line.request("subscribe", "{}");
    second.leave();
    running.asked[2].resolve("2");
    const given = (number) => `unsubscribe {"subscription":${number}}`;
    assert.deepEqual(await running.words(), ["subscribe {}", given(1), "subscribe {}", given(2)]);
  });

  test("a subscriber that died just now does not keep the next one out", async () => {
    const running = new Scripted();
    let reckoned = 0;
    const { line } = lineTo(running, "epoch", async () => void (reckoned += 1));
    const taken = line.request("subscribe", "{}");
    running.asked[0].reject(new ListenError("already-listening", "taken"));
    await turn();
    assert.equal(reckoned, 1);
    running.asked[1].resolve("7");
    assert.equal(await taken, "7");
  });
});

describe("a subscription over several owners", () => {
  /** A subscription whose owners a test brings up. */
  const subscription = () => {
    let arrived;
    let next = new Promise((resolve) => (arrived = resolve));
    const owners = [];
    return {
      owners,
      taken: new TabSubscription(() => next, () => undefined),
      /** The owner is there, and takes the subscription. */
      async comes() {
        const running = new Scripted();
        const owner = { running, ...lineTo(running, `epoch ${owners.length}`) };
        owners.push(owner);
        arrived(owner.line);
        await turn();
        running.asked.shift().resolve("1");
        await turn();
        return owner;
      },
      goes() {
        next = new Promise((resolve) => (arrived = resolve));
        owners.at(-1).line.lose();
      },
    };
  };

  test("what was given out and not acknowledged is not given out again; what was on its way is not lost", async () => {
    const { taken, comes, goes } = subscription();
    const read = () => taken.next();
    const one = read();
    const first = await comes();
    first.running.asked.shift().resolve(delivery("a"));
    assert.equal(await one, delivery("a"));
    const two = read();
    await turn();
    goes();
    first.running.asked.shift().resolve(delivery("b"));
    const second = await comes();
    second.running.asked.shift().resolve(delivery("a"));
    await turn();
    second.running.asked.shift().resolve(delivery("b"));
    assert.equal(await two, delivery("b"));
  });

  test("an endpoint that ends elsewhere does not end the iteration; to cancel it does", async () => {
    const { taken, comes, goes } = subscription();
    const reading = taken.next();
    const first = await comes();
    first.running.asked.shift().resolve("");
    await turn();
    goes();
    const second = await comes();
    assert.equal(second.running.asked[0].operation, "next");
    const cancelled = taken.cancel();
    second.running.asked.shift().resolve("");
    assert.equal(await reading, undefined);
    assert.deepEqual(await second.running.words(), ['unsubscribe {"subscription":1}']);
    second.running.asked.shift().resolve("");
    await cancelled;
  });

  test("a cancelled wait for the next owner ends at once", async () => {
    const { taken, comes, goes } = subscription();
    const reading = taken.next();
    await comes();
    goes();
    await turn();
    await taken.cancel();
    assert.equal(await reading, undefined);
  });

  /** A tab's seat, as far as messages are read there, over an owner whose subscriptions `read` answers. */
  const seatOver = (read) => {
    const { line } = lineTo(new Owner(read));
    let held;
    return {
      subscribe() {
        if (held !== undefined) throw new ListenError("already-listening", "messages are already being read");
        const subscription = new TabSubscription(
          async () => line,
          () => {
            if (held === subscription) held = undefined;
          },
        );
        return (held = subscription);
      },
    };
  };

  /** An endpoint with one subscriber at a time, which takes its time to subscribe. */
  class Owner {
    #read;
    #count = 0;
    #subscriber;
    constructor(read) {
      this.#read = read;
    }
    async request(operation, argumentsJson) {
      await turn();
      const { subscription } = JSON.parse(argumentsJson);
      if (operation === "next") return subscription === this.#subscriber ? this.#read(subscription) : "";
      if (operation === "unsubscribe" && subscription === this.#subscriber) this.#subscriber = undefined;
      if (operation !== "subscribe") return "";
      if (this.#subscriber !== undefined) throw new ListenError("already-listening", "messages are already being read");
      return String((this.#subscriber = ++this.#count));
    }
  }

  test("an iteration that is ended while it begins is not in the way of the next", async () => {
    const seat = seatOver(() => delivery("a"));
    const controller = new AbortController();
    const first = new Messages(seat, controller.signal).next();
    controller.abort();
    const { value } = await new Messages(seat).next();
    assert.equal(value.message.postId, "a");
    assert.deepEqual(await first, { done: true, value: undefined });
  });

  test("an iteration that failed is not in the way of the next", async () => {
    const seat = seatOver((subscription) => {
      if (subscription === 1) throw new ListenError("decode-failed", "a stored message does not decode");
      return delivery("a");
    });
    await assert.rejects(new Messages(seat).next(), { code: "decode-failed" });
    assert.equal((await new Messages(seat).next()).value.message.postId, "a");
  });

  test("what has ended listens to its signal no longer", async () => {
    const { signal } = new AbortController();
    await new Broadcast().subscribe(signal, () => () => undefined).return();
    await new Messages(seatOver(), signal).return();
    assert.deepEqual(getEventListeners(signal, "abort"), []);
  });
});
