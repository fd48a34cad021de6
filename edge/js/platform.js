// What the Rust half asks of the runtime where one crossing is cheaper than many: calls, message streams, timers.
// Imported by edge/src; imports nothing.

/** Resolves after `milliseconds`, unless cancelled. */
export class Timer {
  #handle;

  constructor(milliseconds) {
    this.elapsed = new Promise((resolve) => {
      this.#handle = setTimeout(resolve, milliseconds);
    });
  }

  cancel() {
    clearTimeout(this.#handle);
  }
}

/** What `promise` resolves with, or `undefined` once `milliseconds` have passed. */
function within(milliseconds, promise) {
  return new Promise((resolve, reject) => {
    const handle = setTimeout(resolve, milliseconds);
    const settled = (settle) => (value) => {
      clearTimeout(handle);
      settle(value);
    };
    promise.then(settled(resolve), settled(reject));
  });
}

/**
 * Calls a method of another object. Resolves with the answer's bytes, or with `undefined` when the deadline passed;
 * rejects when the platform lost the call.
 *
 * A call of a method costs the runtime about a sixth less than a HTTP request. It takes a fresh stub: one whose object was
 * reset stays broken.
 */
export function callObject(namespace, name, method, body, deadlineMs) {
  return within(deadlineMs, namespace.getByName(name).call(method, body));
}

/**
 * How many bytes may wait on one message stream for a session that does not take them. A stream that exceeds it ends, as if
 * it had broken: the session reads on from its cursors.
 */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;

/** The Worker's end of a message stream to an object. */
export class Upstream {
  #webSocket;
  #waiting = [];
  #waitingBytes = 0;
  #ended = false;
  #wake = () => {};

  constructor(webSocket) {
    this.#webSocket = webSocket;
    webSocket.addEventListener("message", ({ data }) => this.#receive(data));
    webSocket.addEventListener("close", () => this.#end());
    webSocket.addEventListener("error", () => this.#end());
    webSocket.binaryType = "arraybuffer";
    webSocket.accept();
  }

  #receive(data) {
    if (this.#ended || !(data instanceof ArrayBuffer)) return;
    this.#waiting.push(new Uint8Array(data));
    this.#waitingBytes += data.byteLength;
    if (this.#waitingBytes > WAITING_BYTES_MAX) this.close();
    this.#wake();
  }

  #end() {
    this.#ended = true;
    this.#wake();
  }

  /** Calls `wake` whenever there is something to take, until `drop`. */
  listen(wake) {
    this.#wake = wake;
  }

  /** Sends one message, if the other end is still there. */
  send(message) {
    if (this.#ended) return;
    try {
      this.#webSocket.send(message);
    } catch {
      // The other end has gone; the close event says so.
    }
  }

  /** The messages that wait, in order, or `undefined` at the end. */
  take() {
    if (this.#waiting.length === 0 && this.#ended) return undefined;
    this.#waitingBytes = 0;
    return this.#waiting.splice(0);
  }

  /** Closes the stream. What waits can still be taken. */
  close() {
    if (!this.#ended) this.#webSocket.close(1000);
    this.#ended = true;
  }

  /** Closes the stream for good: `wake` is not called again. */
  drop() {
    this.#wake = () => {};
    this.close();
  }
}

/** The URL that a message stream to an object is opened at. No one resolves it. */
const OBJECT_URL = "http://object/";

/** A message stream to an object that is being opened. */
export class Connecting {
  #isWanted = true;
  #upstream;

  constructor(namespace, name, deadlineMs) {
    /** Resolves with the stream, or with `undefined` when the deadline passed. */
    this.opened = within(deadlineMs, this.#open(namespace, name));
  }

  async #open(namespace, name) {
    const stub = namespace.getByName(name);
    const { status, webSocket } = await stub.fetch(OBJECT_URL, { headers: { upgrade: "websocket" } });
    if (!webSocket) throw new Error(`HTTP status ${status}`);
    this.#upstream = new Upstream(webSocket);
    if (!this.#isWanted) this.#upstream.close();
    return this.#upstream;
  }

  /** Nobody takes the stream any more: it is closed, if need be once it is open. Nothing else would close it. */
  giveUp() {
    this.#isWanted = false;
    this.#upstream?.close();
  }
}

/** The message streams of each object that were looked up, by their ids: a look-up costs more than a message. */
const found = new WeakMap();

/** The message stream of an object, if it is still open. */
function socketOf(ctx, socket) {
  let sockets = found.get(ctx);
  if (!sockets) found.set(ctx, (sockets = new Map()));
  let webSocket = sockets.get(socket);
  if (!webSocket) {
    [webSocket] = ctx.getWebSockets(String(socket));
    if (webSocket) sockets.set(socket, webSocket);
  }
  return webSocket;
}

/** Forgets a message stream that has ended. */
export function forgetSocket(ctx, socket) {
  found.get(ctx)?.delete(socket);
}

/** Sends on a message stream of this object, if it is still open. */
export function sendOnSocket(ctx, socket, message) {
  try {
    socketOf(ctx, socket)?.send(message);
  } catch {
    // It ended meanwhile; its `webSocketClose` follows.
  }
}

/** Sends the same on several message streams of this object. */
export function sendOnSockets(ctx, sockets, message) {
  for (const socket of sockets) sendOnSocket(ctx, socket, message);
}

/** Closes a message stream of this object. */
export function closeSocket(ctx, socket, reason) {
  for (const webSocket of ctx.getWebSockets(String(socket))) webSocket.close(1000, reason);
}

/** The ids of the message streams open to this object. */
export function openSockets(ctx) {
  return ctx.getWebSockets().map((webSocket) => Number(ctx.getTags(webSocket)[0]));
}

/** Makes the alarm of this object go off at `atMs`, or at the earlier time that is set already. */
export async function setAlarmNoLaterThan(ctx, atMs) {
  const set = await ctx.storage.getAlarm();
  if (set === null || set > atMs) await ctx.storage.setAlarm(atMs);
}

/**
 * Asks another machine. Resolves with the answer's bytes, with its HTTP status when that is not 200, with `null` when it is
 * longer than `maxBytes`, or with `undefined` when the deadline passed. A redirect is not followed: it is a status.
 */
export async function exchange(url, request, maxBytes, deadlineMs) {
  const controller = new AbortController();
  const ask = async () => {
    const response = await fetch(url, { ...request, redirect: "manual", signal: controller.signal });
    if (response.status !== 200) return response.status;
    const pieces = [];
    let length = 0;
    for await (const piece of response.body ?? []) {
      length += piece.length;
      if (length > maxBytes) return null;
      pieces.push(piece);
    }
    const answer = new Uint8Array(length);
    let offset = 0;
    for (const piece of pieces) {
      answer.set(piece, offset);
      offset += piece.length;
    }
    return answer;
  };
  try {
    return await within(deadlineMs, ask());
  } finally {
    // Whatever is left of the exchange ends with it.
    controller.abort();
  }
}

/** Posts a JSON document, with the outcomes of `exchange`. */
export function postJson(url, body, maxBytes, deadlineMs) {
  const headers = { accept: "application/json", "content-type": "application/json" };
  return exchange(url, { method: "POST", headers, body }, maxBytes, deadlineMs);
}
