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
  const requestId = crypto.randomUUID();
  console.error(`the call ${requestId} was cut short`);
  headers.push("content-type", contentType, "x-request-id", requestId);
  headers.push("access-control-expose-headers", "grpc-status, grpc-message, x-request-id");
  return wholeResponse(200, headers, [lostTrailers(contentType)]);
}

/** Reads pieces of a request's body into `requests`, as fast as it takes them, until one of the two ends. */
async function receive(body, requests) {
  try {
    for await (const piece of body ?? []) {
      if (!requests.push(piece)) await requests.ready();
    }
    requests.end();
  } catch {
    tellLost(requests);
  }
}

/** Tells `requests` that its client is gone, unless the instance it lived in is. */
function tellLost(requests) {
  try {
    requests.lost();
  } catch {
    // The body's own watch ends the response.
  }
}

/** As `streamResponse`, for a stream whose client sends as well: its frames come in the request's body. */
export function duplexResponse(status, flatHeaders, source, requests, request) {
  const response = streamResponse(status, flatHeaders, source);
  receive(request.body, requests);
  return response;
}

/** Bytes that a WebSocket has been given and not sent, above which it is given no more. */
const SOCKET_BUFFER_BYTES_MAX = 1024 * 1024;

/** How often a WebSocket with too much in it is looked at. */
const SOCKET_LOOK_MS = 25;

/** The first of the close codes that stand for a status: its number is added to this. */
const STATUS_CLOSE_CODE = 4000;
const NORMAL_CLOSE_CODE = 1000;
const UNAVAILABLE = 14;

/** The answer to a request for a WebSocket, and the server's end of that. */
function openSocket(flatHeaders) {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  ours.binaryType = "arraybuffer";
  ours.accept();
  return { ours, response: new Response(null, { status: 101, webSocket: theirs, headers: pairs(flatHeaders) }) };
}

/** Sends, and closes if there is a code, unless the other end has gone. */
function sendLast(webSocket, message, code) {
  try {
    webSocket.send(message);
    if (code !== undefined) webSocket.close(code);
  } catch {
    // The close event says so.
  }
}

function closeCodeOf(status) {
  return status === 0 ? NORMAL_CLOSE_CODE : STATUS_CLOSE_CODE + status;
}

/** A WebSocket that is told a status, as a trailer frame, and closed. */
export function refuseSocket(flatHeaders, trailers, status) {
  const { ours, response } = openSocket(flatHeaders);
  sendLast(ours, trailers, closeCodeOf(status));
  return response;
}

/**
 * A WebSocket that carries a stream: what `source.next()` resolves with goes out, a frame a message and the trailers last;
 * what comes in goes to `requests`. A client that does not read is given no more than the socket's buffer, so that the
 * session notices.
 */
export function streamSocket(flatHeaders, source, requests) {
  const { ours, response } = openSocket(flatHeaders);
  const watch = new InstanceWatch();
  let open = true;
  const leave = () => {
    if (!open) return;
    open = false;
    watch.end();
    tellLost(requests);
    try {
      source.cancel();
      ours.close();
    } catch {
      // It is closed already, or its instance is lost.
    }
  };
  ours.addEventListener("message", ({ data }) => {
    if (!open) return;
    try {
      if (data instanceof ArrayBuffer) requests.message(new Uint8Array(data));
      else requests.text();
    } catch {
      // The instance is lost, and its watch ends the stream.
    }
  });
  ours.addEventListener("close", leave);
  ours.addEventListener("error", leave);
  watch.lost.then(() => {
    open = false;
    sendLast(ours, LOST_TRAILERS, closeCodeOf(UNAVAILABLE));
  });
  const deliver = async () => {
    for (;;) {
      const frame = await source.next();
      if (!open) return;
      if (frame === undefined) break;
      ours.send(frame);
      // Of a stream that has failed only the status is left, and it closes the socket: nobody looks at that any more.
      while (open && !source.isSpent() && ours.bufferedAmount > SOCKET_BUFFER_BYTES_MAX) {
        await new Promise((resolve) => setTimeout(resolve, SOCKET_LOOK_MS));
      }
    }
    open = false;
    watch.end();
    ours.close(closeCodeOf(source.status()));
  };
  deliver().catch(leave);
  return response;
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
