// `cargo xtask bench browser`: endpoints in Chromium, against a deployment on the same machine. The floors are what the same page
// does bare: strict IndexedDB transactions, Ed25519 verifications in WebAssembly, compiling the module.
// CONCLAVE_FIGURES names the module of crates/figures.

import fs from "node:fs";
import { chromium } from "playwright-core";
import { LAUNCH } from "../tests/support/browser.mjs";
import { Deployment, temporaryFolder } from "../tests/support/deployment.mjs";
import { isQuick, report } from "./support/figures.mjs";
import { median } from "./support/load.mjs";

const TURNS = isQuick ? 2 : 5;
const TURN_MS = isQuick ? 2_000 : 6_000;
const MEMBERS = ["ann", "ben", "cem", "dee"];
/** Posts that each member has under way. */
const IN_FLIGHT = 2;
/** What a member missed. */
const MISSED = isQuick ? 25 : 250;
/** Posts of the store that is opened cold. CONCLAVE_BENCH_POSTS sets another number, for a machine that has no hour for it. */
const POSTS_STORED = Number(process.env.CONCLAVE_BENCH_POSTS ?? (isQuick ? 200 : 10_000));
/** A day of a lively conversation of two: half of them. */
const POSTS_OF_A_DAY = POSTS_STORED / 2;
/** Each post has two signatures of its action and two votes for its storage. */
const SIGNATURES_A_POST = 4;
/** The case of crates/figures whose floor is two Ed25519 verifications. */
const TWO_VERIFICATIONS = 1;
const PAIR_IN_FLIGHT = 8;
/** Posts between two lines about how far it is. */
const POSTS_A_STEP = 500;
const MIB = 1024 * 1024;

/** Runs in every page before its scripts: counts what is written, and keeps hold of the module's memory. */
function observe() {
  const { transaction } = IDBDatabase.prototype;
  window.bench = { writes: 0, writesOf: {}, memories: [], endpoints: {} };
  IDBDatabase.prototype.transaction = function count(stores, mode, options) {
    if (mode === "readwrite") {
      window.bench.writes += 1;
      window.bench.writesOf[this.name] = (window.bench.writesOf[this.name] ?? 0) + 1;
    }
    return transaction.call(this, stores, mode, options);
  };
  for (const name of ["instantiate", "instantiateStreaming"]) {
    const plain = WebAssembly[name];
    WebAssembly[name] = async (...parameters) => {
      const result = await plain.apply(WebAssembly, parameters);
      const { memory } = (result.instance ?? result).exports;
      if (memory) window.bench.memories.push(memory);
      return result;
    };
  }
}

/** Opens an endpoint in the page and acknowledges what it hears. How long the opening took, in ms. */
const open = (page, name) =>
  page.evaluate(async (name) => {
    const { Endpoint } = await import("/client/index.js");
    const begin = performance.now();
    const endpoint = await Endpoint.open({ url: location.origin, name, worker: false });
    const took = performance.now() - begin;
    // A post that is sent before there is a connection waits, and its promise does not.
    for await (const event of endpoint.events()) {
      if (event.kind === "connection" && event.state === "online") break;
    }
    const held = { endpoint, heard: 0, wanted: Infinity, reached: undefined };
    window.bench.endpoints[name] = held;
    void (async () => {
      for await (const { acknowledge } of endpoint.messages()) {
        held.heard += 1;
        if (held.heard >= held.wanted) held.reached?.();
        await acknowledge();
      }
    })();
    return took;
  }, name);

const close = (page, name) => page.evaluate((name) => window.bench.endpoints[name].endpoint.close(), name);

/**
 * Lets members post, each with so many posts under way, for a while or until there are so many posts. Posts a second, and
 * write transactions of the page for each.
 */
const post = (page, { members, all = members, inFlight, milliseconds = Infinity, posts = Infinity }) =>
  page.evaluate(async ([members, all, inFlight, milliseconds, posts]) => {
    const [begin, writes] = [performance.now(), window.bench.writes];
    let [begun, certified, late] = [0, 0, 0];
    const author = async (name) => {
      const others = all.filter((other) => other !== name);
      const to = others.length === 1 ? `agent:${others[0]}` : `group:${others.join(",")}`;
      while (performance.now() - begin < (milliseconds ?? Infinity) && begun < (posts ?? Infinity)) {
        begun += 1;
        try {
          await window.bench.endpoints[name].endpoint.send(to, `post ${begun} of ${name}`);
          certified += 1;
        } catch (error) {
          // On a machine that is too busy the wait ends before the post is certified, which it is in the end.
          if (error.code !== "delivery-pending") throw error;
          late += 1;
        }
      }
    };
    await Promise.all(members.flatMap((name) => Array.from({ length: inFlight }, () => author(name))));
    const seconds = (performance.now() - begin) / 1000;
    return { perSecond: certified / seconds, writesEach: (window.bench.writes - writes) / certified, certified, late };
  }, [members, all, inFlight, milliseconds, posts].map((value) => (value === Infinity ? null : value)));

/** Strict transactions a second of so many databases at once, each writing one row of 1 KiB after another. */
const transactions = (page, databases, milliseconds) =>
  page.evaluate(async ([databases, milliseconds]) => {
    const promised = (request) => new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const connections = await Promise.all(Array.from({ length: databases }, (_, at) => {
      const request = indexedDB.open(`floor-${at}`, 1);
      request.onupgradeneeded = () => request.result.createObjectStore("rows", { autoIncrement: true });
      return promised(request);
    }));
    const row = new Uint8Array(1024).fill(7);
    const begin = performance.now();
    let done = 0;
    await Promise.all(connections.map(async (connection) => {
      while (performance.now() - begin < milliseconds) {
        const transaction = connection.transaction("rows", "readwrite", { durability: "strict" });
        transaction.objectStore("rows").add(row);
        await new Promise((resolve, reject) => {
          transaction.oncomplete = resolve;
          transaction.onabort = () => reject(transaction.error);
        });
        done += 1;
      }
    }));
    const perSecond = (done * 1000) / (performance.now() - begin);
    for (const connection of connections) connection.close();
    return perSecond;
  }, [databases, milliseconds]);

/** Milliseconds that one Ed25519 verification takes in the page. */
const verification = (page, module) =>
  page.evaluate(async ([module, number, milliseconds]) => {
    window.bench.figures ??= await (async () => {
      const { instance } = await WebAssembly.instantiate(Uint8Array.from(atob(module), (letter) => letter.charCodeAt(0)), {});
      instance.exports.prepare(number);
      return instance.exports;
    })();
    let rounds = 0;
    const begin = performance.now();
    while (performance.now() - begin < milliseconds) {
      window.bench.figures.floor(16);
      rounds += 16;
    }
    return (performance.now() - begin) / rounds / 2;
  }, [module, TWO_VERIFICATIONS, TURN_MS / 4]);

/** Memory of the page after a collection, in MiB: the module's, and the JavaScript heap with what it holds. */
async function memory(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  const module = await page.evaluate(() => window.bench.memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0));
  return { module: module / MIB, heap: (usedSize + backingStorageSize - Math.min(backingStorageSize, module)) / MIB };
}

const deployment = await Deployment.start();
const profile = temporaryFolder();
// A profile on disk: one in memory would make every transaction durable for nothing.
const context = await chromium.launchPersistentContext(profile.path, LAUNCH);
const module = fs.readFileSync(process.env.CONCLAVE_FIGURES).toString("base64");
await context.addInitScript(observe);
const newPage = async () => {
  const page = await context.newPage();
  // The demo, on which nothing happens before somebody names an agent.
  await page.goto(`${deployment.url}/`);
  return page;
};

try {
  await start();
  await fourMembers();
  await twoMembers();
} finally {
  await context.close();
  await deployment.stop();
  profile.remove();
}

/** From nothing to a module that can be called. */
async function start() {
  const turns = [];
  for (let turn = 0; turn < TURNS * 2; turn += 1) {
    const page = await newPage();
    const bare = await page.evaluate(async () => {
      const begin = performance.now();
      await WebAssembly.compile(await (await fetch("/client/conclave_web_client_bg.wasm", { cache: "no-store" })).arrayBuffer());
      return performance.now() - begin;
    });
    const ours = await page.evaluate(async () => {
      const begin = performance.now();
      const glue = await import("/client/conclave_web_client.js");
      await glue.default({ module_or_path: fetch("/client/conclave_web_client_bg.wasm", { cache: "no-store" }) });
      return performance.now() - begin;
    });
    turns.push([bare, ours]);
    await page.close();
  }
  report({
    what: "start of the WebAssembly module, fetched from this machine, against fetching and compiling it",
    unit: "ms", digits: 1, isMoreBetter: false, goal: null, cpuRatio: Number.NaN,
    floor: median(turns.map(([bare]) => bare)),
    backend: median(turns.map(([, ours]) => ours)),
    ratio: median(turns.map(([bare, ours]) => ours / bare)),
  });
}

/** Posts a second among four endpoints of one page, and what one of them catches up with. */
async function fourMembers() {
  const page = await newPage();
  for (const name of MEMBERS) await open(page, name);
  // The first post founds the conversation; then everything is warm.
  await post(page, { members: MEMBERS.slice(0, 1), all: MEMBERS, inFlight: 1, posts: 1 });
  await post(page, { members: MEMBERS, inFlight: IN_FLIGHT, milliseconds: TURN_MS });
  const turns = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    const bare = await transactions(page, MEMBERS.length, TURN_MS / 3);
    const ours = await post(page, { members: MEMBERS, inFlight: IN_FLIGHT, milliseconds: TURN_MS });
    turns.push({ bare: bare / ours.writesEach, ...ours });
  }
  const writes = median(turns.map(({ writesEach }) => writesEach));
  report({
    what: `certified posts, 4 endpoints of a page, against strict IndexedDB transactions (${writes.toFixed(0)} a post)`,
    unit: "posts/s", digits: 1, isMoreBetter: true, goal: 0.5, cpuRatio: Number.NaN,
    floor: median(turns.map(({ bare }) => bare)),
    backend: median(turns.map(({ perSecond }) => perSecond)),
    ratio: median(turns.map(({ bare, perSecond }) => perSecond / bare)),
  });

  const [late] = MEMBERS.slice(-1);
  const caughtUp = [];
  for (let turn = 0; turn < Math.ceil(TURNS / 2); turn += 1) {
    await close(page, late);
    await post(page, { members: MEMBERS.slice(0, 3), all: MEMBERS, inFlight: IN_FLIGHT, posts: MISSED });
    const bare = await transactions(page, 1, TURN_MS / 3);
    const before = await page.evaluate(() => ({ ...window.bench.writesOf }));
    const begin = performance.now();
    await open(page, late);
    await page.evaluate(([name, missed]) => {
      const held = window.bench.endpoints[name];
      return new Promise((resolve) => {
        Object.assign(held, { wanted: missed, reached: resolve });
        if (held.heard >= missed) resolve();
      });
    }, [late, MISSED]);
    const perSecond = (MISSED * 1000) / (performance.now() - begin);
    const after = await page.evaluate(() => ({ ...window.bench.writesOf }));
    const written = Math.max(...Object.keys(after).map((name) => after[name] - (before[name] ?? 0)));
    caughtUp.push({ perSecond, bare: bare / (written / MISSED), writesEach: written / MISSED });
  }
  report({
    what: `records that one of four catches up with, ${MISSED} of them, its opening included, against strict IndexedDB transactions (${median(caughtUp.map(({ writesEach }) => writesEach)).toFixed(1)} a record)`,
    unit: "records/s", digits: 1, isMoreBetter: true, goal: null, cpuRatio: Number.NaN,
    floor: median(caughtUp.map(({ bare }) => bare)),
    backend: median(caughtUp.map(({ perSecond }) => perSecond)),
    ratio: median(caughtUp.map(({ bare, perSecond }) => perSecond / bare)),
  });
  await page.close();
}

/** What a long conversation of two costs an endpoint: memory while it goes on, and its next opening. */
async function twoMembers() {
  const [writer, reader] = [await newPage(), await newPage()];
  await open(writer, "eve");
  await open(reader, "fay");
  const pair = { members: ["eve"], all: ["eve", "fay"], inFlight: PAIR_IN_FLIGHT };
  await post(writer, { ...pair, posts: 1 });
  const fresh = await memory(reader);
  let written = 0;
  const reach = async (posts) => {
    for (; written < posts; written += Math.min(POSTS_A_STEP, posts - written)) {
      const { perSecond } = await post(writer, { ...pair, posts: Math.min(POSTS_A_STEP, posts - written) });
      console.error(`${written} of ${posts} posts, ${perSecond.toFixed(1)} a second`);
    }
  };
  await reach(POSTS_OF_A_DAY);
  const later = await memory(reader);
  const [total, atFirst] = [later, fresh].map(({ module, heap }) => module + heap);
  report({
    what: `memory of a page with one endpoint after ${POSTS_OF_A_DAY} posts of a conversation of two (module ${later.module.toFixed(1)}, JavaScript ${later.heap.toFixed(1)}), against the first`,
    unit: "MiB", digits: 1, isMoreBetter: false, goal: null, cpuRatio: Number.NaN,
    floor: atFirst, backend: total, ratio: total / atFirst,
  });

  await reach(POSTS_STORED);
  await close(reader, "fay");
  await close(writer, "eve");
  const turns = [];
  for (let turn = 0; turn < Math.ceil(TURNS / 2) + 1; turn += 1) {
    const bare = (await verification(reader, module)) * POSTS_STORED * SIGNATURES_A_POST;
    const ours = await open(reader, "fay");
    await close(reader, "fay");
    turns.push([bare, ours]);
  }
  report({
    what: `cold open with ${POSTS_STORED} certified posts, against verifying their ${POSTS_STORED * SIGNATURES_A_POST} signatures bare`,
    unit: "s", digits: 2, isMoreBetter: false, goal: 1.5, cpuRatio: Number.NaN,
    floor: median(turns.map(([bare]) => bare)) / 1000,
    backend: median(turns.map(([, ours]) => ours)) / 1000,
    ratio: median(turns.map(([bare, ours]) => ours / bare)),
  });
}
