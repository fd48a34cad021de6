// Where an endpoint runs when it is not the page: in a worker of its own, in a shared one, in a frame of another origin.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { launch } from "../support/browser.mjs";
import { inBrowser } from "../support/suite.mjs";
import { tabsOf } from "../support/tabs.mjs";
import { until } from "../support/until.mjs";

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

  /** What a page's opening of an agent comes to; it is over once the page lets go of the locks it took for it. */
  const begin = (page, name, worker, signal) =>
    page.evaluate(async ([agent, source, isGivenUp]) => {
      const { Endpoint } = await import("/client/index.js");
      window.abort = new AbortController();
      const worker = source.endsWith(".js") ? new Worker(source, { type: "module" }) : source;
      const opening = Endpoint.open({ url: location.origin, name: agent, worker, ...(isGivenUp ? { signal: window.abort.signal } : {}) });
      window.outcome = opening.then(() => "open", (error) => `${error.name} ${error.code ?? ""} ${error.retryable ?? ""}: ${error.message}`);
      window.outcome.then((said) => (window.said = said));
    }, [name, worker, signal === true]);
  const held = (page) => page.evaluate(async () => (await navigator.locks.query()).held.length);

  test("an opening over a worker that never answers ends with its signal, and lets go of everything", async () => {
    const page = await tab(await suite.browser.newContext());
    // A script that is no worker's.
    await begin(page, "unanswered", "/client/errors.js", true);
    await until("the page to wait for its worker", async () => (await held(page)) > 0);
    await page.evaluate(() => window.abort.abort(new RangeError("enough")));
    assert.equal(await page.evaluate(() => window.outcome), "RangeError  : enough");
    assert.equal(await held(page), 0, "nothing is held any more");
    assert.equal(await open(page, "unanswered"), undefined, "the store is free");
  });

  test("a worker that says nothing for long is a typed error that names it, not a store that is locked", async () => {
    const context = await suite.browser.newContext();
    await context.clock.install();
    const page = await tab(context);
    await begin(page, "silent", "/client/errors.js");
    await until("the opening to end", async () => {
      await page.clock.fastForward(5_000);
      return page.evaluate(() => window.said);
    });
    assert.equal(await page.evaluate(() => window.said), "OpenError module-unavailable true: the worker's script said nothing for 30 s");
    assert.equal(await held(page), 0, "nothing is held any more");
  });

  test("a worker that dies while it opens the endpoint is a typed error, and lets go of everything", async () => {
    const page = await tab(await suite.browser.newContext());
    const said = await page.evaluate(async () => {
      const { Endpoint } = await import("/client/index.js");
      const worker = new Worker("/client/worker.js", { type: "module" });
      const onOpening = ({ phase }) => {
        if (phase === "registering") worker.terminate();
      };
      return Endpoint.open({ url: location.origin, name: "dying", worker, onOpening }).then(
        () => "opened",
        (error) => `${error.name} ${error.code} ${error.retryable}: ${error.message}`,
      );
    });
    assert.equal(said, "OpenError module-unavailable true: the worker's script has ended");
    assert.equal(await held(page), 0, "nothing is held any more");
    assert.equal(await open(page, "dying"), undefined, "the store is free");
  });

  test("a worker whose script can not be loaded, or that can not be started, is a typed error", async () => {
    const context = await suite.browser.newContext();
    await context.route("**/client/worker.js", (route) => route.abort());
    const page = await tab(context);
    const outcome = async (worker) => {
      await begin(page, "unloaded", worker);
      return page.evaluate(() => window.outcome);
    };
    const notLoaded = "OpenError module-unavailable true: the worker's script can not be loaded";
    assert.equal(await outcome("/client/there-is-none.js"), notLoaded);
    assert.equal(await outcome("dedicated"), notLoaded);
    await page.evaluate(() => {
      const { SharedWorker } = window;
      window.SharedWorker = class extends SharedWorker {
        constructor() {
          super("/client/there-is-none.js", { type: "module" });
        }
      };
    });
    assert.equal(await outcome("shared"), notLoaded);
    await page.evaluate(() => {
      window.Worker = class {
        constructor() {
          throw new DOMException("not here", "SecurityError");
        }
      };
    });
    assert.equal(await outcome("dedicated"), "OpenError module-unavailable true: the worker's script can not be started");
    assert.equal(await held(page), 0, "nothing is held any more");
  });

  test("an error in a worker that has its seat is the worker's own affair", async () => {
    await peer("peer-of-faulty");
    const context = await suite.browser.newContext();
    const source = `import "/client/worker.js"; addEventListener("message", ({ data }) => { if (data === "fail") throw new Error("a fault"); });`;
    await context.route("**/own-worker.js", (route) => route.fulfill({ contentType: "text/javascript", body: source }));
    const page = await tab(context);
    await page.evaluate(async () => {
      const { Endpoint } = await import("/client/index.js");
      const worker = new Worker("/own-worker.js", { type: "module" });
      window.endpoint = await Endpoint.open({ url: location.origin, name: "in-faulty", worker });
      const failed = new Promise((resolve) => worker.addEventListener("error", resolve));
      worker.postMessage("fail");
      await failed;
    });
    await send(page, "agent:peer-of-faulty", "all the same");
    assert.deepEqual(await history(page, "agent:peer-of-faulty"), ["all the same"]);
    await page.evaluate(() => window.endpoint.close());
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
