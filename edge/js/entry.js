// The module every Workers runtime loads: the Worker's fetch handler and the classes of its objects.

import wasmModule from "./index_bg.wasm";
import { __wbg_reset_state, handleFetch, initSync } from "./index.js";
import { wholeResponse } from "./http.js";
import { InstanceWatch, ensureInstance, replaceInstanceWith } from "./instance.js";
import { objectClass } from "./object.js";

replaceInstanceWith(__wbg_reset_state);
initSync({ module: wasmModule });

export const Sequencer = objectClass("sequencer");
export const Shard = objectClass("shard");
export const Registry = objectClass("registry");

/** Trailers alone: UNAVAILABLE. The outcome is unknown, and the caller may ask again. */
const LOST_FRAME = (() => {
  const trailers = new TextEncoder().encode("grpc-status:14\r\ngrpc-message:the call was cut short by a failure\r\n");
  const frame = new Uint8Array(5 + trailers.length);
  frame[0] = 0x80;
  new DataView(frame.buffer).setUint32(1, trailers.length);
  frame.set(trailers, 5);
  return frame;
})();

/** What a caller is told when the instance that served it was lost. */
function lostResponse(request) {
  const type = request.headers.get("content-type") ?? "";
  if (!type.toLowerCase().startsWith("application/grpc-web")) {
    return wholeResponse(503, ["access-control-allow-origin", "*"]);
  }
  const isText = type.toLowerCase().startsWith("application/grpc-web-text");
  const body = isText ? new TextEncoder().encode(btoa(String.fromCharCode(...LOST_FRAME))) : LOST_FRAME;
  const headers = [
    "content-type", isText ? "application/grpc-web-text+proto" : "application/grpc-web+proto",
    "access-control-allow-origin", "*",
    "access-control-expose-headers", "grpc-status, grpc-message, x-request-id",
    "x-request-id", crypto.randomUUID(),
  ];
  return wholeResponse(200, headers, body);
}

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
