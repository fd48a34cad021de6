// Requests and responses, between the runtime and the Rust half.

import { InstanceWatch } from "./instance.js";

/**
 * Reads a request's body to its end, whatever its length, and resolves with at most its first `keepBytes` bytes: a client
 * that still uploads when it is refused sees a failed network call instead of the refusal.
 */
export async function readBody(request, keepBytes) {
  if (!request.body) return new Uint8Array(0);
  const length = Number(request.headers.get("content-length") ?? Infinity);
  if (length <= keepBytes) return new Uint8Array(await request.arrayBuffer());
  const pieces = [];
  let kept = 0;
  for await (const piece of request.body) {
    if (kept >= keepBytes) continue;
    const part = piece.subarray(0, keepBytes - kept);
    kept += part.length;
    pieces.push(part);
  }
  const body = new Uint8Array(kept);
  let offset = 0;
  for (const piece of pieces) {
    body.set(piece, offset);
    offset += piece.length;
  }
  return body;
}

/** Names and values in turn, as pairs. */
function pairs(flat) {
  const headers = [];
  for (let index = 0; index < flat.length; index += 2) headers.push([flat[index], flat[index + 1]]);
  return headers;
}

/** A response whose body, if it has one, is sent part by part and without a `content-length`. */
export function wholeResponse(status, headers, body) {
  if (body === undefined) return new Response(null, { status, headers: pairs(headers) });
  const stream = new ReadableStream({
    start(controller) {
      for (const part of body) controller.enqueue(part);
      controller.close();
    },
  });
  return new Response(stream, { status, headers: pairs(headers) });
}

const TEXT_TYPE = "application/grpc-web-text";

/** Trailers alone: UNAVAILABLE. The outcome is unknown, and the caller may ask again. */
const LOST_TRAILERS = (() => {
  const trailers = new TextEncoder().encode("grpc-status:14\r\ngrpc-message:the call was cut short by a failure\r\n");
  const frame = new Uint8Array(5 + trailers.length);
  frame[0] = 0x80;
  new DataView(frame.buffer).setUint32(1, trailers.length);
  frame.set(trailers, 5);
  return frame;
})();

/** The end of an answer whose instance was lost, in the encoding of its content type. */
function lostTrailers(contentType) {
  if (!contentType.startsWith(TEXT_TYPE)) return LOST_TRAILERS;
  return new TextEncoder().encode(btoa(String.fromCharCode(...LOST_TRAILERS)));
}

/** The answer to a request whose instance was lost. No WebAssembly is involved. */
export function lostResponse(request) {
  const asked = (request.headers.get("content-type") ?? "").toLowerCase();
  const headers = ["access-control-allow-origin", "*"];
  if (!asked.startsWith("application/grpc-web")) return wholeResponse(503, headers);
  const contentType = asked.startsWith(TEXT_TYPE) ? `${TEXT_TYPE}+proto` : "application/grpc-web+proto";
  headers.push("content-type", contentType, "x-request-id", crypto.randomUUID());
  headers.push("access-control-expose-headers", "grpc-status, grpc-message, x-request-id");
  return wholeResponse(200, headers, [lostTrailers(contentType)]);
}

/**
 * A response whose body is what `source.next()` resolves with, chunk by chunk, until `undefined`. `source.cancel()` is
 * called when the client has gone.
 */
export function streamResponse(status, flatHeaders, source) {
  const headers = new Headers(pairs(flatHeaders));
  const watch = new InstanceWatch();
  const body = new ReadableStream(
    {
      start(controller) {
        watch.lost.then(() => {
          controller.enqueue(lostTrailers(headers.get("content-type")));
          controller.close();
        });
      },
      async pull(controller) {
        const chunk = await source.next();
        if (chunk) return controller.enqueue(chunk);
        watch.end();
        controller.close();
      },
      cancel() {
        watch.end();
        source.cancel();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status, headers });
}
