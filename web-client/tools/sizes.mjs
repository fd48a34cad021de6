// What a page downloads for each entry of the package, written into web-client/README.md.
//
//     node web-client/tools/sizes.mjs            writes the table
//     node web-client/tools/sizes.mjs --check    fails when it is stale, or when the endpoint is larger than it may be

import path from "node:path";
import zlib from "node:zlib";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { put } from "./generated.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const package_ = path.join(root, "target/client-package");
const MODULE = "conclave_web_client_bg.wasm";
/** What the endpoint may take, module and glue included, in KiB of brotli. */
const ENDPOINT_KIB_MAX = 400;
/** By how much the table may differ from what was built, in KiB: the rounding, and what a compiler's version changes. */
const ROUNDING_KIB = 1;

const { exports } = JSON.parse(fs.readFileSync(path.join(package_, "package.json"), "utf8"));
const entries = Object.entries(exports).filter(([, target]) => typeof target === "object");

const brotli = (file) => {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN, BROTLI_PARAM_SIZE_HINT } = zlib.constants;
  const bytes = fs.readFileSync(file);
  const params = { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_LGWIN]: 24, [BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return zlib.brotliCompressSync(bytes, { params }).length;
};
const sizes = new Map();
const sizeOf = (file) => {
  if (!sizes.has(file)) sizes.set(file, brotli(file));
  return sizes.get(file);
};

/** The scripts an entry reaches, those it imports later included. */
async function scriptsOf(entry) {
  const { metafile } = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false, metafile: true, absWorkingDir: package_, outdir: "unused", logLevel: "error" });
  return Object.keys(metafile.inputs).map((file) => path.join(package_, file));
}

const kib = (bytes) => (bytes / 1024).toFixed(1);
const rows = ["| import | scripts | module | together |", "|---|---|---|---|"];
const module = sizeOf(path.join(package_, "dist", MODULE));
let isTooLarge = false;
for (const [name, target] of entries) {
  const scripts = await scriptsOf(path.join(package_, target.default));
  const own = scripts.map(sizeOf).reduce((one, other) => one + other, 0);
  // Whoever reaches the glue loads the module.
  const loads = scripts.some((file) => file.endsWith("conclave_web_client.js")) ? module : 0;
  rows.push(`| \`@conclave/client${name.slice(1)}\` | ${kib(own)} | ${loads ? kib(loads) : ""} | ${kib(own + loads)} |`);
  if ((own + loads) / 1024 > ENDPOINT_KIB_MAX) {
    console.error(`@conclave/client${name.slice(1)} takes ${kib(own + loads)} KiB of brotli, and may take ${ENDPOINT_KIB_MAX}`);
    isTooLarge = true;
  }
}
const table = rows.join("\n");
console.error(table);

const numbers = (text) => text.match(/\d+\.\d+/g)?.map(Number) ?? [];
const shape = (text) => text.replace(/\d+\.\d+/g, "N");
put(path.join(root, "web-client/README.md"), "sizes", table, (held, wanted) =>
  shape(held) === shape(wanted) &&
  numbers(held).every((number, at) => Math.abs(number - numbers(wanted)[at]) <= ROUNDING_KIB));
if (isTooLarge) process.exitCode = 1;
