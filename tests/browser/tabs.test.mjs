// Many tabs of one agent: one owns the store, the others are served by it, and whoever is next goes on when it is gone.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { inBrowser } from "../support/suite.mjs";
import { tabsOf } from "../support/tabs.mjs";
import { until } from "../support/until.mjs";

describe("many tabs", () => {
  const suite = inBrowser();

  const { end, tab, open, tabs, peer, listen, holds, send, history, beginSends, outcomes, crash } = tabsOf(suite);
  afterEach(() => end());

  // CONV-G18
  test("a second tab works through the first: it sends, reads, listens and fails as the owner does", async () => {
    await peer("mirror");
    const [owner, other] = await tabs(2, "double");
    await send(owner, "agent:mirror", "from the owner");
    await send(other, "agent:mirror", "from the other");
    const both = ["from the owner", "from the other"];
    assert.deepEqual(await history(owner, "agent:mirror"), both);
    assert.deepEqual(await history(other, "agent:mirror"), both);
    const seen = (page) => page.evaluate(async () => {
      const { SendError, HistoryError } = await import("/client/index.js");
      const caught = (attempt) => attempt.then(() => "none", (error) => error);
      const refused = await caught(window.endpoint.send("agent:nobody-here", "hi"));
      const missing = await caught(window.endpoint.history("agent:stranger"));
      const controller = new AbortController();
      const sending = window.endpoint.send("agent:mirror", "given up", { signal: controller.signal });
      controller.abort(new RangeError("enough"));
      const aborted = await caught(sending);
      const { entries: [entry] } = await window.endpoint.history("agent:mirror");
      return [
        refused instanceof SendError, refused.code, refused.message, refused.retryable,
        missing instanceof HistoryError, missing.code, aborted instanceof RangeError, aborted.message,
        (await window.endpoint.proof("agent:mirror", entry.postId)).recordHash === entry.recordHash, (await window.endpoint.conversations()).length,
      ];
    });
    const expected = await seen(owner);
    assert.deepEqual(expected.slice(0, 2), [true, "unknown-agent"]);
    assert.deepEqual(expected.slice(4), [true, "not-found", true, "enough", true, 1]);
    assert.deepEqual(await seen(other), expected);
  });

  // CONV-M08
  test("one tab listens at a time: another is refused, and listens once the first has stopped or died", async () => {
    const mirror = await peer("speaker");
    const [owner, second, third] = await tabs(3, "audience");
    const attempt = (page) => page.evaluate(() => {
      window.reading = window.endpoint.messages();
      return window.reading.next().then(({ value }) => value?.message.content[0].text, (error) => `${error.name} ${error.code}`);
    });
    await send(mirror, "agent:audience", "one");
    assert.equal(await attempt(second), "one");
    assert.equal(await attempt(owner), "ListenError already-listening");
    assert.equal(await attempt(third), "ListenError already-listening");
    await second.evaluate(() => window.reading.return());
    assert.equal(await attempt(third), "one");
    await crash(third);
    assert.equal(await attempt(owner), "one");
  });

  test("a tab tells whether it owns the store, and what it shows of the endpoint is what the owner shows", async () => {
    await peer("shown");
    const [owner, other] = await tabs(2, "showing");
    const roles = (page) => page.evaluate(() => window.endpoint.state.role);
    assert.deepEqual([await roles(owner), await roles(other)], ["owner", "attached"]);
    await other.evaluate(() => {
      window.told = [];
      void (async () => {
        for await (const event of window.endpoint.events()) window.told.push(event.kind === "post" ? event.stage : event.role ?? event.state);
      })();
    });
    await send(owner, "agent:shown", "seen by both");
    await until("the other tab to be told of the post", () => other.evaluate(() => window.told.includes("certified")));
    await owner.close();
    await until("the other tab to be the owner", async () => (await roles(other)) === "owner");
    assert.deepEqual(
      (await other.evaluate(() => window.told)).filter((word) => ["owner", "attached", "waiting"].includes(word)),
      ["attached", "waiting", "owner"],
    );
  });

  for (const [how, end] of [["is closed", (page) => page.close()], ["crashes", crash], ["closes its endpoint", (page) => page.evaluate(() => window.endpoint.close())]]) {
    // CONV-M04, CONV-M10, CONV-D11
    test(`when the owner ${how}, sends and the subscription of another tab go on: nothing is lost, nothing comes twice`, async () => {
      const suffix = how.replaceAll(" ", "-");
      const mirror = await peer(`peer-${suffix}`);
      const [owner, other] = await tabs(2, `agent-${suffix}`);
      await listen(other, 2);
      const before = ["b0", "b1", "b2"];
      await send(mirror, `agent:agent-${suffix}`, ...before);
      await holds(other, before);
      const bodies = Array.from({ length: 6 }, (_, at) => `post ${at}`);
      await beginSends(other, `agent:peer-${suffix}`, bodies);
      const more = ["a0", "a1", "a2"];
      await Promise.all([end(owner), send(mirror, `agent:agent-${suffix}`, ...more)]);
      const ids = await outcomes(other);
      assert.equal(new Set(ids).size, bodies.length, JSON.stringify(ids));
      await holds(other, [...before, ...more]);
      const held = await history(other, `agent:peer-${suffix}`);
      assert.deepEqual(held.filter((text) => text.startsWith("post")).sort(), [...bodies].sort());
      assert.deepEqual([...held].sort(), [...before, ...more, ...bodies].sort());
    });
  }

  test("of five tabs the store passes from one to the next, and each still does everything", async () => {
    const mirror = await peer("witness-of-five");
    const pages = await tabs(5, "five");
    await listen(pages[4]);
    const expected = [];
    while (pages.length > 1) {
      const text = `with ${pages.length}`;
      await send(mirror, "agent:five", text);
      expected.push(text);
      await pages.shift().close();
      await Promise.all(pages.map((page, at) => send(page, "agent:witness-of-five", `${text} from ${at}`)));
      await holds(pages.at(-1), expected);
    }
    assert.equal((await history(pages[0], "agent:witness-of-five")).length, 4 + 4 + 3 + 2 + 1);
  });

  test("a page that is put aside lets go of the store, and is served again when it is shown", async () => {
    await peer("asider");
    const [owner, other] = await tabs(2, "aside");
    await owner.evaluate(() => {
      window.dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
      window.waiting = window.endpoint.send("agent:asider", "asked while aside");
    });
    await send(other, "agent:asider", "by the next owner");
    assert.deepEqual(await history(other, "agent:asider"), ["by the next owner"]);
    await owner.evaluate(() => {
      window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
      return window.waiting;
    });
    assert.deepEqual(await history(owner, "agent:asider"), ["by the next owner", "asked while aside"]);
  });

  test("a tab with other options, or one that will not share, is refused by a typed error", async () => {
    const [owner] = await tabs(1, "strict", { storageName: "one store" });
    const other = await tab(owner.context());
    assert.equal(await open(other, "stricter", { storageName: "one store" }), "OpenError options-differ");
    const key = "urn:ietf:params:oauth:jwk-thumbprint:sha-256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    assert.equal(await open(other, "strict", { storageName: "one store", registryKey: key }), "OpenError options-differ");
    assert.equal(await open(other, "strict", { storageName: "one store", share: false }), "StoreError store-locked");
    assert.equal(await open(other, "strict", { storageName: "one store" }), undefined);
    const [selfish] = await tabs(1, "selfish", { share: false });
    const guest = await tab(selfish.context());
    assert.equal(await open(guest, "selfish"), "StoreError store-locked");
  });

  test("a tab that is closed answers as a closed endpoint does, owner or not, and ends what was going on there", async () => {
    const [owner, other] = await tabs(2, "leaver");
    const left = (page) => page.evaluate(async () => {
      const caught = (attempt) => attempt.then(() => "none", (error) => `${error.name} ${error.code}`);
      const reading = window.endpoint.messages();
      const next = reading.next();
      const closing = window.endpoint.close();
      const during = caught(window.endpoint.send("agent:nobody-here", "hi"));
      await closing;
      return [
        (await next).done,
        ["SendError closed", "SendError delivery-pending", "SendError unknown-agent"].includes(await during),
        await caught(window.endpoint.send("agent:nobody-here", "hi")),
        await caught(window.endpoint.conversations()),
        (await window.endpoint.messages().next()).done,
        await window.endpoint.closed,
      ];
    });
    const expected = [true, true, "SendError closed", "HistoryError persistence-failed", true, undefined];
    assert.deepEqual(await left(other), expected);
    assert.deepEqual(await left(owner), expected);
    assert.equal(await owner.evaluate(async () => (await navigator.locks.query()).held.length), 0, "nothing is held any more");
    assert.equal(await open(other, "leaver"), undefined, "the store is free");
  });

  test("a tab more than an owner serves is refused by a typed error that says how many it may be", async () => {
    const [owner, second] = await tabs(2, "crowded");
    // As the other tabs there may be, each with the lock that says that it lives.
    await second.evaluate(async (store) => {
      const channel = new BroadcastChannel(`conclave/${store}`);
      for (let at = 1; at < 256; at += 1) {
        const name = `conclave-tab/${store}/${at}`;
        await new Promise((held) => void navigator.locks.request(name, () => new Promise(held)));
        const line = new BroadcastChannel(name);
        const welcome = new Promise((resolve) => line.addEventListener("message", resolve, { once: true }));
        channel.postMessage({ protocol: 1, kind: "hello", tab: String(at) });
        await welcome;
        line.close();
      }
    }, `conclave ${suite.deployment.url} crowded`);
    const one = await tab(owner.context());
    const refusal = await one.evaluate(async () => {
      const { Endpoint } = await import("/client/index.js");
      const error = await Endpoint.open({ url: location.origin, name: "crowded" }).catch((thrown) => thrown);
      return [error.name, error.code, error.retryable, error.message];
    });
    assert.deepEqual(refusal.slice(0, 3), ["StoreError", "store-locked", true]);
    assert.match(refusal[3], /serves 256 others/);
    assert.deepEqual(await second.evaluate(() => window.endpoint.conversations()), [], "those that are served still are");
  });

  test("an endpoint that can not even be closed lets go of the store and of the page all the same", async () => {
    const page = await tab(await suite.browser.newContext());
    const seen = await page.evaluate(async () => {
      const { TabSeat } = await import("/client/tabs/tab_seat.js");
      let asked = 0;
      /** A module that has trapped: it neither closes nor answers. */
      const run = async () => ({
        closed: new Promise(() => undefined),
        answered: () => new Promise(() => undefined),
        close: () => Promise.reject(new RangeError("trapped")),
        watch: () => () => undefined,
        request: () => (asked += 1, new Promise(() => undefined)),
      });
      const seat = await TabSeat.open({ store: "trapped", terms: { url: "", name: "" }, isShared: true, run }, undefined);
      const request = seat.request("conversations", "{}").catch((error) => error.code);
      const closing = await seat.close().catch((error) => error.message);
      return [asked, closing, await request, await seat.closed];
    });
    assert.deepEqual(seen, [1, "trapped", "persistence-failed", undefined]);
    assert.equal(await page.evaluate(async () => (await navigator.locks.query()).held.length), 0, "nothing is held any more");
  });

  test("an owner of another release is a typed error for a tab that opens, and for one that was attached", async () => {
    const [owner, other] = await tabs(2, "mixed");
    const foreign = await tab(owner.context());
    await foreign.evaluate((store) => {
      const channel = new BroadcastChannel(store);
      channel.postMessage({ protocol: 0, kind: "hello", tab: "older" });
      channel.postMessage("nonsense");
      channel.postMessage({ protocol: 1, kind: "owner", epoch: 7 });
    }, `conclave/conclave ${suite.deployment.url} mixed`);
    assert.deepEqual(await other.evaluate(() => window.endpoint.conversations()), [], "what is not understood is not heard");
    await owner.close();
    const [, attached] = await tabs(2, "unmixed");
    const newer = await tab(attached.context());
    await newer.evaluate((store) => {
      new BroadcastChannel(store).postMessage({ protocol: 2, kind: "owner", epoch: "newer", state: "open" });
    }, `conclave/conclave ${suite.deployment.url} unmixed`);
    assert.equal(await attached.evaluate(async () => (await window.endpoint.closed).code), "incompatible-owner");
  });
});
