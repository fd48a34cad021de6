// The built worker on the emulator that wrangler brings: it evicts objects on request, and takes variables of every type.

import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(createRequire(import.meta.url).resolve("wrangler"));
const { Miniflare } = require("miniflare");

/** The worker's name. */
export const SCRIPT = "conclave";

const built = (name) => fs.readFileSync(new URL(`../../target/worker/${name}`, import.meta.url));

/** Starts one. `variables`: texts, or what wrangler.toml says without quotes; `state`: a folder, or nothing is kept. */
export function startEmulator({ variables, state }) {
  const classes = { SEQUENCER: "Sequencer", SHARD: "Shard", REGISTRY: "Registry" };
  const toBinding = (value) => ({ type: typeof value === "string" ? "text" : "json", value });
  const config = {
    name: SCRIPT,
    compatibilityDate: "2026-11-17",
    manifest: {
      mainModule: "entry.js",
      modules: {
        "entry.js": { type: "esm", contents: built("entry.js").toString() },
        "index_bg.wasm": { type: "wasm", contents: new Uint8Array(built("index_bg.wasm")) },
      },
    },
    exports: Object.fromEntries(Object.values(classes).map((name) => [name, { type: "durable-object", storage: "sqlite" }])),
    env: {
      ...Object.fromEntries(Object.entries(classes).map(([binding, exportName]) =>
        [binding, { type: "durable-object", worker: SCRIPT, exportName }])),
      ...Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, toBinding(value)])),
    },
  };
  return new Miniflare({ resourcePersistencePath: state, workers: [{ config }] });
}

/** The address of one that has been started. */
export async function addressOf(emulator) {
  return String(await emulator.ready).replace(/\/$/, "");
}
