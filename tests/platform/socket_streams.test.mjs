// What the Worker gives to a WebSocket of a client that does not read, against a socket that is played here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { streamSocket } from "../../edge/js/http.js";

/** A WebSocket whose other end reads nothing. */
class UnreadSocket extends EventTarget {
  bufferedAmount = 0;
  sent = [];
  closed = Promise.withResolvers();

  accept() {}

  send(message) {
    this.sent.push(message.length);
    this.bufferedAmount += message.length;
  }

  close(code) {
    this.closed.resolve(code);
  }
}

/** A stream that fails while its client has a long frame unread. */
class FailingSource {
  #lengths = [2 << 20, 10];
  #looks = 0;

  async next() {
    const length = this.#lengths.shift();
    return length && new Uint8Array(length);
  }

  isSpent() {
    this.#looks += 1;
    return this.#looks > 3;
  }

  status() {
    return 8;
  }

  cancel() {}
}

// API-281
test("a socket that nobody reads is told how its stream failed, and closed", async () => {
  const ours = new UnreadSocket();
  const runtime = { Response: globalThis.Response, WebSocketPair: globalThis.WebSocketPair };
  globalThis.WebSocketPair = class {
    0 = {};
    1 = ours;
  };
  globalThis.Response = class {};
  try {
    streamSocket([], new FailingSource(), {});
    assert.equal(await ours.closed.promise, 4008);
    assert.deepEqual(ours.sent, [2 << 20, 10], "one frame, and the status");
  } finally {
    Object.assign(globalThis, runtime);
  }
});
