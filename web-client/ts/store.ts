import { loadCore } from "./core.js";
import { fromCore, OpenError, StoreError } from "./errors.js";
import { ifFree, locked, lockOf } from "./tabs/lock.js";
import { baseAddress } from "./transport/address.js";
import type { EndpointOptions } from "./types.js";

/** Which store is meant: the one an endpoint of this name would open, or one named by itself. */
export type StoreOptions = Pick<EndpointOptions, "wasm"> &
  (
    | { readonly url: string | URL; readonly name: string; readonly storageName?: undefined }
    | { readonly storageName: string }
  );

/** What opening a store would do. */
export type StoreInspection =
  /** Make it: there is none. */
  | "create"
  /** Open it as it is. */
  | "reopen"
  /** Copy it and bring it to this release's layout. */
  | "migrate"
  /** Refuse it with this code, and leave it as it is. */
  | "newer-schema"
  | "pre-reset"
  | "incompatible"
  | "store-evicted"
  | "store-rolled-back";

/** The name of the database of an agent at a deployment, where the host gives it none. */
export function storeName(url: string, name: string, storageName: string | undefined): string {
  return storageName ?? `conclave ${url} ${name}`;
}

function nameOf(options: StoreOptions): string {
  if (typeof options.storageName === "string") return options.storageName;
  const { url, name } = options as { url: string | URL; name: string };
  if (typeof name !== "string") throw new OpenError("invalid-options", "there is neither a `storageName` nor a `name`");
  try {
    return storeName(baseAddress(url), name, undefined);
  } catch (cause) {
    throw new OpenError("invalid-options", (cause as Error).message, { cause });
  }
}

/** See `Endpoint.inspect`. */
export async function inspectStore(options: StoreOptions): Promise<StoreInspection> {
  const name = nameOf(options);
  const module = await loadCore(options.wasm);
  try {
    return (await module.inspect(name)) as StoreInspection;
  } catch (thrown) {
    throw fromCore(thrown);
  }
}

/** See `Endpoint.restore`. */
export async function restoreStore(options: StoreOptions): Promise<void> {
  const name = nameOf(options);
  const module = await loadCore(options.wasm);
  await owned(name, async () => {
    try {
      await module.restore(name);
    } catch (thrown) {
      throw fromCore(thrown);
    }
  });
}

/** See `Endpoint.reset`. */
export async function resetStore(options: StoreOptions): Promise<void> {
  const name = nameOf(options);
  await owned(name, async () => {
    await deleteDatabase(name);
    await deleteDatabase(`${name} backup`);
  });
}

/** Carries out what nothing else may happen to the store beside. */
async function owned(name: string, action: () => Promise<void>): Promise<void> {
  if ((await ifFree(lockOf(name), action)) === undefined) throw locked();
}

function deleteDatabase(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve();
    request.onerror = () => reject(new StoreError("persistence", "the database can not be removed", { cause: request.error }));
  });
}

/** Asks the browser to keep what this origin stores. It may decline; workers can not ask. */
export async function requestPersistence(): Promise<boolean> {
  try {
    return await navigator.storage.persist();
  } catch {
    return false;
  }
}
