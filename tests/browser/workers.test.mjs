// Where an endpoint runs when it is not the page: in a worker of its own, in a shared one, in a frame of another origin.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { launch } from "../support/browser.mjs";
import { inBrowser } from "../support/suite.mjs";
import { tabsOf } from "../support/tabs.mjs";

describe("workers and frames", () => {
  const suite = inBrowser();

  const { end, tab, open, tabs, peer, send, history, beginSends, outcomes } = tabsOf(suite);
  afterEach(() => end());

  for (const worker of ["dedicated", "shared"]) {
    test(`a ${worker} worker runs the endpoint, and the page's own thread never loads the module`, async () => {
      await peer(`peer-of-${worker}`);
      const [first, second] = await tabs(2, `in-${worker}`, { worker });
      await send(first, `agent:peer-of-${worker}`, "through the worker");
      await send(second, `agent:peer-of-${worker}`, "and again");
      const both = ["through the worker", "and again"];
      assert.deepEqual(await history(second, `agent:peer-of-${worker}`), both);
      const modules = (page) => page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".wasm")).length);
      assert.deepEqual([await modules(first), await modules(second)], [0, 0]);
      await first.close();
      await send(second, `agent:peer-of-${worker}`, "through the next one");
      await second.evaluate(() => window.endpoint.close());
      assert.equal(await second.evaluate(async () => (await navigator.locks.query()).held.length), 0, "nothing is held any more");
    });
  }

  test("a page whose own worker is terminated goes on by itself; a failure in a worker is the page's", async () => {
    await peer("peer-of-own");
    const context = await suite.browser.newContext();
    const page = await tab(context);
    await page.evaluate(async () => {
      const { Endpoint } = await import("/client/index.js");
      window.worker = new Worker("/client/worker.js", { type: "module" });
      window.asked = 0;
      const credential = () => `token ${(window.asked += 1)}`;
      window.endpoint = await Endpoint.open({ url: location.origin, name: "in-own", worker: window.worker, credential });
    });
    assert.equal(await page.evaluate(() => window.asked), 1, "the worker asks its page for the credential");
    await beginSends(page, "agent:peer-of-own", ["one", "two", "three"]);
    await page.evaluate(() => window.worker.terminate());
    assert.equal(new Set(await outcomes(page)).size, 3);
    assert.deepEqual((await history(page, "agent:peer-of-own")).sort(), ["one", "three", "two"]);
    const other = await tab(context);
    assert.equal(await open(other, "peer-of-own", { worker: "dedicated" }), "OpenError name-taken");
    assert.equal(await open(other, "unnamed", { worker: "dedicated", share: false }), "OpenError invalid-options");
  });

  test("in an iframe of another origin it works where storage is granted, and is a typed error where not", async () => {
    await peer("host-of-frames");
    const elsewhere = suite.deployment.url.replace("127.0.0.1", "localhost");
    /** A frame of another origin than its page in a browser. */
    const framed = async (where, sandbox) => {
      const context = await where.newContext();
      // The demo's own pages frame nobody.
      await context.route("**/frame.html", (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html>" }));
      // A page without an origin loads scripts only from who allows it.
      await context.route("**/client/**", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, headers: { ...response.headers(), "access-control-allow-origin": "*" } });
      });
      const page = await context.newPage();
      await page.goto(`${suite.deployment.url}/frame.html`);
      await page.evaluate(([src, rules]) => {
        const element = document.createElement("iframe");
        if (rules !== undefined) element.setAttribute("sandbox", rules);
        element.src = src;
        document.body.append(element);
        return new Promise((resolve) => element.addEventListener("load", resolve, { once: true }));
      }, [`${elsewhere}/frame.html`, sandbox]);
      return page.frames().at(-1);
    };
    const leave = (frame) => frame.page().context().unrouteAll({ behavior: "ignoreErrors" });
    const denied = await framed(suite.browser);
    assert.equal(await open(denied, "third-party"), "StoreError locks-unavailable");
    const lenient = await launch("--disable-features=TrackingProtection3pcd");
    try {
      const granted = await framed(lenient);
      assert.equal(await open(granted, "framed"), undefined);
      await send(granted, "agent:host-of-frames", "from a frame");
      const refused = await framed(lenient, "allow-scripts");
      assert.equal(await open(refused, "sandboxed", { url: elsewhere }), "StoreError locks-unavailable");
      await Promise.all([denied, granted, refused].map(leave));
    } finally {
      await lenient.close();
    }
  });
});
