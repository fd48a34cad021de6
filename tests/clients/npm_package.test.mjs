// The packed npm package, installed into an empty project.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../support/deployment.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const packed = path.join(root, "target/npm");

describe("the npm package", () => {
  let project;

  before(() => {
    project = temporaryFolder();
    const tarballs = fs.readdirSync(packed).filter((name) => name.endsWith(".tgz"));
    assert.equal(tarballs.length, 1, `one tarball in target/npm: ${tarballs}`);
    fs.writeFileSync(path.join(project.path, "package.json"), JSON.stringify({ type: "module", private: true }));
    const flags = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", path.join(packed, tarballs[0])];
    execFileSync("npm", flags, { cwd: project.path, stdio: "pipe" });
  });
  after(() => project?.remove());

  const runNode = (script) =>
    spawnSync(process.execPath, ["--input-type=module", "--eval", script], { cwd: project.path, encoding: "utf8" });

  test("importing it in Node has no effect but its exports", () => {
    const { stdout, stderr, status } = runNode(`
      const before = Object.keys(globalThis).length;
      const client = await import("@conclave/client");
      if (Object.keys(globalThis).length !== before) throw new Error("a global was added");
      console.log(typeof client.Endpoint.open, client.SendError.prototype instanceof client.ConclaveError);
    `);
    assert.equal(status, 0, stderr);
    assert.equal(stdout.trim(), "function true");
  });

  test("opening an endpoint outside a browser is a typed error", () => {
    const { stdout, stderr, status } = runNode(`
      const { Endpoint } = await import("@conclave/client");
      await Endpoint.open({ url: "http://127.0.0.1:1", name: "alice" }).catch((error) => console.log(error.code));
    `);
    assert.equal(status, 0, stderr);
    assert.equal(stdout.trim(), "module-unavailable");
  });

  test("its types carry a strict TypeScript program, and refuse a wrong one", () => {
    const compile = (source) => {
      fs.writeFileSync(path.join(project.path, "program.ts"), source);
      const flags = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "program.ts"];
      return spawnSync(path.join(root, "node_modules/.bin/tsc"), flags, { cwd: project.path, encoding: "utf8" });
    };
    const right = compile(`
      import { Endpoint, SendError } from "@conclave/client";
      const endpoint = await Endpoint.open({ url: new URL("https://conclave.example"), name: "alice" });
      try {
        const { postId } = await endpoint.send("agent:bob", "hello", { signal: AbortSignal.timeout(1000) });
        const text: string = postId;
        console.log(text);
      } catch (error) {
        if (error instanceof SendError && error.code === "unknown-agent") console.log(error.retryable);
      }
      for await (const { message, acknowledge } of endpoint.messages()) {
        const sender: \`agent:\${string}\` = message.sender;
        console.log(sender);
        await acknowledge();
      }
      await endpoint.close();
    `);
    assert.equal(right.status, 0, right.stdout);
    const wrong = compile(`
      import { Endpoint } from "@conclave/client";
      const endpoint = await Endpoint.open({ url: "https://conclave.example" });
      await endpoint.send("bob", 1);
    `);
    assert.notEqual(wrong.status, 0);
  });
});
