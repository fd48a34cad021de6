// The module every Workers runtime loads: the Worker's fetch handler and the classes of its objects.

import wasmModule from "./index_bg.wasm";
import { __wbg_reset_state, handleFetch, initSync } from "./index.js";
import { lostResponse } from "./http.js";
import { InstanceWatch, ensureInstance, replaceInstanceWith } from "./instance.js";
import { objectClass } from "./object.js";

replaceInstanceWith(__wbg_reset_state);
initSync({ module: wasmModule });

export const Sequencer = objectClass("sequencer");
export const Shard = objectClass("shard");
export const Registry = objectClass("registry");

export default {
  async fetch(request, env, ctx) {
    ensureInstance();
    const watch = new InstanceWatch();
    try {
      return await Promise.race([handleFetch(request, env, ctx), watch.lost.then(() => lostResponse(request))]);
    } finally {
      watch.end();
    }
  },
};
