// Many tabs of one agent: one owns the store, the others are served by it, and whoever is next goes on when it is gone.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { launch, watch } from "../support/browser.mjs";
import { Deployment } from "../support/deployment.mjs";
import { until } from "../support/until.mjs";

describe("many tabs", () => {
  let deployment;
  let browser;

  before(async () => {
    deployment = await Deployment.start();
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await deployment?.stop();
  });

  /** A page of `context`, at an address that runs no script of its own. */
  const tab = async (context) => {
    const page = await context.newPage();
    page.said = watch(page, "tab");
    await page.goto(`${deployment.url}/favicon.svg`);
    return page;
  };

  /** Opens the agent in a page and keeps it in `window.endpoint`; the code of the failure, if any. */
  const open = (page, name, options = {}) =>
    page.evaluate(async ([agent, more]) => {
      const { Endpoint, ConclaveError } = await import("/client/index.js");
      try {
        window.endpoint = await Endpoint.open({ url: location.origin, name: agent, ...more });
        return undefined;
      } catch (error) {
        return error instanceof ConclaveError ? `${error.name} ${error.code}` : String(error);
      }
    }, [name, options]);

  /** So many tabs with this agent open, the owner first. */
  const tabs = async (count, name, options) => {
    const context = await browser.newContext();
    const pages = [];
    for (let at = 0; at < count; at += 1) {
      pages.push(await tab(context));
      assert.equal(await open(pages[at], name, options), undefined);
    }
    return pages;
  };

  /** An agent in a browser of its own that acknowledges what it gets. */
  const peer = async (name) => {
    const [page] = await tabs(1, name);
    await page.evaluate(() => {
      void (async () => {
        for await (const delivery of window.endpoint.messages()) await delivery.acknowledge();
      })();
    });
    return page;
  };

  /** Keeps every text the page is given in `window.texts`, and acknowledges what `acknowledges` says. */
  const listen = (page, every = 1) =>
    page.evaluate((step) => {
      window.texts = [];
      void (async () => {
        for await (const { message, acknowledge } of window.endpoint.messages()) {
          window.texts.push(message.content[0].text);
          if (window.texts.length % step === 0) await acknowledge();
        }
      })().catch((error) => window.texts.push(String(error)));
    }, every);

  const texts = (page) => page.evaluate(() => window.texts);

  /** Resolves when the page has been given exactly these texts. */
  const holds = async (page, expected) => {
    let last;
    await until(`the tab to hold ${expected.length} texts`, async () => {
      last = await texts(page);
      return last.length >= expected.length;
    }).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last)} ${page.said.join("\n")}`);
    });
    assert.deepEqual(await texts(page), expected);
  };

  const send = (page, to, ...bodies) =>
    page.evaluate(async ([address, all]) => {
      for (const text of all) await window.endpoint.send(address, text);
    }, [to, bodies]);

  /** The texts of the posts at an address, as the page reads them. */
  const history = (page, address) =>
    page.evaluate(async (at) => (await window.endpoint.history(at)).entries.map((entry) => entry.content[0].text), address);

  /** Begins sends that nobody waits for here; `outcomes` has what became of them. */
  const beginSends = (page, to, bodies) =>
    page.evaluate(([address, all]) => {
      window.outcomes = Promise.all(
        all.map((text) => window.endpoint.send(address, text).then(({ postId }) => postId, (error) => `${error.name} ${error.code}`)),
      );
    }, [to, bodies]);

  const outcomes = (page) => page.evaluate(() => window.outcomes);

  /** Ends a page as a crash of its process does. */
  const crash = async (page) => {
    const session = await page.context().newCDPSession(page);
    const crashed = page.waitForEvent("crash");
    session.send("Page.crash").catch(() => undefined);
    await crashed;
  };

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

  test("an owner of another release is a typed error for a tab that opens, and for one that was attached", async () => {
    const [owner, other] = await tabs(2, "mixed");
    const foreign = await tab(owner.context());
    await foreign.evaluate((store) => {
      const channel = new BroadcastChannel(store);
      channel.postMessage({ protocol: 0, kind: "hello", tab: "older" });
      channel.postMessage("nonsense");
      channel.postMessage({ protocol: 1, kind: "owner", epoch: 7 });
    }, `conclave/conclave ${deployment.url} mixed`);
    assert.deepEqual(await other.evaluate(() => window.endpoint.conversations()), [], "what is not understood is not heard");
    await owner.close();
    const [, attached] = await tabs(2, "unmixed");
    const newer = await tab(attached.context());
    await newer.evaluate((store) => {
      new BroadcastChannel(store).postMessage({ protocol: 2, kind: "owner", epoch: "newer", state: "open" });
    }, `conclave/conclave ${deployment.url} unmixed`);
    assert.equal(await attached.evaluate(async () => (await window.endpoint.closed).code), "incompatible-owner");
  });

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
    const context = await browser.newContext();
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
    const elsewhere = deployment.url.replace("127.0.0.1", "localhost");
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
      await page.goto(`${deployment.url}/frame.html`);
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
    const denied = await framed(browser);
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
