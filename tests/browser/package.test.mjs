// The package in a page: imported by a plain module script, refused where the browser lacks something, typed errors.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inBrowser } from "../support/suite.mjs";

describe("the package in a browser", () => {
  const suite = inBrowser();

  /** A page of a fresh profile, prepared by `prepare` before any script runs. */
  const page = async (prepare) => {
    const context = await suite.browser.newContext();
    if (prepare) await context.addInitScript(prepare);
    const opened = await context.newPage();
    await opened.goto(`${suite.deployment.url}/favicon.svg`);
    await opened.goto(`${suite.deployment.url}/`);
    return opened;
  };

  /** Opens an endpoint in the page, keeps it in `window[name]`, and returns the code of its failure, if any. */
  const open = (opened, name, options = {}) =>
    opened.evaluate(async ([agent, more]) => {
      const { Endpoint } = await import("/client/index.js");
      try {
        window[agent] = await Endpoint.open({ url: location.origin, name: agent, ...more });
        return undefined;
      } catch (error) {
        return { code: error.code, isConclaveError: error instanceof (await import("/client/index.js")).ConclaveError };
      }
    }, [name, options]);

  /** The code a send fails with. */
  const refused = (opened, agent, to, content) =>
    opened.evaluate(async ([name, address, body]) => {
      try {
        await window[name].send(address, body);
        return "sent";
      } catch (error) {
        return error.code;
      }
    }, [agent, to, content]);

  test("the module alone loads no wasm; an endpoint does", async () => {
    const opened = await page();
    const fetched = [];
    opened.on("request", (request) => fetched.push(request.url()));
    await opened.evaluate(() => import("/client/index.js"));
    assert.equal(fetched.filter((url) => url.endsWith(".wasm")).length, 0);
    assert.equal(await open(opened, "loader"), undefined);
    assert.equal(fetched.filter((url) => url.endsWith(".wasm")).length, 1);
  });

  // CONV-A03, CONV-A04, CONV-A06, CONV-A07, CONV-B07
  test("a refused send has a stable code and stores nothing", async () => {
    const opened = await page();
    assert.equal(await open(opened, "sender"), undefined);
    assert.equal(await refused(opened, "sender", "somebody", "hi"), "invalid-address");
    assert.equal(await refused(opened, "sender", "agent:sender", "hi"), "invalid-address");
    assert.equal(await refused(opened, "sender", "agent:nobody-here", "hi"), "unknown-agent");
    assert.equal(await refused(opened, "sender", "group:one-one,one-one,two-two", "hi"), "membership-invalid");
    const many = `group:${Array.from({ length: 33 }, (_, number) => `member-${number}`).join(",")}`;
    assert.equal(await refused(opened, "sender", many, "hi"), "membership-invalid");
    const other = await page();
    assert.equal(await open(other, "receiver"), undefined);
    assert.equal(await refused(opened, "sender", "agent:receiver", []), "content-invalid");
    assert.equal(await refused(opened, "sender", "agent:receiver", "x".repeat(32_769)), "content-invalid");
    assert.equal(await refused(opened, "sender", "agent:receiver", "\ud800"), "content-invalid");
    assert.equal(await refused(opened, "sender", "agent:receiver", [{ type: "data", value: Number.NaN }]), "content-invalid");
    assert.deepEqual(await opened.evaluate(() => window.sender.conversations()), []);
  });

  test("what is no string where a string belongs is refused by a typed error, and the endpoint goes on", async () => {
    const opened = await page();
    assert.equal(await open(opened, "untyped"), undefined);
    const codes = await opened.evaluate(async () => {
      const { Endpoint } = await import("/client/index.js");
      const code = (attempt) => attempt.then(() => "taken", (error) => error.code);
      const seen = [];
      for (const value of [undefined, null, 42, {}, ["agent:untyped"]]) {
        seen.push(await code(window.untyped.send(value, "hi")));
        seen.push(await code(window.untyped.history(value)));
      }
      seen.push(await code(Endpoint.open()));
      seen.push(await code(Endpoint.open({ url: location.origin, name: "untyped-two", registryKey: 42 })));
      return [...new Set(seen)];
    });
    assert.deepEqual(codes, ["invalid-address", "invalid-options"]);
    assert.deepEqual(await opened.evaluate(() => window.untyped.conversations()), []);
  });

  // CONV-M03, CONV-M04, CONV-M08, CONV-M10
  test("messages are delivered again until they are acknowledged, to one reader at a time", async () => {
    const [alice, bob] = [await page(), await page()];
    assert.equal(await open(alice, "giver"), undefined);
    assert.equal(await open(bob, "taker"), undefined);
    await alice.evaluate(async () => {
      for (const text of ["one", "two"]) await window.giver.send("agent:taker", text);
    });
    const taken = await bob.evaluate(async () => {
      const texts = [];
      const iterator = window.taker.messages();
      const first = await iterator.next();
      texts.push(first.value.message.content[0].text);
      await first.value.acknowledge();
      await first.value.acknowledge();
      texts.push((await iterator.next()).value.message.content[0].text);
      const second = await window.taker.messages().next().catch((error) => error.code);
      await iterator.return();
      return { texts, second };
    });
    assert.deepEqual(taken, { texts: ["one", "two"], second: "already-listening" });
    await bob.reload();
    assert.equal(await open(bob, "taker"), undefined);
    const again = await bob.evaluate(async () => {
      const { value } = await window.taker.messages().next();
      return value.message;
    });
    assert.deepEqual(again.content, [{ type: "text", text: "two" }]);
    assert.equal(again.kind, "direct");
    assert.equal(again.sender, "agent:giver");
    assert.equal(again.address, "agent:giver");
  });

  // CONV-D09
  test("two sends of equal content are two posts", async () => {
    const [alice, bob] = [await page(), await page()];
    assert.equal(await open(alice, "twice"), undefined);
    assert.equal(await open(bob, "witness"), undefined);
    const ids = await alice.evaluate(async () => {
      const one = await window.twice.send("agent:witness", "same");
      const two = await window.twice.send("agent:witness", "same");
      return [one.postId, two.postId];
    });
    assert.notEqual(ids[0], ids[1]);
    assert.equal(await alice.evaluate(async () => (await window.twice.history("agent:witness")).entries.length), 2);
  });

  // CONV-D10
  test("a send whose caller gives up is still certified", async () => {
    const [alice, bob] = [await page(), await page()];
    assert.equal(await open(alice, "impatient"), undefined);
    assert.equal(await open(bob, "patient"), undefined);
    await alice.evaluate(() => window.impatient.send("agent:patient", "begin"));
    await bob.evaluate(() => window.patient.close());
    const reason = await alice.evaluate(async () => {
      const controller = new AbortController();
      const sending = window.impatient.send("agent:patient", "go on", { signal: controller.signal });
      const recorded = (async () => {
        for await (const event of window.impatient.events()) {
          if (event.kind === "post" && event.content[0].text === "go on") return;
        }
      })();
      await recorded;
      controller.abort(new Error("enough"));
      return sending.then(() => "sent", (error) => error.message);
    });
    assert.equal(reason, "enough");
    assert.equal(await open(bob, "patient"), undefined);
    const texts = await bob.evaluate(async () => {
      const seen = [];
      for await (const { message, acknowledge } of window.patient.messages()) {
        seen.push(message.content[0].text);
        await acknowledge();
        if (seen.length === 2) return seen;
      }
    });
    assert.deepEqual(texts, ["begin", "go on"]);
  });

  // CONV-G18
  test("a browser without IndexedDB or Web Locks is refused by a typed error, and a held store too", async () => {
    const withoutLocks = await page(() => Object.defineProperty(Navigator.prototype, "locks", { get: () => undefined }));
    assert.deepEqual(await open(withoutLocks, "lockless"), { code: "locks-unavailable", isConclaveError: true });
    const withoutStore = await page(() => Object.defineProperty(window, "indexedDB", { get: () => undefined }));
    assert.deepEqual(await open(withoutStore, "storeless"), { code: "indexeddb-unavailable", isConclaveError: true });
    const refusing = await page(() => {
      IDBFactory.prototype.open = () => {
        throw new DOMException("denied", "SecurityError");
      };
    });
    assert.deepEqual(await open(refusing, "denied"), { code: "indexeddb-unavailable", isConclaveError: true });
    const holder = await page();
    assert.equal(await open(holder, "held"), undefined);
    assert.deepEqual(await open(holder, "held", { share: false }), { code: "store-locked", isConclaveError: true });
  });

  test("a Registry other than the pinned one is not trusted", async () => {
    const opened = await page();
    const other = { crv: "Ed25519", kty: "OKP", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
    const { code } = await open(opened, "careful", { registryKey: other });
    assert.equal(code, "registry-untrusted");
  });

  test("a deployment that cannot be reached is a typed error", async () => {
    const opened = await page();
    const { code } = await open(opened, "lonely", { url: "http://127.0.0.1:1" });
    assert.equal(code, "network-unavailable");
  });
});
