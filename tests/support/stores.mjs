// IndexedDB databases as a test puts them there and finds them again, row for row.

import fs from "node:fs";

/** The store of a release of layout 1: alice, four certified posts with bob, one post that was still on its way. */
export const storeOfLayout1 = () =>
  JSON.parse(fs.readFileSync(new URL("../fixtures/store_v1.json", import.meta.url), "utf8"));

/** Runs in every page of a context before its own scripts: `window.stores`. */
export function storesInPage() {
  const answered = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const ended = (transaction) =>
    new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
  const bytes = (text) => new TextEncoder().encode(text);
  const text = (value) => new TextDecoder().decode(value);
  window.stores = {
    /** Opens a database; `upgrade` makes it be of the next version. */
    async open(name, version, upgrade) {
      const request = indexedDB.open(name, version);
      request.onupgradeneeded = () => upgrade?.(request.result);
      return answered(request);
    },
    /** Makes a database that holds exactly this. */
    async load(name, { version, stores }) {
      const database = await this.open(name, version, (made) => {
        for (const store of Object.keys(stores)) made.createObjectStore(store);
      });
      const transaction = database.transaction(Object.keys(stores), "readwrite");
      for (const [store, rows] of Object.entries(stores)) {
        for (const [key, value] of rows) transaction.objectStore(store).put(bytes(value), key);
      }
      await ended(transaction);
      database.close();
    },
    /** Everything a database holds; `undefined` when there is none. */
    async dump(name) {
      if (!(await indexedDB.databases()).some((database) => database.name === name)) return undefined;
      const database = await this.open(name);
      const stores = {};
      for (const store of database.objectStoreNames) {
        const of = database.transaction(store).objectStore(store);
        const [keys, values] = await Promise.all([answered(of.getAllKeys()), answered(of.getAll())]);
        stores[store] = keys.map((key, at) => [key, text(values[at])]);
      }
      const { version } = database;
      database.close();
      return { version, stores };
    },
    /** Changes a database's rows in one transaction. */
    async change(name, stores, change) {
      const database = await this.open(name);
      const transaction = database.transaction(stores, "readwrite");
      await change((store) => transaction.objectStore(store), { answered, bytes, text });
      await ended(transaction);
      database.close();
    },
    /** The names of the databases there are, sorted. */
    names: async () => (await indexedDB.databases()).map((database) => database.name).sort(),
  };
}
