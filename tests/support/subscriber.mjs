// A client of Subscribe over either transport: frames in, frames out, and how the stream ended.

import http from "node:http";
import net from "node:net";
import { frame } from "./raw.mjs";
import { decode, encode } from "./wire.mjs";

const PATH = "/xmtp.backend.v1.SubscriptionService/Subscribe";
const TRAILERS = 0x80;
const HEADER_BYTES = 5;

/** The grpc-status of a trailer frame's payload. */
const statusOf = (payload) => Number(/^grpc-status:(\d+)\r\n/m.exec(payload.toString("latin1"))?.[1]);

/** What both transports share: a queue of decoded frames, and the end. */
class Subscriber {
  #waiting = [];
  #takers = [];
  /** The grpc-status once there is one, and what else ended it. */
  ended;

  /** Takes in one frame. */
  take(flags, payload) {
    if (flags & TRAILERS) this.finish({ status: statusOf(payload) });
    else this.#deliver(decode("xmtp.backend.v1.SubscribeResponse", payload).response);
  }

  #deliver(frame) {
    const taker = this.#takers.shift();
    if (taker) taker(frame);
    else this.#waiting.push(frame);
  }

  finish(ended) {
    this.ended = { ...ended, ...this.ended };
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  /** The next frame, Pings apart, which are answered; `undefined` at the end. */
  async next() {
    for (;;) {
      const frame = await this.nextOfAll();
      if (frame?.case !== "ping") return frame;
      this.pong(frame.value.nonce);
    }
  }

  /** The next frame, whatever it is. */
  nextOfAll() {
    if (this.#waiting.length > 0) return Promise.resolve(this.#waiting.shift());
    if (this.ended) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  send(request) {
    this.sendFrame(frame(Buffer.from(encode("xmtp.backend.v1.SubscribeRequest", { request }))));
  }

  update(id, adds = [], removes = []) {
    this.send({ case: "update", value: { id: BigInt(id), adds, removes } });
  }

  ping(nonce) {
    this.send({ case: "ping", value: { nonce: BigInt(nonce) } });
  }

  pong(nonce) {
    this.send({ case: "pong", value: { nonce } });
  }
}

/** Over a POST whose body stays open. */
class DuplexSubscriber extends Subscriber {
  #request;

  static open(url, { headers = {} } = {}) {
    const subscriber = new DuplexSubscriber();
    return new Promise((resolve, reject) => {
      const options = { method: "POST", headers: { "content-type": "application/grpc-web+proto", ...headers } };
      const request = http.request(new URL(PATH, url), options, (response) => {
        subscriber.headers = response.headers;
        subscriber.response = response;
        let rest = Buffer.alloc(0);
        response.on("data", (piece) => {
          rest = Buffer.concat([rest, piece]);
          while (rest.length >= HEADER_BYTES && rest.length >= HEADER_BYTES + rest.readUInt32BE(1)) {
            const end = HEADER_BYTES + rest.readUInt32BE(1);
            subscriber.take(rest[0], rest.subarray(HEADER_BYTES, end));
            rest = rest.subarray(end);
          }
        });
        response.on("close", () => subscriber.finish({ cut: true }));
        resolve(subscriber);
      });
      request.on("error", (error) => {
        subscriber.finish({ cut: true });
        reject(error);
      });
      request.flushHeaders();
      subscriber.#request = request;
    });
  }

  sendFrame(bytes) {
    this.#request.write(bytes);
  }

  /** Ends the client's half. */
  end() {
    this.#request.end();
  }

  /** Cuts the connection. */
  leave() {
    this.#request.destroy();
  }
}

/** Over a WebSocket, as a browser does. */
class SocketSubscriber extends Subscriber {
  #socket;

  static open(url) {
    const subscriber = new SocketSubscriber();
    const socket = new WebSocket(new URL(PATH, url.replace(/^http/, "ws")));
    socket.binaryType = "arraybuffer";
    subscriber.#socket = socket;
    return new Promise((resolve, reject) => {
      socket.addEventListener("open", () => resolve(subscriber));
      socket.addEventListener("error", () => reject(new Error("the socket does not open")));
      socket.addEventListener("message", ({ data }) => {
        const bytes = Buffer.from(data);
        if (bytes.readUInt32BE(1) !== bytes.length - HEADER_BYTES) throw new Error("a message is not one frame");
        subscriber.take(bytes[0], bytes.subarray(HEADER_BYTES));
      });
      socket.addEventListener("close", ({ code }) => {
        subscriber.closeCode = code;
        subscriber.finish({ cut: true });
        subscriber.onClosed?.();
      });
    });
  }

  sendFrame(bytes) {
    this.#socket.send(bytes);
  }

  sendText(text) {
    this.#socket.send(text);
  }

  /** Ends the client's half. */
  end() {
    this.sendFrame(frame(Buffer.alloc(0), TRAILERS));
  }

  leave() {
    this.#socket.close();
  }

  /** Resolves with the close code. */
  closed() {
    if (this.closeCode !== undefined) return Promise.resolve(this.closeCode);
    return new Promise((resolve) => { this.onClosed = () => resolve(this.closeCode); });
  }
}

/** Each transport by its name. */
export const TRANSPORTS = {
  "an open request body": DuplexSubscriber,
  "a WebSocket": SocketSubscriber,
};

/** A WebSocket as a browser that stopped reading has it: frames go out, nothing is read until `read`. */
export class DeafSocket {
  #connection;

  static open(url) {
    const deaf = new DeafSocket();
    const { hostname, port, host } = new URL(url);
    return new Promise((resolve, reject) => {
      const connection = net.connect({ port: Number(port), host: hostname });
      deaf.#connection = connection;
      connection.once("error", reject);
      connection.once("data", (head) => {
        connection.pause();
        if (head.toString("latin1").startsWith("HTTP/1.1 101")) resolve(deaf);
        else reject(new Error(head.toString("latin1")));
      });
      const lines = [
        `GET ${PATH} HTTP/1.1`, `Host: ${host}`, "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13",
      ];
      connection.write(`${lines.join("\r\n")}\r\n\r\n`);
    });
  }

  /** Sends a request as one short binary message, masked with zeros. */
  send(request) {
    const message = frame(Buffer.from(encode("xmtp.backend.v1.SubscribeRequest", { request })));
    if (message.length > 125) throw new Error("too long for this client");
    this.#connection.write(Buffer.concat([Buffer.from([0x82, 0x80 | message.length, 0, 0, 0, 0]), message]));
  }

  /** Reads until a status comes, and resolves with it; with `undefined` when the connection ends without one. */
  read() {
    return new Promise((resolve) => {
      let end = Buffer.alloc(0);
      this.#connection.on("data", (piece) => {
        end = Buffer.concat([end, piece]).subarray(-512);
        const found = /grpc-status:(\d+)\r\n/.exec(end.toString("latin1"));
        if (found) resolve(Number(found[1]));
      });
      this.#connection.on("close", () => resolve(undefined));
      this.#connection.resume();
    });
  }

  leave() {
    this.#connection.destroy();
  }
}
