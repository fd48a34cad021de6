// A HTTP/1.1 client that costs little beside what it measures: requests are bytes made beforehand, one at a time on a
// connection that stays open, and of an answer only its end and its status are looked at.

import net from "node:net";

const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);

/** The bytes of a POST. */
export function post(path, headers, body) {
  const lines = Object.entries({ host: "bench", "content-length": body.length, ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), body]);
}

/** Reads one answer as it arrives. */
class Answer {
  #rest = NOTHING;
  #read = (bytes) => this.#head(bytes);
  #skip = 0;
  #isChunked = false;
  isWhole = false;
  status;
  /** The body, its chunks joined. */
  body = [];

  push(bytes) {
    let left = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    this.#rest = NOTHING;
    while (!this.isWhole && left.length > 0) {
      const used = this.#read(left);
      if (used === 0) {
        this.#rest = left;
        return;
      }
      left = left.subarray(used);
    }
  }

  #head(bytes) {
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) return 0;
    const head = bytes.toString("latin1", 0, end).toLowerCase();
    this.status = Number(head.slice(9, 12));
    this.#isChunked = head.includes("\r\ntransfer-encoding: chunked");
    if (this.#isChunked) {
      this.#read = (left) => this.#chunkHead(left);
    } else {
      this.#skip = Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
      this.isWhole = this.#skip === 0;
      this.#read = (left) => this.#content(left);
    }
    return end + HEAD_END.length;
  }

  #chunkHead(bytes) {
    const end = bytes.indexOf(LINE_END);
    if (end < 0) return 0;
    this.#skip = Number.parseInt(bytes.toString("latin1", 0, end), 16);
    const isLast = this.#skip === 0;
    this.#read = isLast ? (left) => this.#lineEnd(left, true) : (left) => this.#content(left);
    return end + LINE_END.length;
  }

  #content(bytes) {
    const taken = bytes.subarray(0, this.#skip);
    this.body.push(taken);
    this.#skip -= taken.length;
    if (this.#skip === 0) {
      this.isWhole = !this.#isChunked;
      this.#read = (left) => this.#lineEnd(left, false);
    }
    return taken.length;
  }

  #lineEnd(bytes, isLast) {
    if (bytes.length < LINE_END.length) return 0;
    this.isWhole = isLast;
    this.#read = (left) => this.#chunkHead(left);
    return LINE_END.length;
  }
}

/** One connection. */
export class Connection {
  #socket;
  #answer;
  #settle;

  static open(port) {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }

  constructor(socket) {
    this.#socket = socket;
    socket.on("data", (bytes) => this.#take(bytes));
    socket.on("error", (error) => this.#settle?.reject(error));
    socket.on("close", () => this.#settle?.reject(new Error("the connection was closed")));
  }

  #take(bytes) {
    this.#answer.push(bytes);
    if (!this.#answer.isWhole) return;
    const { resolve } = this.#settle;
    this.#settle = undefined;
    resolve(this.#answer);
  }

  /** Sends a request and resolves with the answer: `status`, and `body` as a list of buffers. */
  send(request) {
    return new Promise((resolve, reject) => {
      this.#answer = new Answer();
      this.#settle = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close() {
    this.#settle = undefined;
    this.#socket.destroy();
  }
}
