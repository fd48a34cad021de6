// The packed package in apps as people build them: in each, two agents talk in Chromium.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import { watch } from "../support/browser.mjs";
import { makeProject, serve, tool } from "../support/project.mjs";
import { inBrowser } from "../support/suite.mjs";
import { SOON_MS } from "../support/until.mjs";

/** Opens two agents on the page, lets one write to the other, and writes what was heard into the page. */
const APP = `
import { Endpoint } from "@conclave/client";

const parameters = new URLSearchParams(location.search);
const output = document.querySelector("output");
try {
  const open = (role) => Endpoint.open({ url: parameters.get("url"), name: parameters.get("app") + "-" + role });
  const [writer, reader] = await Promise.all(["writer", "reader"].map(open));
  const heard = (async () => {
    for await (const { message, acknowledge } of reader.messages()) {
      await acknowledge();
      return message.sender + ": " + message.content[0].text;
    }
  })();
  await writer.send(reader.address, "hello");
  output.textContent = await heard;
  await Promise.all([writer.close(), reader.close()]);
} catch (error) {
  output.textContent = "failed: " + (error.stack ?? error);
}
`;

const page = (script, kind = 'type="module"') => `<!doctype html>
<meta charset="utf-8">
<title>An app</title>
<output></output>
<script ${kind} src="${script}"></script>
`;

/** What a careful page allows: its own files, WebAssembly, and one deployment. Neither eval nor inline scripts. */
const policy = (deployment) =>
  [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "worker-src 'self'",
    `connect-src 'self' ${deployment} ${deployment.replace("http", "ws")}`,
  ].join("; ");

describe("the packed package in an app", () => {
  const suite = inBrowser();
  const projects = [];

  after(() => {
    for (const project of projects) project.remove();
  });

  const project = (files) => {
    const made = makeProject(files);
    projects.push(made);
    return made;
  };

  /** Opens the app at `url` in a fresh profile and checks that its agents talk. */
  const talks = async (url, app) => {
    const context = await suite.browser.newContext();
    try {
      const opened = await context.newPage();
      await opened.route("**/favicon.ico", (route) => route.fulfill({ status: 204 }));
      const said = watch(opened, app);
      await opened.goto(`${url}/?${new URLSearchParams({ url: suite.deployment.url, app })}`);
      const output = opened.locator("output").filter({ hasText: /./ });
      await output.waitFor({ timeout: 2 * SOON_MS, state: "attached" }).catch((error) => {
        throw new Error(`${error.message}\n${said.join("\n")}`);
      });
      assert.equal(await output.textContent(), `agent:${app}-writer: hello`, said.join("\n"));
      assert.deepEqual(said, []);
    } finally {
      await context.close();
    }
  };

  const served = async (folder, app, headers) => {
    const server = await serve(folder, headers);
    try {
      await talks(server.url, app);
    } finally {
      await server.stop();
    }
  };

  const run = (name, flags, cwd) => execFileSync(tool(name), flags, { cwd, stdio: "pipe", env: { ...process.env, NODE_ENV: "production" } });

  test("built by esbuild, under a strict Content Security Policy", async () => {
    const { path: folder } = project({ "app.js": APP, "dist/index.html": page("app.js") });
    const flags = ["app.js", "--bundle", "--format=esm", "--splitting", "--outdir=dist", "--minify"];
    run("esbuild", flags, folder);
    // esbuild leaves `new URL(…, import.meta.url)` as it is: the module goes where the scripts go.
    const module = "conclave_web_client_bg.wasm";
    fs.copyFileSync(path.join(folder, "node_modules/@conclave/client/dist", module), path.join(folder, "dist", module));
    await served(path.join(folder, "dist"), "esbuild", { "content-security-policy": policy(suite.deployment.url) });
  });

  test("built by webpack, under a strict Content Security Policy", async () => {
    const { path: folder } = project({ "app.js": APP, "dist/index.html": page("app.js", "defer") });
    const flags = ["--mode=production", "--devtool=false", "--entry=./app.js", "--output-path=dist", "--output-filename=app.js"];
    run("webpack", flags, folder);
    await served(path.join(folder, "dist"), "webpack", { "content-security-policy": policy(suite.deployment.url) });
  });

  test("built by Vite, under a strict Content Security Policy", async () => {
    const { path: folder } = project({ "app.js": APP, "index.html": page("/app.js") });
    const { build } = await import("vite");
    await build({ root: folder, logLevel: "warn", configFile: false, base: "./" });
    await served(path.join(folder, "dist"), "vite-build", { "content-security-policy": policy(suite.deployment.url) });
  });

  test("served by Vite during development", async () => {
    const { path: folder } = project({ "app.js": APP, "index.html": page("/app.js") });
    const { createServer } = await import("vite");
    const server = await createServer({
      root: folder,
      logLevel: "warn",
      configFile: false,
      server: { port: 0, host: "127.0.0.1" },
    });
    try {
      await server.listen();
      await talks(server.resolvedUrls.local[0].replace(/\/$/, ""), "vite-dev");
    } finally {
      await server.close();
    }
  });

  test("as it is, imported by a plain module script, under a strict Content Security Policy", async () => {
    const { path: folder } = project({ "app.js": APP.replace('"@conclave/client"', '"./node_modules/@conclave/client/dist/index.js"'), "index.html": page("app.js") });
    await served(folder, "plain", { "content-security-policy": policy(suite.deployment.url) });
  });
});
