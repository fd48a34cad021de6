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
  const headers = new Headers();
  for (let index = 0; index < flat.length; index += 2) headers.append(flat[index], flat[index + 1]);
  return headers;
}

/** A response whose body, if it has one, is sent as one chunk and without a `content-length`. */
export function wholeResponse(status, headers, body) {
  if (body === undefined) return new Response(null, { status, headers: pairs(headers) });
  const stream = new ReadableStream({
    pull(controller) {
      controller.enqueue(body);
      controller.close();
    },
  });
  return new Response(stream, { status, headers: pairs(headers) });
}

/**
 * A response whose body is what `source.next()` resolves with, chunk by chunk, until `undefined`. `source.cancel()` is
 * called when the client has gone.
 */
export function streamResponse(status, headers, source) {
  const watch = new InstanceWatch();
  const body = new ReadableStream(
    {
      start(controller) {
        watch.lost.then((error) => controller.error(error));
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
  return new Response(body, { status, headers: pairs(headers) });
}
