// A WebSocket client that costs little beside what it measures: it counts the messages that arrive and looks at nothing
// else. The same for the floor and for the backend.

import net from "node:net";

const BINARY = 0x2;
const CLOSE = 0x8;
const LONG_LENGTH = 126;
const LONGER_LENGTH = 127;

/** The bytes of one message to the server, masked with zeros. */
function masked(payload) {
  const head = Buffer.alloc(payload.length < LONG_LENGTH ? 6 : payload.length < 1 << 16 ? 8 : 14);
  head[0] = 0x80 | BINARY;
  if (head.length === 6) {
    head[1] = 0x80 | payload.length;
  } else if (head.length === 8) {
    head[1] = 0x80 | LONG_LENGTH;
    head.writeUInt16BE(payload.length, 2);
  } else {
    head[1] = 0x80 | LONGER_LENGTH;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
  }
  return Buffer.concat([head, payload]);
}

export class Listener {
  #connection;
  #rest = Buffer.alloc(0);
  #skip = 0;
  #isCounted = false;
  #fail = () => {};
  /** Messages so far. */
  count = 0;
  /** Called after each message, with how many bytes it has. */
  onMessage = () => {};
  isClosed = false;

  static open(port, path) {
    const listener = new Listener();
    return new Promise((resolve, reject) => {
      const connection = net.connect({ port, host: "127.0.0.1", noDelay: true });
      listener.#connection = connection;
      connection.once("error", reject);
      connection.once("data", (head) => {
        const end = head.indexOf("\r\n\r\n");
        if (end < 0 || !head.toString("latin1").startsWith("HTTP/1.1 101")) {
          reject(new Error(`no WebSocket: ${head.toString("latin1")}`));
          return;
        }
        connection.off("error", reject);
        connection.on("error", () => { listener.isClosed = true; });
        connection.on("close", () => {
          listener.isClosed = true;
          listener.#fail(new Error("the stream ended"));
        });
        connection.on("data", (bytes) => listener.#take(bytes));
        listener.#take(head.subarray(end + 4));
        resolve(listener);
      });
      const lines = [
        `GET ${path} HTTP/1.1`, "Host: bench", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13",
      ];
      connection.write(`${lines.join("\r\n")}\r\n\r\n`);
    });
  }

  #take(bytes) {
    let left = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    for (;;) {
      if (this.#skip > left.length) {
        this.#skip -= left.length;
        this.#rest = Buffer.alloc(0);
        return;
      }
      left = left.subarray(this.#skip);
      this.#skip = 0;
      if (this.#isCounted) {
        this.#isCounted = false;
        this.count += 1;
        this.onMessage();
      }
      const length = this.#head(left);
      if (length === 0) {
        this.#rest = left;
        return;
      }
      left = left.subarray(length);
    }
  }

  /** Reads the head of a frame; its length, or 0 when it is not all there. */
  #head(bytes) {
    if (bytes.length < 2) return 0;
    const short = bytes[1] & 0x7f;
    const length = short < LONG_LENGTH ? 2 : short === LONG_LENGTH ? 4 : 10;
    if (bytes.length < length) return 0;
    this.#skip = short < LONG_LENGTH ? short : short === LONG_LENGTH ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    this.#isCounted = (bytes[0] & 0x0f) === BINARY;
    if ((bytes[0] & 0x0f) === CLOSE) this.isClosed = true;
    return length;
  }

  send(payload) {
    this.#connection.write(masked(payload));
  }

  /** Resolves when so many messages have arrived in all. */
  reach(count) {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (this.count < count) return;
        this.onMessage = () => {};
        resolve();
      };
      this.onMessage = look;
      this.#fail = reject;
      if (this.isClosed) reject(new Error("the stream ended"));
      look();
    });
  }

  /** Stops reading, as a client does that is stuck. */
  pause() {
    this.#connection.pause();
  }

  close() {
    this.#connection.destroy();
  }
}
