// How an endpoint reads: over one WebSocket that its topics join, over a body where WebSockets do not get through, and with a
// credential.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { frame } from "../support/raw.mjs";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { encode } from "../support/wire.mjs";

const SUBSCRIBE = "/xmtp.backend.v1.SubscriptionService/Subscribe";
const STATIC = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";

/** A page that is told of its WebSockets, and may have none that gets through. */
async function pageOf(browser, url, { blocked = false } = {}) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const sockets = [];
  const statics = [];
  page.on("websocket", (socket) => sockets.push(new URL(socket.url()).pathname));
  page.on("request", (request) => {
    if (new URL(request.url()).pathname === STATIC) statics.push(request);
  });
  if (blocked) {
    // A proxy that does not know WebSockets.
    await page.routeWebSocket(/./, (socket) => {
      sockets.push(new URL(socket.url()).pathname);
      socket.close({ code: 1001 });
    });
  }
  await page.goto(`${url}/`);
  return { page, sockets, statics };
}

const open = ({ page }, name, options = {}) =>
  page.evaluate(async ([agent, more]) => {
    const { Endpoint } = await import("/client/index.js");
    window.agent = await Endpoint.open({ url: location.origin, name: agent, ...more });
  }, [name, options]);

const send = ({ page }, to, text) => page.evaluate(([address, words]) => window.agent.send(address, words), [to, text]);

/** The next message's text. */
const next = ({ page }) =>
  page.evaluate(async () => {
    window.inbox ??= window.agent.messages();
    const { value } = await window.inbox.next();
    await value.acknowledge();
    return value.message.content[0].text;
  });

const statistics = ({ page }) => page.evaluate(() => window.agent.statistics());

describe("the connection of an endpoint", () => {
  const suite = inBrowser();

  test("conversations join one WebSocket while it is open", async () => {
    const windows = [];
    for (const name of ["one-a", "one-b", "one-c"]) {
      const window = await pageOf(suite.browser, suite.deployment.url);
      await open(window, name);
      windows.push(window);
    }
    const [a, b, c] = windows;
    await send(a, "agent:one-b", "to b");
    await send(a, "agent:one-c", "to c");
    await send(b, "agent:one-c", "also to c");
    assert.equal(await next(b), "to b");
    assert.deepEqual([await next(c), await next(c)].sort(), ["also to c", "to c"]);
    for (const window of windows) {
      assert.deepEqual(window.sockets, [SUBSCRIBE]);
      assert.equal(window.statics.length, 0);
      const { subscribe, subscribeStatic } = await statistics(window);
      assert.deepEqual([subscribe, subscribeStatic], [1, 0]);
    }
  });

  test("where no WebSocket gets through a body is read, and WebSockets are not tried again soon", async () => {
    const [a, b] = [await pageOf(suite.browser, suite.deployment.url, { blocked: true }), await pageOf(suite.browser, suite.deployment.url)];
    await open(a, "two-a");
    await open(b, "two-b");
    await send(b, "agent:two-a", "through a body");
    assert.equal(await next(a), "through a body");
    await send(a, "agent:two-b", "and back");
    assert.equal(await next(b), "and back");
    assert.deepEqual(a.sockets, [SUBSCRIBE, SUBSCRIBE], "one, and another to be sure");
    assert.ok(a.statics.length > 0);
  });

  // API-292, API-294, API-295
  test("an endpoint shares the connection of a backend, and everyone sees and clears one set of counts", async () => {
    const { page } = await pageOf(suite.browser, suite.deployment.url);
    const seen = await page.evaluate(async () => {
      const { Backend } = await import("/client/backend/index.js");
      const { Endpoint } = await import("/client/index.js");
      const backend = await Backend.connect({ url: location.origin });
      const endpoint = await Endpoint.open({ backend, name: "four-a" });
      const refused = await Endpoint.open({ backend, url: location.origin, name: "four-b" }).catch((error) => error.code);
      await backend.newest(`00${"ab".repeat(16)}`);
      while ((await endpoint.statistics()).subscribe === 0) await new Promise((resolve) => requestAnimationFrame(resolve));
      const counts = [await endpoint.statistics(), backend.statistics()];
      const text = await endpoint.statisticsSummary();
      await endpoint.clearStatistics();
      return { refused, counts, text, cleared: backend.statistics() };
    });
    assert.equal(seen.refused, "invalid-options");
    assert.deepEqual(seen.counts[0], seen.counts[1]);
    assert.deepEqual([seen.counts[0].queryNewest, seen.counts[0].subscribe], [1, 1]);
    assert.match(seen.text, /^queryNewest +1$/m);
    assert.deepEqual(Object.values(seen.cleared), [0, 0, 0, 0, 0, 0, 0]);
  });

  test("a server that takes every stream and ends it at once is asked less and less often, and is told as one that is away", async () => {
    const started = frame(Buffer.from(encode("xmtp.backend.v1.SubscribeResponse", { response: { case: "started", value: {} } })));
    const window = await pageOf(suite.browser, suite.deployment.url);
    await window.page.routeWebSocket(/./, (socket) => {
      socket.send(started);
      socket.close({ code: 1001 });
    });
    await window.page.goto(`${suite.deployment.url}/favicon.svg`);
    await open(window, "five-a");
    const waits = await window.page.evaluate(async () => {
      const delays = [];
      for await (const event of window.agent.events()) {
        if (event.kind === "connection" && event.state === "offline") delays.push(event.nextAttemptAt - event.since);
        if (delays.length === 3) return delays;
      }
    });
    assert.ok(waits[1] > waits[0] && waits[2] > waits[1], `${waits}`);
  });

  test("a connection that was lost is there again when the browser goes online", async () => {
    const [a, b] = [await pageOf(suite.browser, suite.deployment.url), await pageOf(suite.browser, suite.deployment.url)];
    await open(a, "three-a");
    await open(b, "three-b");
    await send(b, "agent:three-a", "before");
    assert.equal(await next(a), "before");
    await a.page.context().setOffline(true);
    await suite.deployment.killRuntime();
    const state = () => a.page.evaluate(() => window.agent.state.connection.state);
    await until("the endpoint to be offline", async () => (await state()) === "offline");
    await a.page.context().setOffline(false);
    await until("the endpoint to be online", async () => (await state()) === "online");
    await send(b, "agent:three-a", "after");
    assert.equal(await next(a), "after");
  });
});

describe("an endpoint of a deployment that asks for credentials", () => {
  const KEY = "key-of-the-test-that-is-long-enough-0123456789";
  const suite = inBrowser({ variables: { CONCLAVE_AUTH_ENABLED: "true", CONCLAVE_AUTH_API_KEY_app: KEY } });

  test("shows it on every call and on the WebSocket, and asks for another when it is refused", async () => {
    const a = await pageOf(suite.browser, suite.deployment.url);
    await open(a, "keyed-a", { credential: KEY });
    const b = await pageOf(suite.browser, suite.deployment.url);
    await b.page.evaluate(async ([name, key]) => {
      const { Endpoint } = await import("/client/index.js");
      window.asked = 0;
      const credential = async () => (window.asked++ === 0 ? "a-key-that-was-withdrawn" : key);
      window.agent = await Endpoint.open({ url: location.origin, name, credential });
    }, ["keyed-b", KEY]);
    await send(a, "agent:keyed-b", "with a credential");
    assert.equal(await next(b), "with a credential");
    assert.equal(await b.page.evaluate(() => window.asked), 2);
    assert.deepEqual([a.sockets, b.sockets], [[SUBSCRIBE], [SUBSCRIBE]]);
    const code = await (await pageOf(suite.browser, suite.deployment.url)).page.evaluate(async () => {
      const { Endpoint } = await import("/client/index.js");
      return Endpoint.open({ url: location.origin, name: "keyed-c" }).then(() => "open", (error) => error.code);
    });
    assert.equal(code, "unauthenticated");
  });
});
