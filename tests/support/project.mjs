// An app of somebody else: an empty folder into which the packed client is installed, and a server for what it builds.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "./deployment.mjs";

/** The checkout. Its node_modules hold every tool a test runs. */
export const root = fileURLToPath(new URL("../../", import.meta.url));

/** The one packed package in target/npm. */
export function tarball() {
  const packed = path.join(root, "target/npm");
  const names = fs.readdirSync(packed).filter((name) => name.endsWith(".tgz"));
  assert.equal(names.length, 1, `one tarball in target/npm: ${names}`);
  return path.join(packed, names[0]);
}

/** A tool of the root's node_modules, by the name of its command. */
export const tool = (name) => path.join(root, "node_modules/.bin", name);

/** Makes a project with the client in it and these files, by their paths. `remove()` ends it. */
export function makeProject(files = {}) {
  const folder = temporaryFolder();
  fs.writeFileSync(path.join(folder.path, "package.json"), JSON.stringify({ type: "module", private: true }));
  // Without the registry: the package has no dependencies.
  const flags = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", tarball()];
  execFileSync("npm", flags, { cwd: folder.path, stdio: "pipe" });
  const write = (name, content) => {
    const file = path.join(folder.path, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  };
  for (const [name, content] of Object.entries(files)) write(name, content);
  return { ...folder, write };
}

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** Serves the files of a folder, each answer with these headers. */
export async function serve(folder, headers = {}) {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const file = path.join(folder, path.normalize(pathname.endsWith("/") ? `${pathname}index.html` : pathname));
    if (!file.startsWith(folder) || !fs.existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream", ...headers });
    fs.createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    }),
  };
}
