// docs/quick-start.md, word for word: its commands are run, its files are written, its page is opened. What differs are the two
// ports, and that the backend is not built again.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { watch } from "../support/browser.mjs";
import { temporaryFolder } from "../support/deployment.mjs";
import { root } from "../support/project.mjs";
import { inBrowser } from "../support/suite.mjs";
import { SOON_MS, until } from "../support/until.mjs";

const BACKEND = "http://127.0.0.1:8787";
const PAGE_PORT = "8000";

/** The blocks of the page, by what its fences call them: `sh app`, `html index.html`. */
const blocks = new Map(
  [...fs.readFileSync(path.join(root, "docs/quick-start.md"), "utf8").matchAll(/^```\w+ (\S+)\n([^]*?)^```$/gm)]
    .map(([, name, text]) => [name, text]),
);

describe("the quick start", () => {
  const suite = inBrowser();
  let folder;
  let server;

  before(async () => {
    folder = temporaryFolder();
  });
  after(async () => {
    server?.kill();
    folder?.remove();
  });

  test("gives two agents that talk", async () => {
    assert.deepEqual([...blocks.keys()], ["backend", "app", "index.html", "app.js", "page"]);
    assert.equal(blocks.get("backend"), "cargo xtask dev\n");
    fs.symlinkSync(root, path.join(folder.path, "conclave"));
    const env = { ...process.env, npm_config_offline: "true", npm_config_audit: "false" };
    execFileSync("sh", ["-e", "-c", blocks.get("app")], { cwd: folder.path, env, stdio: "pipe" });

    const app = path.join(folder.path, "two-agents");
    assert.ok(blocks.get("app.js").includes(BACKEND));
    fs.writeFileSync(path.join(app, "index.html"), blocks.get("index.html"));
    fs.writeFileSync(path.join(app, "app.js"), blocks.get("app.js").replace(BACKEND, suite.deployment.url));

    // Port 0 is a free one, which the server names in its first line.
    const serve = blocks.get("page").replace(PAGE_PORT, "0").trim();
    assert.notEqual(serve, blocks.get("page").trim());
    let said = "";
    server = spawn("sh", ["-c", `exec ${serve}`], { cwd: app, env: { ...process.env, PYTHONUNBUFFERED: "1" } });
    server.stdout.on("data", (chunk) => (said += chunk));
    const url = await until("the page to be served", () => /\((http:\/\/[^)]+)\/\)/.exec(said)?.[1]);

    const context = await suite.browser.newContext();
    const open = async (name) => {
      const page = await context.newPage();
      await page.goto(`${url}/?name=${name}`);
      const complaints = watch(page, name);
      await page.locator("input:enabled").waitFor({ timeout: 2 * SOON_MS }).catch((error) => {
        throw new Error(`${error.message}\n${complaints.join("\n")}`);
      });
      return page;
    };
    const [alice, bob] = [await open("alice"), await open("bob")];
    const say = async (page, text) => {
      await page.locator("input").fill(text);
      await page.locator("button").click();
    };
    await say(alice, "hello, Bob");
    await bob.getByText("agent:alice: hello, Bob").waitFor({ timeout: 2 * SOON_MS });
    await say(bob, "hello, Alice");
    await alice.getByText("agent:bob: hello, Alice").waitFor({ timeout: 2 * SOON_MS });
    await alice.getByText("me: hello, Bob").waitFor();
  });
});
