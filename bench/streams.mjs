// `cargo xtask bench streams`: what it takes to deliver what is published, beside a bare object that sends what it stored to
// its WebSockets. One client program reads both sides alike.

import { Deployment } from "../tests/support/deployment.mjs";
import * as envelopes from "../tests/support/envelopes.mjs";
import { frame, request } from "../tests/support/raw.mjs";
import { encode } from "../tests/support/wire.mjs";
import { cpuMs } from "./support/cpu.mjs";
import { isQuick, report } from "./support/figures.mjs";
import { startFloor } from "./support/floor.mjs";
import { Connection } from "./support/http.mjs";
import { Listener } from "./support/listener.mjs";
import { addressOf, median } from "./support/load.mjs";
import * as requests from "./support/requests.mjs";

const SUBSCRIBE = "/xmtp.backend.v1.SubscriptionService/Subscribe";
const BODY_BYTES = 1024;
const TURNS = isQuick ? 3 : 9;
const TURN_MS = isQuick ? 600 : 1_500;
const WARM_UP_MS = isQuick ? 800 : 3_000;
const FAN_OUTS = [1, 10, 100, 1_000];
const RELAYED = 1_000;
const TOPICS = 1_000;
const SLOW = { fast: 100, slow: 20 };
/** Frames before what is published: Started and Applied. */
const PREAMBLE = 2;
const IDLE_STREAMS = isQuick ? 100 : 1_000;
/** A silence so short that two minutes of it hold as many keepalives as an hour of the default one. */
const IDLE_KEEPALIVE_MS = 1_000;
const IDLE_KEEPALIVES = 120;

const text = requests.payload(BODY_BYTES);
/** Nobody is to be pinged while deliveries are counted. */
const variables = { CONCLAVE_KEEPALIVE_INTERVAL_MS: "3600000", CONCLAVE_MAX_PONG_WAIT_MS: "7200000" };

const subscribeRequest = (request) => frame(Buffer.from(encode("xmtp.backend.v1.SubscribeRequest", { request })));
const updateOf = (groups) => {
  const adds = groups.map((group) => ({ topic: envelopes.groupTopic(group) }));
  return subscribeRequest({ case: "update", value: { id: 1n, adds, removes: [] } });
};

/** A publisher and some listeners, each of which gets everything that is published. */
class Scene {
  #publisher;
  #next;
  #expect;
  #preamble;

  constructor({ pid, publisher, listeners, next, expect, preamble }) {
    Object.assign(this, { pid, listeners });
    this.#publisher = publisher;
    this.#next = next;
    this.#expect = expect;
    this.#preamble = preamble;
    this.rounds = 0;
  }

  /** Publishes once and resolves when every listener has it, with the time each took in ms. */
  async round() {
    this.rounds += 1;
    const wanted = this.#preamble + this.rounds;
    const begin = performance.now();
    const latencies = [];
    const arrived = this.listeners.map((listener) =>
      listener.reach(wanted).then(() => latencies.push(performance.now() - begin)));
    const answered = this.#publisher.send(this.#next());
    await Promise.all(arrived);
    this.#expect(await answered);
    return latencies;
  }

  async run(milliseconds) {
    const [begin, cpuBegin] = [performance.now(), cpuMs(this.pid)];
    const latencies = [];
    do latencies.push(...(await this.round())); while (performance.now() - begin < milliseconds);
    const seconds = (performance.now() - begin) / 1000;
    latencies.sort((one, other) => one - other);
    return {
      perSecond: latencies.length / seconds,
      p50: median(latencies),
      p99: latencies[Math.floor(latencies.length * 0.99)],
      cpuMs: (cpuMs(this.pid) - cpuBegin) / latencies.length,
    };
  }

  close() {
    this.#publisher.close();
    for (const listener of this.listeners) listener.close();
  }
}

async function floorScene(floor, name, count, how = "listen") {
  const listeners = [];
  for (let at = 0; at < count; at += 1) listeners.push(await Listener.open(floor.port, `/${name}/${how}`));
  const fresh = new requests.Fresh(floor.request(name, "broadcast", Buffer.from(text)));
  return new Scene({
    pid: floor.pid, listeners, preamble: 0, publisher: await Connection.open(floor.port),
    next: () => fresh.take(), expect: requests.expectStatusOk,
  });
}

async function backendScene(deployment, groups, count) {
  const { port, pid } = addressOf(deployment);
  const update = updateOf(groups);
  const listeners = [];
  for (let at = 0; at < count; at += 1) {
    const listener = await Listener.open(port, SUBSCRIBE);
    listener.send(update);
    await listener.reach(PREAMBLE);
    listeners.push(listener);
  }
  const ready = groups.map((group) => requests.publish([envelopes.groupMessage(group, text)]));
  return new Scene({
    pid, listeners, preamble: PREAMBLE, publisher: await Connection.open(port),
    next: () => ready[Math.floor(Math.random() * ready.length)].take(), expect: requests.expectSuccess,
  });
}

/** Turns of both sides, A B A B, and the figures wanted of them. */
async function compare(what, scenes, figures) {
  const turns = [];
  try {
    for (const scene of scenes) await scene.run(WARM_UP_MS);
    for (let turn = 0; turn < TURNS; turn += 1) turns.push([await scenes[0].run(TURN_MS), await scenes[1].run(TURN_MS)]);
  } finally {
    for (const scene of scenes) scene.close();
  }
  for (const { of, name, goal, isMoreBetter, unit, digits } of figures) {
    report({
      what: name ? `${what}, ${name}` : what,
      unit,
      digits,
      goal,
      isMoreBetter,
      floor: median(turns.map(([run]) => run[of])),
      backend: median(turns.map(([, run]) => run[of])),
      ratio: median(turns.map(([floorRun, run]) => run[of] / floorRun[of])),
      cpuRatio: median(turns.map(([floorRun, run]) => run.cpuMs / floorRun.cpuMs)),
    });
  }
}

const latency = (of, goal) => ({ of, goal, isMoreBetter: false, unit: `ms, ${of}`, digits: 2 });
const deliveries = (goal) => ({ of: "perSecond", goal, isMoreBetter: true, unit: "deliveries/s", digits: 0 });

async function deliver(floor, shards) {
  const deployment = await Deployment.start({ shards, variables, direct: true });
  const where = shards === 1 ? "one shard" : `${shards} shards`;
  try {
    for (const count of shards === 1 ? FAN_OUTS : [1]) {
      const scenes = [await floorScene(floor, `fan${shards}-${count}`, count),
        await backendScene(deployment, [envelopes.groupId()], count)];
      const figures = count === 1 ? [latency("p50", 1.5), latency("p99", null)]
        : [deliveries(count === 1_000 ? 0.7 : null), latency("p99", count === 1_000 ? 2 : null)];
      await compare(`publish sent to frame received, ${count} stream(s) on one topic, ${where}`, scenes, figures);
    }
    if (shards === 1) {
      // A stream of the backend is a Worker's own, which takes every push from the shard and makes a frame of it.
      const scenes = [await floorScene(floor, "relayed", RELAYED, "relay"),
        await backendScene(deployment, [envelopes.groupId()], RELAYED)];
      await compare(`${RELAYED} streams on one topic, against a bare Worker for each that passes messages on`, scenes,
        [deliveries(null), latency("p99", null)]);
    }
    const groups = requests.groups(TOPICS);
    const scenes = [await floorScene(floor, `topics${shards}`, 1), await backendScene(deployment, groups, 1)];
    await compare(`publish sent to frame received, any of ${TOPICS} topics on one stream, ${where}`, scenes,
      [latency("p50", null), latency("p99", null)]);
  } finally {
    await deployment.stop();
  }
}

/** The same readers with and without some that do not read; the second is the floor of the first. */
async function slowReaders() {
  const deployment = await Deployment.start({ shards: 1, variables, direct: true });
  try {
    const groups = [envelopes.groupId(), envelopes.groupId()];
    const scenes = [await backendScene(deployment, [groups[0]], SLOW.fast),
      await backendScene(deployment, [groups[1]], SLOW.fast)];
    const { port } = addressOf(deployment);
    for (let at = 0; at < SLOW.slow; at += 1) {
      const listener = await Listener.open(port, SUBSCRIBE);
      listener.send(updateOf([groups[1]]));
      await listener.reach(PREAMBLE);
      listener.pause();
    }
    await compare(`${SLOW.fast} streams on one topic beside ${SLOW.slow} whose clients do not read, against the same alone`,
      scenes, [deliveries(null), latency("p99", null)]);
  } finally {
    await deployment.stop();
  }
}

/** What idle streams cost objects: what their run has been asked when they are looked at again. */
async function idle() {
  const keepalive = { CONCLAVE_KEEPALIVE_INTERVAL_MS: String(IDLE_KEEPALIVE_MS) };
  const deployment = await Deployment.start({ shards: 1, testBuild: true, variables: keepalive, direct: true });
  try {
    const activity = async () => Number((await request(deployment.url, "/fail/shard/activity", { method: "GET" })).body);
    const { port } = addressOf(deployment);
    const update = updateOf([envelopes.groupId()]);
    let nonces = 0;
    for (let at = 0; at < IDLE_STREAMS; at += 1) {
      const listener = await Listener.open(port, SUBSCRIBE);
      listener.send(update);
      await listener.reach(PREAMBLE);
      // Whatever comes from here on is a Ping; its nonces count from 1.
      listener.onMessage = () => {
        nonces += 1;
        listener.send(subscribeRequest({ case: "pong", value: { nonce: BigInt(listener.count - PREAMBLE) } }));
      };
    }
    const busy = await activity();
    const [begin, wanted] = [nonces, IDLE_STREAMS * IDLE_KEEPALIVES];
    while (nonces - begin < wanted) await new Promise((resolve) => setTimeout(resolve, 200));
    // The look itself is one.
    const asked = (await activity()) - 1;
    report({
      what: `requests, messages and alarms that reach the shard of ${IDLE_STREAMS} idle streams in the keepalives of an hour (${busy} when they were opened)`,
      unit: "", digits: 0, floor: 0, backend: asked, ratio: asked, goal: 0, isMoreBetter: false,
    });
  } finally {
    await deployment.stop();
  }
}

const floor = await startFloor();
try {
  for (const shards of [1, 16]) await deliver(floor, shards);
  await slowReaders();
} finally {
  await floor.stop();
}
await idle();
