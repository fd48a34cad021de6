// What an endpoint tells of itself, and how it comes back: from being offline, from a server that was gone, from sleep.
//
// The clock of a page can be stopped. What an endpoint does while it is, it does not do because a timer went off.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import { EndpointPage } from "../support/endpoints.mjs";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const HOUR_MS = 3_600_000;

let sequence = 0;
/** A name nobody has taken yet. */
const named = (name) => `${name}-${(sequence += 1)}`;

describe("live state", () => {
  const state = temporaryFolder();
  const suite = inBrowser({ state: state.path });
  after(() => state.remove());

  /** An agent on a page of its own, whose clock can be stopped. */
  const agent = async (name) => {
    const before = async (opening) => {
      opening.framesSent = 0;
      opening.page.on("websocket", (socket) => socket.on("framesent", () => (opening.framesSent += 1)));
      await opening.page.clock.install();
    };
    const opened = Object.assign(await EndpointPage.open(suite.browser, suite.deployment.url, { before }), { name: named(name) });
    opened.address = `agent:${opened.name}`;
    await opened.join(opened.name);
    await opened.event(opened.name, "that it is online", (event) => event.kind === "connection" && event.state === "online");
    return opened;
  };

  /** Two agents that hold one certified post. */
  const pair = async () => {
    const [alice, bob] = await Promise.all([agent("alice"), agent("bob")]);
    await alice.send(alice.name, bob.address, "first");
    await hold(1, alice, bob);
    return [alice, bob];
  };

  /** Resolves when both hold the same so many posts. */
  const hold = async (posts, alice, bob) => {
    let held;
    await until(`${alice.name} and ${bob.name} to hold ${posts} posts`, async () => {
      held = await Promise.all([alice.history(alice.name, bob.address), bob.history(bob.name, alice.address)]);
      return held.every((hashes) => hashes.length === posts);
    }, 60_000).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(held)}; ${[...alice.said, ...bob.said].join("\n")}`);
    });
    assert.deepEqual(held[0], held[1]);
  };

  /** Resolves when the post that was handed in last is recorded. */
  const recorded = (of, text) =>
    of.event(of.name, `that "${text}" is recorded`, (event, wanted) => event.kind === "post" && event.content[0].text === wanted, text);

  const stopClock = (of) => of.page.clock.pauseAt(Date.now() + 1_000);

  const isOffline = (event) => event.kind === "connection" && event.state === "offline";
  const isOnline = (event) => event.kind === "connection" && event.state === "online";

  test("a reader is told the present first, and a reader that comes late what is under way then", async () => {
    const [alice, bob] = await pair();
    await bob.leave();
    await alice.send(alice.name, bob.address, "is under way");
    await recorded(alice, "is under way");
    const { told, shown } = await alice.evaluate(async (name) => {
      const { endpoint } = window.agents[name];
      const events = [];
      for await (const event of endpoint.events()) {
        events.push(event);
        if (event.kind === "post") break;
      }
      return { told: events, shown: endpoint.state };
    }, alice.name);
    assert.deepEqual(told.find(({ kind }) => kind === "connection"), shown.connection);
    assert.equal(shown.connection.state, "online");
    assert.ok(shown.connection.since > 0 && shown.connection.detail === null && shown.connection.nextAttemptAt === null);
    assert.deepEqual(shown.posts.map(({ content, author }) => [content[0].text, author]), [["is under way", alice.address]]);
    assert.deepEqual([shown.conversations, shown.recoveries, shown.stalls], [[], [], []]);
    await bob.join(bob.name);
    await hold(2, alice, bob);
    assert.deepEqual(await alice.evaluate((name) => window.agents[name].endpoint.state.posts, alice.name), []);
  });

  // CONV-H12, CONV-N01
  test("an endpoint that was offline says since when, and goes on at once where it stood when the browser is online", async () => {
    const [alice, bob] = await pair();
    await alice.forget(alice.name);
    await alice.context.setOffline(true);
    const offline = await alice.event(alice.name, "that it is offline", isOffline);
    assert.ok(typeof offline.detail === "string" && offline.nextAttemptAt > offline.since);
    await bob.send(bob.name, alice.address, "while alice is away");
    await alice.send(alice.name, bob.address, "while I am away");
    await Promise.all([recorded(bob, "while alice is away"), recorded(alice, "while I am away")]);
    await stopClock(alice);
    await alice.forget(alice.name);
    await alice.context.setOffline(false);
    await alice.event(alice.name, "that it is online", isOnline);
    await hold(3, alice, bob);
  });

  // CONV-H12, CONV-N01
  test("an endpoint whose server was gone goes on at once when its page is shown again", async () => {
    const [alice, bob] = await pair();
    await alice.forget(alice.name);
    await suite.deployment.stop();
    await alice.event(alice.name, "that it is offline", isOffline);
    await alice.send(alice.name, bob.address, "to nobody yet");
    await recorded(alice, "to nobody yet");
    await stopClock(alice);
    await alice.forget(alice.name);
    suite.deployment = await Deployment.start({ state: state.path, port: new URL(suite.deployment.url).port });
    await alice.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await alice.event(alice.name, "that it is online", isOnline);
    await hold(2, alice, bob);
  });

  // CONV-N02
  test("a page that slept for hours makes one attempt, makes sure of its stream, and says what it waits for until that comes", async () => {
    const [alice, bob] = await pair();
    await bob.leave();
    let published = 0;
    // A sleep in the middle of a call would end the call.
    alice.page.on("requestfinished", (request) => (published += /Publish/.test(request.url())));
    await stopClock(alice);
    await alice.send(alice.name, bob.address, "are you there?");
    // The head and the proposal, then the own signature.
    await until("the proposal to be out", () => published === 3);
    for (let sleep = 1; sleep <= 3; sleep += 1) {
      const said = alice.framesSent;
      await alice.page.clock.fastForward(HOUR_MS);
      await until("a question whether the stream still lives", () => alice.framesSent > said);
      await until("the proposal to be out again", () => published >= 3 + 2 * sleep);
      assert.equal(published, 3 + 2 * sleep, "the head and the proposal, once a sleep");
    }
    const { stalls } = await alice.evaluate((name) => window.agents[name].endpoint.state, alice.name);
    const waits = { for: "signatures", missing: [bob.address], behindAnother: false };
    assert.deepEqual(stalls, [{ kind: "stall", address: bob.address, waits }]);
    await alice.forget(alice.name);
    await bob.join(bob.name);
    await alice.event(alice.name, "that it goes on", (event) => event.kind === "stall" && event.waits === null);
    await hold(2, alice, bob);
  });

  // CONV-J01
  test("a conversation of another Router instance says what its recovery waits for, and that it is over", async () => {
    const [alice, bob] = await pair();
    await bob.leave();
    await alice.forget(alice.name);
    await suite.deployment.stop();
    const port = new URL(suite.deployment.url).port;
    suite.deployment = await Deployment.start({ state: state.path, port, variables: { CONCLAVE_RESTORED: "once" } });
    const told = await alice.event(alice.name, "what it waits for", (event) => event.kind === "recovery");
    assert.equal(told.address, bob.address);
    const { detail, retriesLeft, ...waits } = told.waits;
    assert.deepEqual(waits, { phase: "catch-up", heard: 0, needed: 1, missing: [bob.address], paused: false });
    assert.ok(retriesLeft > 0 && detail.length > 0);
    const during = await alice.evaluate((name) => window.agents[name].endpoint.state, alice.name);
    assert.deepEqual(during.recoveries.map(({ address }) => address), [bob.address]);
    assert.deepEqual(during.conversations.map((event) => event.state), ["unavailable"]);
    await alice.send(alice.name, bob.address, "behind the fence");
    await bob.join(bob.name);
    await alice.event(alice.name, "that it is over", (event) => event.kind === "recovery" && event.waits === null);
    await hold(2, alice, bob);
    const afterwards = await alice.evaluate((name) => window.agents[name].endpoint.state, alice.name);
    assert.deepEqual([afterwards.recoveries, afterwards.conversations], [[], []]);
  });

  test("the storage is told at the opening, under pressure, and when it is full", async () => {
    const name = named("hoarder");
    const page = await EndpointPage.open(suite.browser, suite.deployment.url, {
      before: ({ context }) => context.addInitScript(() => {
        StorageManager.prototype.estimate = async () => ({ usage: 81, quota: 100 });
        StorageManager.prototype.persisted = async () => false;
        const put = IDBObjectStore.prototype.put;
        IDBObjectStore.prototype.put = function refused(...row) {
          if (window.isFull) throw new DOMException("no room", "QuotaExceededError");
          return put.apply(this, row);
        };
      }),
    });
    await page.join(name);
    const isStorage = (event) => event.kind === "storage";
    const told = await page.event(name, "how full the storage is", isStorage);
    assert.deepEqual(told, { kind: "storage", persisted: false, usage: 81, quota: 100, pressure: "high" });
    const other = await agent("other");
    const isFull = (event) => event.kind === "storage" && event.pressure === "full";
    await page.evaluate(() => (window.isFull = true));
    // Not even whom it is for can be kept: nothing of the post is.
    await page.send(name, other.address, "no room for this");
    const full = await page.event(name, "that the storage is full", isFull);
    assert.deepEqual([full.usage, full.quota], [81, 100]);
    await until("the send to fail", async () => (await page.agent(name)).sent[0] === "persistence-failed");
    assert.equal((await page.agent(name)).ended, undefined);
    await page.evaluate(() => (window.isFull = false));
    await page.send(name, other.address, "there is room");
    await until("the post to be certified", async () => (await page.agent(name)).sent[1] === "sent");
    await page.forget(name);
    await page.evaluate(() => (window.isFull = true));
    await page.send(name, other.address, "and none again");
    await page.event(name, "that the storage is full", isFull);
    await until("the endpoint to end", async () => (await page.agent(name)).ended === "quota-exceeded");
  });
});
