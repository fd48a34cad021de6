// examples/: each is checked against the package's types by a strict compiler, and does what it says.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { build } from "vite";
import { watch } from "../support/browser.mjs";
import { groupId, privateMessage } from "../support/envelopes.mjs";
import { makeProject, root, serve, tool } from "../support/project.mjs";
import { inBrowser } from "../support/suite.mjs";
import { SOON_MS } from "../support/until.mjs";

const examples = path.join(root, "examples");

describe("the examples", () => {
  const suite = inBrowser();
  let project;

  before(async () => {
    project = makeProject();
    fs.cpSync(examples, project.path, {
      recursive: true,
      filter: (file) => !/node_modules|package(-lock)?\.json$/.test(path.relative(examples, file)),
    });
    // The types of Node, of which the package itself needs none.
    fs.mkdirSync(path.join(project.path, "node_modules/@types"), { recursive: true });
    for (const name of ["@types/node", "undici-types"]) {
      fs.symlinkSync(path.join(root, "node_modules", name), path.join(project.path, "node_modules", name));
    }
  });
  after(() => project?.remove());

  test("every example is listed", () => {
    const folders = fs.readdirSync(examples, { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== "node_modules");
    const readme = fs.readFileSync(path.join(examples, "README.md"), "utf8");
    for (const { name } of folders) assert.ok(readme.includes(`[${name}](`), name);
  });

  test("they carry the package's types", () => {
    const { stdout, status } = spawnSync(tool("tsc"), ["--project", "."], { cwd: project.path, encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });

  /** Builds a page's script, opens the page and returns its lines when it is done. */
  const linesOf = async (name) => {
    const folder = path.join(project.path, name);
    await build({ root: folder, logLevel: "warn", configFile: false, base: "./" });
    const server = await serve(path.join(folder, "dist"));
    const context = await suite.browser.newContext();
    try {
      const page = await context.newPage();
      const said = watch(page, name);
      await page.goto(`${server.url}/?${new URLSearchParams({ url: suite.deployment.url })}`);
      const lines = page.locator("li");
      await lines.filter({ hasText: /^done$/ }).waitFor({ timeout: 2 * SOON_MS }).catch(async (error) => {
        throw new Error([error.message, ...(await lines.allTextContents()), ...said].join("\n"));
      });
      return await lines.allTextContents();
    } finally {
      await context.close();
      await server.stop();
    }
  };

  test("two agents: a question is answered", async () => {
    assert.deepEqual(await linesOf("two-agents"), ["asked: how long is this?", "answered: that has 17 letters", "done"]);
  });

  test("a group with history: every post is shown with its signers, and its file verifies", async () => {
    const lines = await linesOf("group-history");
    assert.equal(lines.length, 4, lines.join("\n"));
    assert.match(lines[0], /^0\. agent:ann-\w+ said shall we meet on Friday\?, signed by [23] of 3$/);
    assert.match(lines[1], /^1\. agent:ben-\w+ said yes \{"at":"14:00","room":3\}, signed by [23] of 3$/);
    assert.equal(lines[2], "verified: 2 posts of 3 members");
  });

  test("a bot in Node: its journal has every envelope once, over a restart", async () => {
    const { Backend, topics } = await import(path.join(project.path, "node_modules/@conclave/client/dist/backend/index.js"));
    const group = groupId();
    const topic = topics.groupMessages(group);
    const backend = await Backend.connect({ url: suite.deployment.url });
    const publish = (text) => backend.publish([{ kind: "group-message", data: privateMessage(group, new TextEncoder().encode(text)) }]);
    const journal = path.join(project.path, "journal");

    /** Runs the bot until it has told of so many envelopes. */
    const bot = (wanted) =>
      new Promise((resolve, reject) => {
        const running = spawn(process.execPath, ["node-bot/bot.ts", suite.deployment.url, journal, topic], { cwd: project.path });
        let output = "";
        const hear = (chunk) => {
          output += chunk;
          const told = output.split("\n").filter((line) => line.startsWith("group-message ")).length;
          // Once: a second signal would not wait for its end.
          if (told >= wanted && !running.killed) running.kill("SIGTERM");
        };
        running.stdout.on("data", hear);
        running.stderr.on("data", hear);
        running.once("exit", (code) => (code === 0 ? resolve(output) : reject(new Error(`the bot ended with ${code}: ${output}`))));
      });

    await publish("one");
    await publish("two");
    await bot(2);
    await publish("three");
    const output = await bot(1);
    assert.match(output, /Subscribe/i);
    const ids = fs.readFileSync(journal, "utf8").trim().split("\n").map((line) => BigInt(JSON.parse(line).sequenceId));
    assert.equal(ids.length, 3);
    assert.deepEqual(ids, [...ids].sort((one, other) => (one < other ? -1 : 1)));
  });
});
