import type * as CoreModule from "./conclave_web_client.js";
import { OpenError } from "./errors.js";
import type { OpenOptions } from "./types.js";

let loaded: Promise<typeof CoreModule> | undefined;

/**
 * Loads the wasm module once for the page. Nothing is fetched before an endpoint opens, so that importing this package
 * costs nothing and has no side effect, in Node too.
 *
 * @throws {@link OpenError} with code `module-unavailable`; a later call tries again.
 */
export function loadCore(wasm: OpenOptions["wasm"]): Promise<typeof CoreModule> {
  loaded ??= load(wasm).catch((cause: unknown) => {
    loaded = undefined;
    throw new OpenError("module-unavailable", "the wasm module can not be loaded", { cause, retryable: true });
  });
  return loaded;
}

async function load(wasm: OpenOptions["wasm"]): Promise<typeof CoreModule> {
  const core = await import("./conclave_web_client.js");
  // The literal form is what bundlers look for.
  const beside = () => readable(new URL("./conclave_web_client_bg.wasm", import.meta.url));
  await core.default({ module_or_path: wasm ?? (await beside()) });
  return core;
}

/** What Node has of a module loader that this package needs. */
interface NodeProcess {
  getBuiltinModule?(name: "node:fs/promises"): { readFile(file: URL): Promise<BufferSource> };
}

/** A file's bytes where `fetch` reads no files, in Node; elsewhere the address itself. */
async function readable(address: URL): Promise<URL | BufferSource> {
  const { process } = globalThis as { readonly process?: NodeProcess };
  return address.protocol === "file:" ? ((await process?.getBuiltinModule?.("node:fs/promises").readFile(address)) ?? address) : address;
}
