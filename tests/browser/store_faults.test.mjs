// The store of an open endpoint when the disk is full, slow, or taken away: nothing is sent that is not durable, and
// everyone who waits is told.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { storesInPage } from "../support/stores.mjs";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** Lets a test hold up or refuse what the store writes, and notes what leaves the page afterwards. Runs before any script. */
function faultyDisk() {
  const disk = (window.disk = { puts: 0, failAt: 0, failure: undefined, held: undefined, sentAfter: 0 });
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...row) {
    disk.puts += 1;
    if (disk.puts === disk.failAt) {
      disk.failure = this.name;
      throw new DOMException("the disk is full", "QuotaExceededError");
    }
    return put.apply(this, row);
  };
  // Completions are held back while `held` is a list.
  const { set } = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, "oncomplete");
  Object.defineProperty(IDBTransaction.prototype, "oncomplete", {
    configurable: true,
    set(handler) {
      const isWrite = this.mode === "readwrite";
      set.call(this, handler && ((event) => {
        if (isWrite && disk.held) disk.held.push(() => handler.call(this, event));
        else handler.call(this, event);
      }));
    },
  });
  const note = () => {
    if (disk.failure !== undefined || disk.held?.length > 0) disk.sentAfter += 1;
  };
  const { fetch } = window;
  window.fetch = (...request) => {
    if (/Publish/.test(String(request[0]?.url ?? request[0]))) note();
    return fetch(...request);
  };
}

describe("the store of an open endpoint", () => {
  const suite = inBrowser();
  let names = 0;

  const page = async () => {
    const context = await suite.browser.newContext();
    await context.addInitScript(storesInPage);
    await context.addInitScript(faultyDisk);
    const opened = await context.newPage();
    await opened.goto(`${suite.deployment.url}/favicon.svg`);
    return opened;
  };
  const open = (opened, name) =>
    opened.evaluate(async (agent) => {
      const { Endpoint } = await import("/client/index.js");
      window.endpoint = await Endpoint.open({ url: location.origin, name: agent, storageName: agent });
      window.ended = window.endpoint.closed.then((error) => error && [error.name, error.code, error.retryable]);
    }, name);
  /** Two agents that have talked, each on a page of its own. */
  const pair = async () => {
    names += 1;
    const [author, other] = [`author-${names}`, `other-${names}`];
    const pages = [await page(), await page()];
    await open(pages[0], author);
    await open(pages[1], other);
    await pages[0].evaluate((to) => window.endpoint.send(`agent:${to}`, "begin"), other);
    return { pages, author, other };
  };
  const texts = (opened, address) =>
    opened.evaluate(async (of) => {
      const found = [];
      for await (const { content } of window.endpoint.history(of)) found.push(content[0].text);
      return found;
    }, address);

  // CONV-N03
  test("a disk that is full at any write of a post ends the endpoint, keeps nothing of the step, and sends nothing after it", async () => {
    const { pages: [opened], author, other } = await pair();
    const stores = new Set();
    let recorded = 0;
    for (const failAt of [1, 5, 7, 11, 16]) {
      const before = await texts(opened, `agent:${other}`);
      const seen = await opened.evaluate(async ([at, to]) => {
        Object.assign(window.disk, { puts: 0, failAt: at, failure: undefined, sentAfter: 0 });
        const sent = window.endpoint.send(`agent:${to}`, `post ${at}`).then(() => "sent", (error) => error.code);
        const ended = await window.ended;
        const late = await window.endpoint.send(`agent:${to}`, "too late").catch((error) => [error.code, error.cause?.code]);
        return { sent: await sent, ended, late, failure: window.disk.failure, sentAfter: window.disk.sentAfter };
      }, [failAt, other]);
      assert.deepEqual(seen.ended, ["StoreError", "quota-exceeded", true]);
      assert.deepEqual(seen.late, ["closed", "quota-exceeded"]);
      assert.equal(seen.sentAfter, 0, `after write ${failAt}, to ${seen.failure}`);
      stores.add(seen.failure);
      await opened.evaluate(() => Object.assign(window.disk, { failAt: 0, failure: undefined }));
      await open(opened, author);
      // Whole or not at all: what was recorded is certified once, and what was not has left nothing.
      await until("nothing to be under way any more", () => opened.evaluate(() => window.endpoint.state.posts.length === 0));
      const found = await texts(opened, `agent:${other}`);
      const isRecorded = found.length > before.length;
      recorded += isRecorded ? 1 : 0;
      // "closed": the write that failed was of the post before, and the endpoint had ended when this one was handed in.
      const outcomes = isRecorded ? ["delivery-pending", "sent"] : ["persistence-failed", "closed"];
      assert.ok(outcomes.includes(seen.sent), `${isRecorded}: ${seen.sent}`);
      assert.deepEqual(found, isRecorded ? [...before, `post ${failAt}`] : before);
    }
    assert.ok(stores.size >= 2 && recorded >= 1, [...stores].join());
  });

  test("nothing is sent before the disk says that it is written", async () => {
    const { pages: [opened], author, other } = await pair();
    const held = await opened.evaluate(async (to) => {
      const { disk } = window;
      Object.assign(disk, { held: [], sentAfter: 0 });
      window.sending = window.endpoint.send(`agent:${to}`, "slowly");
      return new Promise((resolve) => {
        const look = () => (disk.held.length > 0 ? resolve(disk.held.length) : setTimeout(look, 0));
        look();
      });
    }, other);
    assert.ok(held > 0);
    // Another connection reads the store meanwhile, and still nothing has left the page.
    assert.ok(await opened.evaluate((name) => window.stores.dump(name), author));
    assert.equal(await opened.evaluate(() => window.disk.sentAfter), 0);
    await opened.evaluate(async () => {
      const { held } = window.disk;
      window.disk.held = undefined;
      for (const complete of held) complete();
      await window.sending;
    });
    assert.deepEqual(await texts(opened, `agent:${other}`), ["begin", "slowly"]);
  });

  // CONV-N05
  test("a store that another page takes away is let go of at once, and everyone who waits is told", async () => {
    const { pages: [opened, peer], author, other } = await pair();
    await peer.evaluate(() => window.endpoint.close());
    const second = await opened.context().newPage();
    await second.goto(`${suite.deployment.url}/favicon.svg`);
    await opened.evaluate((to) => {
      const code = (error) => [error.name, error.code];
      window.sent = window.endpoint.send(`agent:${to}`, "under way").then(() => "sent", code);
      window.read = (async () => {
        for await (const { message } of window.endpoint.messages()) return message.content[0].text;
        return "ended";
      })().catch(code);
    }, other);
    await until("the post to be recorded", () => opened.evaluate(() => window.endpoint.state.posts.length === 1));
    // What a release with a later layout does: it raises the database, which waits for every connection to be gone.
    await second.evaluate(async (name) => {
      const { version } = await window.stores.dump(name);
      const upgraded = await window.stores.open(name, version + 1);
      upgraded.close();
    }, author);
    const told = await opened.evaluate(() => Promise.all([window.ended, window.sent, window.read]));
    assert.deepEqual(told, [
      ["StoreError", "closed", true],
      ["SendError", "delivery-pending"],
      ["ListenError", "transport-failed"],
    ]);
    const after = await opened.evaluate((to) =>
      window.endpoint.send(`agent:${to}`, "too late").then(() => "sent", (error) => error.code), other);
    assert.equal(after, "closed");
    // The same store goes on where it was.
    await open(second, author);
    await open(peer, other);
    await until("the post under way to be certified", async () => (await texts(second, `agent:${other}`)).length === 2);
    assert.deepEqual(await texts(second, `agent:${other}`), ["begin", "under way"]);
  });
});
