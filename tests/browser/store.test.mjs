// The store in a real browser: what opens, what is refused and left alone, migrations, lost and full disks.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { storeOfLayout1, storesInPage } from "../support/stores.mjs";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** Nothing answers there: a store is opened without its deployment. */
const NOWHERE = "http://127.0.0.1:1";
const STORE = "a store";

describe("the store in a browser", () => {
  const suite = inBrowser();

  /** A page of a fresh profile, or of `context`, prepared by `prepare` before any script runs. */
  const page = async (prepare, context) => {
    const within = context ?? (await suite.browser.newContext());
    if (!context) await within.addInitScript(storesInPage);
    const opened = await within.newPage();
    if (prepare) await opened.addInitScript(prepare);
    await opened.goto(`${suite.deployment.url}/favicon.svg`);
    return opened;
  };

  /** A page with a store that holds `content`. */
  const withStore = async (content, prepare) => {
    const opened = await page(prepare);
    await opened.evaluate(([name, rows]) => window.stores.load(name, rows), [STORE, content]);
    return opened;
  };

  const dump = (opened, name = STORE) => opened.evaluate((store) => window.stores.dump(store), name);
  const inspect = (opened) =>
    opened.evaluate(async (storageName) => (await import("/client/index.js")).Endpoint.inspect({ storageName }), STORE);

  /** What an operation of the page fails with, its cause included. */
  const failure = async (operation) => {
    const { code, message, retryable, cause } = await operation;
    return { code, message, retryable, cause };
  };

  /** Opens an endpoint over the store, offline unless told otherwise, as `window.endpoint`. Returns how that failed, if so. */
  const open = (opened, { url = NOWHERE, name = "alice", storageName = STORE } = {}) =>
    failure(opened.evaluate(async (options) => {
      const { Endpoint, StoreError } = await import("/client/index.js");
      window.phases = [];
      const plain = (error) => error && {
        code: error.code,
        message: error.message,
        retryable: error.retryable,
        isStoreError: error instanceof StoreError,
        cause: plain(error.cause),
      };
      try {
        window.endpoint = await Endpoint.open({ ...options, onOpening: (progress) => window.phases.push(progress) });
        return {};
      } catch (error) {
        return plain(error);
      }
    }, { url, name, storageName }));
  const close = (opened) => opened.evaluate(() => window.endpoint.close());
  const texts = (opened) =>
    opened.evaluate(async () => {
      const found = [];
      for await (const { content } of window.endpoint.history("agent:bob")) found.push(content[0].text);
      return found;
    });
  const restore = (opened) =>
    opened.evaluate(async (storageName) => {
      const { Endpoint } = await import("/client/index.js");
      return Endpoint.restore({ storageName }).then(() => "restored", (error) => error.code);
    }, STORE);

  // CONV-G14, CONV-G02
  test("a store of the previous layout is copied, migrated, verified and goes on; there is no way back then", async () => {
    const before = storeOfLayout1();
    const opened = await withStore(before);
    assert.equal(await inspect(opened), "migrate");
    assert.deepEqual(await dump(opened), before);
    assert.deepEqual(await opened.evaluate(() => window.stores.names()), [STORE]);

    assert.deepEqual((await open(opened)).code, undefined);
    const phases = await opened.evaluate(() => window.phases);
    assert.deepEqual(
      [...new Set(phases.map(({ phase }) => phase))],
      ["waiting-for-store", "migrating", "verifying", "connecting"],
    );
    assert.deepEqual(await texts(opened), ["one", "two", "three", "four"]);
    const unfinished = await opened.evaluate(() => window.endpoint.state.posts.map(({ content }) => content[0].text));
    assert.deepEqual(unfinished, ["unfinished"]);
    await close(opened);
    assert.equal(await inspect(opened), "reopen");
    assert.equal((await open(opened)).code, undefined);
    await close(opened);

    assert.equal(await restore(opened), "store-rolled-back");
    const backup = await dump(opened, `${STORE} backup`);
    assert.deepEqual(Object.values(backup.stores).flat(), [[["backup"], "superseded"]]);
    // Somebody puts the old rows back by hand.
    await opened.evaluate(async ([name, rows]) => {
      await window.stores.change(name, Object.keys(rows.stores), (store, { bytes }) => {
        for (const [of, content] of Object.entries(rows.stores)) {
          store(of).clear();
          for (const [key, value] of content) store(of).put(bytes(value), key);
        }
      });
    }, [STORE, before]);
    assert.equal(await inspect(opened), "store-rolled-back");
    const refused = await open(opened);
    assert.equal(refused.code, "store-rolled-back");
    assert.match(refused.message, /new name/);
  });

  // CONV-G14
  test("a migrated store that does not verify is put back row for row", async () => {
    const before = storeOfLayout1();
    const evidence = before.stores.protocol_evidence[3];
    evidence[1] = evidence[1].replace(/"evidence_key":"agt_./, (text) => `${text.slice(0, -1)}0`);
    evidence[0][3] = JSON.parse(evidence[1]).evidence_key;
    const opened = await withStore(before);
    const { stores } = await dump(opened);
    const refused = await open(opened);
    assert.equal(refused.code, "migration-failed");
    assert.match(refused.message, /Endpoint\.restore/);
    assert.equal(refused.cause.code, "corrupt");
    assert.match(refused.cause.message, /protocol_evidence/);
    assert.equal((await open(opened)).code, "migration-failed");
    assert.equal(await restore(opened), "restored");
    assert.deepEqual((await dump(opened)).stores, stores);
    assert.equal(await restore(opened), "no-backup");
    assert.equal(await inspect(opened), "migrate");
  });

  // CONV-G14, CONV-G15
  test("what waits to be sent is judged before anything is copied", async () => {
    const before = storeOfLayout1();
    for (const row of before.stores.outbound_messages) {
      row[1] = row[1].replace(/"wire_version":"[^"]*"/, '"wire_version":"2020.101.1"');
    }
    const opened = await withStore(before);
    const refused = await open(opened);
    assert.equal(refused.code, "corrupt");
    assert.match(refused.message, /outbound_messages/);
    assert.deepEqual(await dump(opened), before);
    assert.deepEqual(await opened.evaluate(() => window.stores.names()), [STORE]);
  });

  // CONV-G14, CONV-N03
  test("a migration whose transaction fails leaves the store as it was", async () => {
    const before = storeOfLayout1();
    const opened = await withStore(before, () => {
      const { put } = IDBObjectStore.prototype;
      IDBObjectStore.prototype.put = function (...row) {
        if (window.failing && this.transaction.mode === "versionchange") {
          throw new DOMException("full", window.failing);
        }
        return put.apply(this, row);
      };
    });
    const fail = (name) => opened.evaluate((exception) => { window.failing = exception; }, name);
    await fail("QuotaExceededError");
    const full = await open(opened);
    assert.deepEqual([full.code, full.retryable], ["quota-exceeded", true]);
    assert.deepEqual(await dump(opened), before);
    await fail("UnknownError");
    const broken = await open(opened);
    assert.equal(broken.code, "migration-failed");
    assert.match(broken.message, /Nothing was changed/);
    assert.deepEqual(await dump(opened), before);
    assert.equal(await restore(opened), "no-backup");
    await fail(undefined);
    assert.equal((await open(opened)).code, undefined);
    await close(opened);
  });

  test("an upgrade that another page holds up is told so after a while, and made when that page is gone", async () => {
    const before = storeOfLayout1();
    const opened = await withStore(before);
    const holder = await page(undefined, opened.context());
    await holder.evaluate(async (name) => { window.held = await window.stores.open(name); }, STORE);
    await opened.clock.install();
    const opening = open(opened);
    await until("the copy to be made", async () => (await dump(holder, `${STORE} backup`))?.stores.backup?.length === 1);
    await until("the wait to end", async () => {
      await opened.clock.runFor(1000);
      return Promise.race([opening, Promise.resolve(undefined)]);
    });
    const refused = await opening;
    assert.deepEqual([refused.code, refused.retryable], ["upgrade-blocked", true]);
    await holder.evaluate(() => window.held.close());
    await opened.clock.resume();
    assert.deepEqual(await dump(holder), before);
    assert.equal((await open(opened)).code, undefined);
    await close(opened);
  });

  // CONV-G01, CONV-G02
  test("a store of no or another release is refused for one of three reasons and left byte for byte", async () => {
    const none = await page();
    assert.equal(await inspect(none), "create");
    assert.deepEqual(await none.evaluate(() => window.stores.names()), []);

    const meta = (row) => [[[1], JSON.stringify(row)]];
    const newer = storeOfLayout1();
    newer.stores.schema_meta = meta({ singleton: 1, version: 99, baseline: 7, more: true });
    newer.stores.a_table_of_the_future = [[["a"], "b"]];
    const older = storeOfLayout1();
    older.stores.schema_meta = meta({ singleton: 1, version: 0, baseline: 0 });
    const foreign = { version: 3, stores: { shopping: [[[1], "milk"]] } };
    for (const [content, code] of [[newer, "newer-schema"], [older, "pre-reset"], [foreign, "incompatible"]]) {
      const opened = await withStore(content);
      assert.equal(await inspect(opened), code);
      assert.equal((await open(opened)).code, code);
      assert.deepEqual(await dump(opened), content);
      assert.deepEqual(await opened.evaluate(() => window.stores.names()), [STORE]);
    }
  });

  // CONV-G11, CONV-G12
  test("a corrupt row refuses the start and an owner's read, and is named", async () => {
    const opened = await withStore(storeOfLayout1());
    assert.equal((await open(opened)).code, undefined);
    const key = await opened.evaluate(async (name) => {
      let changed;
      await window.stores.change(name, ["protocol_evidence"], async (store, { answered, bytes, text }) => {
        const [first] = await answered(store("protocol_evidence").getAllKeys());
        const row = JSON.parse(text(await answered(store("protocol_evidence").get(first))));
        row.canonical_evidence = row.canonical_evidence.replace(/"signature":"./, '"signature":"_');
        store("protocol_evidence").put(bytes(JSON.stringify(row)), first);
        changed = first;
      });
      return changed;
    }, STORE);
    await assert.rejects(texts(opened), /protocol_evidence/);
    await close(opened);
    const refused = await open(opened);
    assert.equal(refused.code, "corrupt");
    assert.ok(refused.message.includes(key.join("/")), refused.message);
    assert.ok(refused.message.includes("protocol_evidence"), refused.message);
  });

  test("the platform verifies signatures where it can, and its word is not needed", async () => {
    const platforms = {
      "it verifies": () => undefined,
      "it refuses everything": () => {
        SubtleCrypto.prototype.verify = () => Promise.resolve(false);
      },
      "it knows no Ed25519": () => {
        SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException("no", "NotSupportedError"));
      },
      "there is none": () => {
        Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined });
      },
    };
    const count = () => {
      window.vouched = [];
      const { verify } = SubtleCrypto.prototype;
      SubtleCrypto.prototype.verify = async function (...call) {
        const holds = await verify.apply(this, call);
        window.vouched.push(holds);
        return holds;
      };
    };
    for (const [platform, prepare] of Object.entries(platforms)) {
      const opened = await withStore(storeOfLayout1(), prepare);
      await opened.evaluate(count);
      assert.equal((await open(opened)).code, undefined, platform);
      const vouched = await opened.evaluate(() => window.vouched);
      if (platform === "it verifies") assert.ok(vouched.length >= 8 && vouched.every(Boolean), vouched.join());
      else assert.ok(!vouched.some(Boolean), platform);
      await close(opened);
      // The last record's vote is another's: it is among those that are looked at ahead.
      const head = await opened.evaluate(async (name) => {
        let voted;
        await window.stores.change(name, ["protocol_evidence", "conversation_state"], async (store, { answered, bytes, text }) => {
          const [state] = await answered(store("conversation_state").getAll());
          const { head_record_hash } = JSON.parse(text(state));
          const keys = await answered(store("protocol_evidence").getAllKeys());
          voted = keys.find((parts) => parts.includes(head_record_hash));
          const row = JSON.parse(text(await answered(store("protocol_evidence").get(voted))));
          row.canonical_evidence = row.canonical_evidence.replace(/"signature":"./, '"signature":"_');
          store("protocol_evidence").put(bytes(JSON.stringify(row)), voted);
        });
        return voted;
      }, STORE);
      const refused = await open(opened);
      assert.equal(refused.code, "corrupt", platform);
      assert.ok(refused.message.includes(head.join("/")), refused.message);
    }
  });

  test("a long verification lets the page go on between its slices, and can be given up", async () => {
    // Every look at the clock takes longer than a slice.
    const opened = await withStore(storeOfLayout1(), () => {
      const { now } = Date;
      let late = 0;
      Date.now = () => now() + (late += 100);
    });
    await opened.evaluate(() => {
      window.turns = 0;
      const turn = () => {
        window.turns += 1;
        window.turning = setTimeout(turn, 0);
      };
      turn();
    });
    const seen = await opened.evaluate(async ([url, storageName]) => {
      const { Endpoint } = await import("/client/index.js");
      const controller = new AbortController();
      const verified = [];
      const open = (abortAt) => Endpoint.open({
        url, name: "alice", storageName, signal: controller.signal,
        onOpening: ({ phase, done, total }) => {
          if (phase !== "verifying") return;
          verified.push([done, total]);
          if (done === abortAt) controller.abort(new Error("enough"));
        },
      });
      return open(2).then(() => "opened", (error) => [error.message, verified]);
    }, [NOWHERE, STORE]);
    assert.deepEqual(seen, ["enough", [[0, 4], [1, 4], [2, 4]]]);
    assert.equal((await open(opened)).code, undefined);
    const done = await opened.evaluate(() => window.phases.filter(({ phase }) => phase === "verifying").map((at) => at.done));
    assert.deepEqual(done.slice(0, 5), [0, 1, 2, 3, 4]);
    await close(opened);
  });

  // CONV-N04
  test("a key that outlived its history signs nothing, and a reset lets the browser begin again", async () => {
    const losses = {
      "every table is emptied": (names) => window.stores.change(names.store, names.tables, (store) => {
        for (const table of names.tables) store(table).clear();
      }),
      "the tables are another store's": (names) => window.stores.change(names.store, ["schema_meta"], (store, { bytes }) => {
        const row = { singleton: 1, version: 2, baseline: 1, store_id: "another", migrated_from: null };
        store("schema_meta").put(bytes(JSON.stringify(row)), [1]);
      }),
      "all but the version is emptied": (names) => window.stores.change(names.store, names.tables, (store) => {
        for (const table of names.tables) if (table !== "schema_meta") store(table).clear();
      }),
      "some tables are removed": async (names) => {
        const { version } = await window.stores.dump(names.store);
        const database = await window.stores.open(names.store, version + 1, (upgraded) => {
          for (const table of names.tables.slice(3, 7)) upgraded.deleteObjectStore(table);
        });
        database.close();
      },
    };
    for (const [what, lose] of Object.entries(losses)) {
      const opened = await withStore(storeOfLayout1());
      assert.equal((await open(opened)).code, undefined);
      await close(opened);
      const tables = Object.keys(storeOfLayout1().stores).filter((table) => table !== "local");
      await opened.evaluate(lose, { store: STORE, tables });
      const lost = await dump(opened);
      const requests = [];
      opened.on("request", (request) => requests.push(request.url()));
      assert.equal(await inspect(opened), "store-evicted", what);
      const refused = await open(opened, { url: suite.deployment.url });
      assert.equal(refused.code, "store-evicted", what);
      assert.match(refused.message, /new name/);
      assert.deepEqual(requests.filter((url) => !url.includes("/client/")), [], what);
      assert.deepEqual(await dump(opened), lost);
      await opened.evaluate(async (storageName) => (await import("/client/index.js")).Endpoint.reset({ storageName }), STORE);
      assert.equal(await inspect(opened), "create", what);
      assert.deepEqual(await opened.evaluate(() => window.stores.names()), []);
    }
  });

  // CONV-N04
  test("an origin whose storage the browser evicted begins anew: the old name stays with the key that is gone", async () => {
    const opened = await page();
    assert.equal((await open(opened, { url: suite.deployment.url, name: "evicted" })).code, undefined);
    await close(opened);
    const session = await opened.context().newCDPSession(opened);
    await session.send("Storage.clearDataForOrigin", { origin: suite.deployment.url, storageTypes: "all" });
    assert.equal(await inspect(opened), "create");
    const refused = await open(opened, { url: suite.deployment.url, name: "evicted" });
    assert.equal(refused.code, "name-taken");
    assert.match(refused.message, /take another name/);
    await opened.evaluate(async (storageName) => (await import("/client/index.js")).Endpoint.reset({ storageName }), STORE);
    assert.equal((await open(opened, { url: suite.deployment.url, name: "begun-anew" })).code, undefined);
    await close(opened);
  });
});
