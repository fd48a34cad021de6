// The cases that every store of the conversation engine must pass (crates/store-suite), over IndexedDB in a real browser.
// Which requirements a case answers to is said above the case.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { launch } from "../support/browser.mjs";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** The module with the cases; `cargo xtask build store-suite` makes it. */
const MODULE = path.join(ROOT, "target/store-suite");
/** Served by no one but the tests below. */
const ORIGIN = "http://localhost";
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** The cases as their crate lists them, which are those the store in memory passes. */
async function listed() {
  const source = await fs.readFile(path.join(ROOT, "crates/store-suite/src/lib.rs"), "utf8");
  const [, list] = source.match(/^suite! \{\n([^}]+)^\}/m);
  return list.split(";").flatMap((group) => group.slice(group.indexOf(":") + 1).split(",")).map((name) => name.trim())
    .filter((name) => name);
}

const cases = await listed();

describe("every case of the store suite over IndexedDB", () => {
  let browser;

  before(async () => {
    browser = await launch();
  });
  after(() => browser?.close());

  /** A page of a fresh profile that has the module. `panicked` is rejected with what the page says if the module panics. */
  async function open() {
    const context = await browser.newContext();
    await context.route(`${ORIGIN}/**`, async (route) => {
      const name = new URL(route.request().url()).pathname.slice(1);
      if (!name) return route.fulfill({ contentType: "text/html", body: "<!doctype html><title>store suite</title>" });
      const type = TYPES[path.extname(name)];
      if (!type) return route.fulfill({ status: 404 });
      return route.fulfill({ contentType: type, body: await fs.readFile(path.join(MODULE, path.basename(name))) });
    });
    const page = await context.newPage();
    const said = [];
    page.on("console", (line) => said.push(line.text()));
    const panicked = new Promise((_, reject) => {
      page.on("pageerror", (error) => reject(new Error([...said, error.message].join("\n"))));
    });
    await page.goto(`${ORIGIN}/`);
    await page.evaluate(async () => {
      // Throws, once, where the second row of a batch is put.
      globalThis.fillDiskForNextBatch = () => {
        const { put } = IDBObjectStore.prototype;
        let rows = 0;
        IDBObjectStore.prototype.put = function (...row) {
          rows += 1;
          if (rows === 1) return put.apply(this, row);
          IDBObjectStore.prototype.put = put;
          throw new DOMException("the disk is full", "QuotaExceededError");
        };
      };
      globalThis.suite = await import("/index.js");
      await globalThis.suite.default({ module_or_path: fetch("/index_bg.wasm") });
    });
    return { context, page, panicked };
  }

  let opened;
  /** Runs `use` with the page. The next one has a page of its own if it fails: a panic ends the module. */
  async function inPage(use) {
    opened ??= await open();
    const { context, page, panicked } = opened;
    try {
      return await Promise.race([use(page), panicked]);
    } catch (error) {
      opened = undefined;
      await context.close();
      throw error;
    }
  }

  test("the browser's module holds exactly the cases that run over memory", async () => {
    const held = await inPage((page) => page.evaluate(() => globalThis.suite.storeSuiteCases()));
    assert.deepEqual(held, cases);
    assert.ok(cases.length > 0);
    assert.equal(new Set(cases).size, cases.length);
  });

  test("a case that is not there is not taken for one that passed", async () => {
    assert.equal(await inPage((page) => page.evaluate(() => globalThis.suite.runStoreSuiteCase("no case"))), false);
  });

  for (const name of cases) {
    test(name.replaceAll("_", " "), async () => {
      const ran = await inPage((page) => page.evaluate((of) => globalThis.suite.runStoreSuiteCase(of), name));
      assert.equal(ran, true, "there is no case of this name");
    });
  }
});
