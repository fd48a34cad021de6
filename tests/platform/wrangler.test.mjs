// The platform's own tool at the root of the repository: a smoke test each of `wrangler dev` and of a dry deployment.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createServer } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect } from "../support/clients.mjs";
import { temporaryFolder } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { SOON_MS, until } from "../support/until.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const wrangler = path.join(root, "node_modules/.bin/wrangler");
const environment = {
  ...process.env,
  PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
  WRANGLER_SEND_METRICS: "false",
};

// The build command finds everything built already, but both start Node, bundle, and check for cargo's sake.
const TOOL_MS = 6 * SOON_MS;

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

describe("wrangler", () => {
  test("`wrangler dev` serves a publish and the query after it", async () => {
    const port = await freePort();
    const state = temporaryFolder();
    const flags = ["dev", "--port", String(port), "--inspector-port", "0", "--persist-to", state.path];
    const tool = spawn(wrangler, flags, { cwd: root, env: environment, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const log = [];
    tool.stdout.on("data", (chunk) => log.push(chunk));
    tool.stderr.on("data", (chunk) => log.push(chunk));
    try {
      const client = connect(`http://127.0.0.1:${port}`);
      const SERVING = 1;
      await until("wrangler to serve", async () => {
        if (tool.exitCode !== null) throw new Error(`it ended early:\n${Buffer.concat(log)}`);
        return (await client.health.check({})).status === SERVING;
      }, TOOL_MS);
      const group = envelopes.groupId();
      await client.publish.publish({ envelopes: [envelopes.groupMessage(group, "hello")] });
      const page = await client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }] });
      assert.deepEqual(page.envelopes.map(envelopes.textOf), ["hello"]);
    } finally {
      const ended = new Promise((resolve) => tool.once("exit", resolve));
      if (tool.exitCode === null) {
        process.kill(-tool.pid, "SIGKILL");
        await ended;
      }
      state.remove();
    }
  });

  test("`wrangler deploy --dry-run` accepts the configuration and bundles the worker", async () => {
    const output = temporaryFolder();
    try {
      const { stdout } = await promisify(execFile)(
        wrangler, ["deploy", "--dry-run", "--outdir", output.path], { cwd: root, env: environment, timeout: TOOL_MS });
      assert.match(stdout, /Total Upload/);
    } finally {
      output.remove();
    }
  });
});
