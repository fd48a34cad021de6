// What the package's connection does while it waits: it is woken, it notices silence, and it asks for a credential once.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, mock, test } from "node:test";
import { Door, answered } from "../support/door.mjs";
import { groupId, groupTopic } from "../support/envelopes.mjs";
import { frame } from "../support/raw.mjs";
import { decode, encode } from "../support/wire.mjs";

const dist = new URL("../../target/client-package/dist/", import.meta.url);
const { Connection } = await import(new URL("transport/connection.js", dist));
const { Subscription } = await import(new URL("backend/subscription.js", dist));
const { Interest } = await import(new URL("backend/interest.js", dist));
const { topics } = await import(new URL("backend/index.js", dist));
const { CredentialSource } = await import(new URL("transport/credential.js", dist));

const PATH = "/xmtp.backend.v1.SubscriptionService/Subscribe";
const LONG_MS = 3_600_000;

/** WebSockets that a test plays the server of. */
class FakeSocket extends EventTarget {
  static OPEN = 1;
  static CONNECTING = 0;
  static all = [];
  readyState = FakeSocket.CONNECTING;
  sent = [];

  constructor(url, protocols) {
    super();
    Object.assign(this, { url, protocols });
    FakeSocket.all.push(this);
  }

  open() {
    this.readyState = FakeSocket.OPEN;
    this.dispatchEvent(new Event("open"));
  }

  say(payload, flag = 0) {
    this.sayRaw(new Uint8Array(frame(Buffer.from(payload), flag)).buffer);
  }

  sayRaw(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }

  end(code) {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event("close"), { code }));
  }

  send(bytes) {
    this.sent.push(Buffer.from(bytes).toString("hex"));
  }

  close() {
    this.readyState = 3;
  }
}

const realSocket = globalThis.WebSocket;
const take = () => {
  FakeSocket.all = [];
  globalThis.WebSocket = FakeSocket;
};
afterEach(() => {
  globalThis.WebSocket = realSocket;
  mock.timers.reset();
});

/** Lets everything that waits for nothing go on. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("a connection", () => {
  test("wakes whoever waits to try again when it is told to reconnect, or when the browser goes online", async () => {
    const browser = new EventTarget();
    globalThis.addEventListener = browser.addEventListener.bind(browser);
    globalThis.removeEventListener = browser.removeEventListener.bind(browser);
    try {
      const connection = new Connection("http://127.0.0.1");
      const pauses = [connection.pause(LONG_MS), connection.pause(LONG_MS)];
      connection.reconnectNow();
      await Promise.all(pauses);
      const pause = connection.pause(LONG_MS);
      browser.dispatchEvent(new Event("online"));
      await pause;
      const abort = new AbortController();
      const ended = connection.pause(LONG_MS, abort.signal);
      abort.abort();
      await ended;
    } finally {
      delete globalThis.addEventListener;
      delete globalThis.removeEventListener;
    }
  });

  test("asks an open stream for a sign of life when it is told to reconnect, and gives up one that gives none", async () => {
    take();
    mock.timers.enable({ apis: ["setTimeout"] });
    const connection = new Connection("http://127.0.0.1");
    const stream = connection.openDuplex(PATH);
    await settle();
    const [socket] = FakeSocket.all;
    assert.equal(socket.url, `ws://127.0.0.1${PATH}`);
    socket.open();
    socket.say("started");
    assert.equal(Buffer.from((await stream.next()).message).toString(), "started");
    stream.expect(LONG_MS, Buffer.from("ping"));
    const answeredInTime = stream.next();
    connection.reconnectNow();
    connection.reconnectNow();
    assert.deepEqual(socket.sent, [frame(Buffer.from("ping")).toString("hex")], "one probe at a time");
    socket.say("pong");
    assert.equal(Buffer.from((await answeredInTime).message).toString(), "pong");
    connection.reconnectNow();
    const next = stream.next();
    mock.timers.tick(LONG_MS / 2);
    const { end } = await next;
    assert.deepEqual([end.code, end.isStated], ["unavailable", false]);
  });

  test("gives a stream up that is silent for longer than it said", async () => {
    take();
    mock.timers.enable({ apis: ["setTimeout"] });
    const stream = new Connection("http://127.0.0.1").openDuplex(PATH);
    await settle();
    FakeSocket.all[0].say("started");
    await stream.next();
    stream.expect(1_000);
    const next = stream.next();
    mock.timers.tick(999);
    FakeSocket.all[0].say("alive");
    assert.ok("message" in (await next));
    const last = stream.next();
    mock.timers.tick(1_000);
    assert.equal((await last).end.code, "unavailable");
  });

  test("takes each message of a WebSocket for one frame, and nothing else for one", async () => {
    const two = Buffer.concat([frame(Buffer.from("a")), frame(Buffer.from("b"))]);
    for (const bad of ["text", new ArrayBuffer(0), new Uint8Array(two).buffer, new Uint8Array([0, 0, 0, 0, 9, 1]).buffer]) {
      take();
      const stream = new Connection("http://127.0.0.1").openDuplex(PATH);
      await settle();
      FakeSocket.all[0].sayRaw(bad);
      const { end } = await stream.next();
      assert.deepEqual([end.code, end.isStated], ["internal", false]);
    }
  });

  test("reads how a WebSocket ended from its trailers, and from its close code where there are none", async () => {
    const ends = [
      [(socket) => socket.say("grpc-status:7\r\n", 0x80), "permission-denied", true],
      [(socket) => socket.end(4008), "resource-exhausted", true],
      [(socket) => socket.end(1006), "unavailable", false],
      [(socket) => socket.end(1000), "unavailable", false],
    ];
    for (const [finish, code, isStated] of ends) {
      take();
      const stream = new Connection("http://127.0.0.1").openDuplex(PATH);
      await settle();
      FakeSocket.all[0].say("started");
      finish(FakeSocket.all[0]);
      assert.ok("message" in (await stream.next()), "what came before the end is read first");
      const { end } = await stream.next();
      assert.deepEqual([end.code, end.isStated], [code, isStated]);
    }
  });

  test("offers its token as a subprotocol, and says again what it sent when the token is refused", async () => {
    take();
    let asked = 0;
    const stream = new Connection("http://127.0.0.1", () => `token ${asked++}`).openDuplex(PATH);
    stream.send(Buffer.from("update"));
    await settle();
    const [first] = FakeSocket.all;
    const subprotocol = (token) => `conclave.bearer.${Buffer.from(token).toString("base64url")}`;
    assert.deepEqual(first.protocols, ["grpc-web", subprotocol("token 0")]);
    first.open();
    first.say("grpc-status:16\r\n", 0x80);
    await settle();
    const [, second] = FakeSocket.all;
    second.open();
    assert.deepEqual(second.protocols, ["grpc-web", subprotocol("token 1")]);
    assert.deepEqual(second.sent, first.sent);
    second.say("grpc-status:16\r\n", 0x80);
    assert.equal((await stream.next()).end.code, "unauthenticated");
    assert.equal(FakeSocket.all.length, 2);
  });

  /** A connection whose WebSocket did not open, and a body that is being read in its place. */
  const fallenBack = async (door) => {
    const connection = new Connection("http://127.0.0.1");
    const socket = connection.openDuplex(PATH);
    await settle();
    FakeSocket.all.at(-1).end(1006);
    assert.equal((await socket.next()).end.code, "unavailable");
    assert.equal(connection.canDuplex, false);
    door.inPlace = () => answered("xmtp.backend.v1.Ping", { nonce: 1n });
    const body = connection.open("/x/Static", new Uint8Array());
    assert.deepEqual(Buffer.from((await body.next()).message), Buffer.from(encode("xmtp.backend.v1.Ping", { nonce: 1n })));
    assert.equal(FakeSocket.all.length, 2, "another is tried, now that a body gets through");
    return { connection, body, trial: FakeSocket.all[1] };
  };

  test("leaves WebSockets alone for a while where a body gets through and they do not", async () => {
    take();
    const door = new Door();
    try {
      const { connection, body, trial } = await fallenBack(door);
      assert.equal(connection.canDuplex, false);
      trial.end(1006);
      assert.equal(connection.canDuplex, false);
      assert.equal((await body.next()).end.code, "ok", "what is read by a body goes on");
      mock.timers.enable({ apis: ["Date"], now: Date.now() + LONG_MS });
      assert.equal(connection.canDuplex, true, "which is forgotten after a while");
    } finally {
      door.close();
    }
  });

  test("goes back to WebSockets where they did not get through only because nothing did", async () => {
    take();
    const door = new Door();
    try {
      const { connection, body, trial } = await fallenBack(door);
      trial.say("started");
      assert.equal(connection.canDuplex, true);
      const { end } = await body.next();
      assert.deepEqual([end.code, end.isStated], ["unavailable", false], "what is read by a body is opened again");
    } finally {
      door.close();
    }
  });

  test("takes a WebSocket that can not be made for one that does not get through", async () => {
    globalThis.WebSocket = class {
      constructor() {
        throw new DOMException("the policy forbids it", "SecurityError");
      }
    };
    const connection = new Connection("http://127.0.0.1");
    const { end } = await connection.openDuplex(PATH).next();
    assert.deepEqual([end.code, end.cause.name, connection.canDuplex], ["unavailable", "SecurityError", false]);
  });

  test("takes turns where neither a WebSocket nor a body gets through", async () => {
    take();
    const door = new Door();
    try {
      const connection = new Connection("http://127.0.0.1");
      const socket = connection.openDuplex(PATH);
      await settle();
      FakeSocket.all.at(-1).end(1006);
      await socket.next();
      assert.equal(connection.canDuplex, false);
      door.inPlace = () => {
        throw new TypeError("offline");
      };
      assert.equal((await connection.open("/x/Static", new Uint8Array()).next()).end.code, "unavailable");
      assert.equal(connection.canDuplex, true);
    } finally {
      door.close();
    }
  });

  test("gives a reader up that falls too far behind, after what it has", async () => {
    take();
    const stream = new Connection("http://127.0.0.1").openDuplex(PATH);
    await settle();
    const large = "x".repeat(8 * 1024 * 1024);
    for (let at = 0; at < 6; at += 1) FakeSocket.all[0].say(large);
    let read = 0;
    let arrival = await stream.next();
    for (; "message" in arrival; arrival = await stream.next()) read += 1;
    assert.ok(read >= 4 && read < 6, `${read}`);
    assert.deepEqual([arrival.end.code, arrival.end.isStated], ["unavailable", false]);
  });
});

describe("a credential", () => {
  test("is asked for once by everyone who is refused at once, and again after it failed", async () => {
    let asked = 0;
    const source = new CredentialSource(() => {
      asked += 1;
      if (asked === 2) throw new Error("the issuer is away");
      return `token ${asked}`;
    });
    assert.deepEqual(await Promise.all([source.token(), source.token()]), ["token 1", "token 1"]);
    await assert.rejects(source.token("token 1"), /unauthenticated/);
    assert.deepEqual(await Promise.all([source.token("token 1"), source.token("token 1")]), ["token 3", "token 3"]);
    assert.equal(await source.token("token 1"), "token 3", "somebody else has another already");
    assert.equal(asked, 3);
  });

  test("that never comes does not keep a caller who gives up", async () => {
    const controller = new AbortController();
    const connection = new Connection("http://127.0.0.1:9", () => new Promise(() => undefined));
    const calling = connection.unary("/a", new Uint8Array(), { signal: controller.signal });
    const reason = new Error("no longer wanted");
    controller.abort(reason);
    await assert.rejects(calling, (thrown) => thrown === reason);
  });
});

describe("a subscription", () => {
  beforeEach(() => take());

  const LIMITS = { maxStreamTopics: 10, maxStaticTopics: 10, maxUpdateBurst: 10, maxUpdateAdds: 10, maxUpdateRemoves: 10 };
  const group = groupId();
  const topic = topics.groupMessages(group);
  const say = (socket, name, value) => socket.say(encode("xmtp.backend.v1.SubscribeResponse", { response: { case: name, value } }));
  /** The socket that was opened last, its stream begun and its topics registered. */
  const begun = async () => {
    await settle();
    const socket = FakeSocket.all.at(-1);
    socket.open();
    say(socket, "started", { keepaliveIntervalMs: 30_000 });
    await new Promise((resolve) => setTimeout(resolve));
    say(socket, "applied", { id: 1n, targets: [] });
    await settle();
    return socket;
  };
  const publish = (socket, sequenceId, data) => {
    const payload = { case: "groupMessage", value: { data } };
    const meta = { cursor: { sequenceId }, topic: groupTopic(group) };
    say(socket, "messages", { envelopes: [{ meta, envelope: { payload } }] });
  };
  /** A connection whose waits are over at once, each written down; after `most` of them none is. */
  const hasty = (most, credential) => {
    const delays = [];
    const connection = new Connection("http://127.0.0.1:9", credential);
    connection.pause = (delayMs) => (delays.push(delayMs) < most ? settle() : new Promise(() => undefined));
    return { connection, delays };
  };

  test("holds no more bytes than its bound for a reader who does not read, and then goes on from where it was", async () => {
    const { connection } = hasty(2);
    const subscription = new Subscription(connection, LIMITS, [topic], []);
    const first = await begun();
    const large = new Uint8Array(4 * 1024 * 1024);
    let sent = 0n;
    for (; first.readyState === FakeSocket.OPEN && sent < 20n; await settle()) publish(first, (sent += 1n), large);
    assert.ok(sent < 20n, "the stream was given up: what it brought is neither kept nor dropped in silence");
    const read = [];
    const reading = (async () => {
      for await (const { meta } of subscription) read.push(meta.sequenceId);
    })();
    for (let turns = 0; FakeSocket.all.length === 1 && turns < 1_000; turns += 1) await settle();
    const second = await begun();
    const { adds } = decode("xmtp.backend.v1.SubscribeRequest", Buffer.from(second.sent[0], "hex").subarray(5)).request.value;
    const { sequenceId } = adds[0].cursor;
    publish(second, sequenceId + 1n, new Uint8Array(1));
    await settle();
    assert.deepEqual(read, Array.from({ length: Number(sequenceId) + 1 }, (_, at) => BigInt(at + 1)), "each once, in order");
    await subscription.return();
    await reading;
  });

  test("waits longer each time where streams begin and end at once, and not where they bring something or last", async () => {
    mock.timers.enable({ apis: ["Date"], now: 1 });
    const { connection, delays } = hasty(100);
    const subscription = new Subscription(connection, LIMITS, [topic], []);
    let sequenceId = 0n;
    const round = async (between) => {
      const socket = await begun();
      between?.(socket);
      await settle();
      socket.say("grpc-status:0\r\n", 0x80);
      await settle();
      return delays.at(-1);
    };
    const shortest = (delayMs) => delayMs <= 120;
    assert.ok(shortest(await round()));
    for (let at = 0; at < 5; at += 1) await round();
    assert.ok(delays.at(-1) >= 2_560, `${delays}`);
    assert.ok(shortest(await round((socket) => publish(socket, (sequenceId += 1n), new Uint8Array(1)))), `${delays}`);
    await round();
    await round();
    assert.ok(!shortest(delays.at(-1)), `${delays}`);
    assert.ok(shortest(await round(() => mock.timers.tick(LONG_MS))), `${delays}`);
    Object.defineProperty(connection, "canDuplex", { value: true });
    for (let at = 0; at < 5; at += 1) {
      FakeSocket.all.at(-1).end(1006);
      await settle();
      await settle();
    }
    assert.ok(delays.at(-1) >= 1_280, `${delays}`);
    await round();
    assert.ok(delays.at(-1) <= 240, `that nothing was there before is forgotten: ${delays}`);
    await subscription.return();
  });

  test("ends by a typed error with its cause where a credential can not be obtained, after five attempts", async () => {
    let asked = 0;
    const reason = new RangeError("the issuer is away");
    const { connection, delays } = hasty(20, () => {
      asked += 1;
      throw reason;
    });
    const subscription = new Subscription(connection, LIMITS, [topic], []);
    await assert.rejects(subscription.next(), (error) => {
      assert.deepEqual([error.name, error.code, error.retryable, error.cause], ["BackendError", "unauthenticated", true, reason]);
      return true;
    });
    assert.deepEqual([asked, delays.length], [5, 4]);
    assert.ok(delays.every((delayMs, at) => at === 0 || delayMs > delays[at - 1]), `${delays}`);
  });

  test("knows whether it has caught up without a look at every topic", () => {
    const interest = new Interest();
    const names = Array.from({ length: 1_000 }, (_, at) => `00${String(at).padStart(32, "0")}`);
    for (const name of names) interest.add(name, 0n);
    interest.whole();
    interest.aim(names.map((name) => ({ topic: name, through: 1n })));
    let looks = 0;
    const registrations = names.map((name) => {
      const registration = interest.take(name, 1n);
      let { taken } = registration;
      const get = () => ((looks += 1), taken);
      return Object.defineProperty(registration, "taken", { get, set: (value) => (taken = value) });
    });
    const answers = registrations.map((registration) => {
      interest.hand(registration, 1n);
      return interest.isCaughtUp;
    });
    assert.ok(looks <= 2 * names.length, `${looks} looks at ${names.length} topics`);
    assert.deepEqual([answers.indexOf(true), interest.isCaughtUp], [999, true]);
    interest.add("00".padEnd(34, "f"), 0n);
    assert.equal(interest.isCaughtUp, false);
    interest.remove("00".padEnd(34, "f"));
    assert.equal(interest.isCaughtUp, true);
  });
});

describe("a subscription of more topics than a body can carry", () => {
  beforeEach(() => take());
  afterEach(() => {
    globalThis.WebSocket = realSocket;
  });

  test("tries WebSockets again after one that did not get through", async () => {
    const [first, second] = ["00".padEnd(34, "1"), "00".padEnd(34, "2")];
    const connection = new Connection("http://127.0.0.1:9");
    const again = new Promise((resolve) => {
      connection.pause = async () => resolve();
    });
    const limits = { maxStreamTopics: 2, maxStaticTopics: 1, maxUpdateBurst: 2 };
    const subscription = new Subscription(connection, limits, [first, second], []);
    const reading = subscription.next();
    await new Promise(setImmediate);
    FakeSocket.all[0].end(1006);
    await again;
    await new Promise(setImmediate);
    assert.equal(FakeSocket.all.length, 2);
    await subscription.return();
    assert.deepEqual(await reading, { done: true, value: undefined });
  });
});
