// The floor that the backend is measured against: about the least a Durable Object can do that stores what it is sent.
// One row, one unique index, SHA-256, an answer, and a message to every open WebSocket where that is asked for. Plain
// JavaScript, no framing, no decoding, no ordering over objects.

import { DurableObject } from "cloudflare:workers";

/** Bytes of the length before each piece of a batch, big-endian. */
const LENGTH_BYTES = 4;

/** The pieces of a body that holds several, each behind its length. */
function piecesOf(body) {
  const view = new DataView(body);
  const pieces = [];
  for (let at = 0; at < body.byteLength; ) {
    const length = view.getUint32(at);
    pieces.push(body.slice(at + LENGTH_BYTES, at + LENGTH_BYTES + length));
    at += LENGTH_BYTES + length;
  }
  return pieces;
}

const digest = (bytes) => crypto.subtle.digest("SHA-256", bytes);

export class Floor extends DurableObject {
  #sql = this.ctx.storage.sql;
  #page;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sql.exec("CREATE TABLE IF NOT EXISTS row (seq INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, body BLOB NOT NULL)");
  }

  #insert(hash, body) {
    return this.#sql.exec("INSERT INTO row (hash, body) VALUES (?, ?) RETURNING seq", hash, body).one().seq;
  }

  async #store(request) {
    const body = await request.arrayBuffer();
    return String(this.#insert(await digest(body), body));
  }

  /** Stores a row and sends its body to every open WebSocket. The output gate holds both until the row is durable. */
  async #broadcast(request) {
    const body = await request.arrayBuffer();
    const seq = this.#insert(await digest(body), body);
    for (const webSocket of this.ctx.getWebSockets()) webSocket.send(body);
    return String(seq);
  }

  #listen() {
    const { 0: theirs, 1: ours } = new WebSocketPair();
    this.ctx.acceptWebSocket(ours);
    return new Response(null, { status: 101, webSocket: theirs });
  }

  async #storeBatch(request) {
    const pieces = piecesOf(await request.arrayBuffer());
    const hashes = await Promise.all(pieces.map(digest));
    const ids = this.ctx.storage.transactionSync(() => pieces.map((piece, at) => this.#insert(hashes[at], piece)));
    return ids.join();
  }

  /** The bodies of the first rows, read and joined. */
  #readRows(count) {
    const rows = [...this.#sql.exec("SELECT body FROM row ORDER BY seq LIMIT ?", count).raw()];
    const page = new Uint8Array(rows.reduce((sum, [body]) => sum + body.byteLength, 0));
    let at = 0;
    for (const [body] of rows) {
      page.set(new Uint8Array(body), at);
      at += body.byteLength;
    }
    return page;
  }

  async fetch(request) {
    const [, , method, count] = new URL(request.url).pathname.split("/");
    switch (method) {
      case "store": return new Response(await this.#store(request));
      case "broadcast": return new Response(await this.#broadcast(request));
      case "listen": return this.#listen();
      case "store-batch": return new Response(await this.#storeBatch(request));
      case "rows": return new Response(this.#readRows(Number(count)));
      case "memory": return new Response((this.#page ??= this.#readRows(Number(count))));
      default: return new Response(null, { status: 404 });
    }
  }
}

/** SHA-256 of a body, so many times. */
async function hashRepeatedly(request, times) {
  const body = await request.arrayBuffer();
  for (let time = 0; time < times; time += 1) await digest(body);
  return new Response("done");
}

/** A WebSocket whose messages a Worker takes from the object and passes on, instead of handing the object's own on. */
async function relay(env, name) {
  const { webSocket: upstream } = await env.FLOOR.getByName(name).fetch("http://floor/x/listen", {
    headers: { upgrade: "websocket" },
  });
  const { 0: theirs, 1: ours } = new WebSocketPair();
  for (const webSocket of [upstream, ours]) {
    webSocket.binaryType = "arraybuffer";
    webSocket.accept();
  }
  upstream.addEventListener("message", ({ data }) => ours.send(data));
  ours.addEventListener("close", () => upstream.close());
  return new Response(null, { status: 101, webSocket: theirs });
}

export default {
  async fetch(request, env) {
    const [, name, method, count] = new URL(request.url).pathname.split("/");
    if (name === "hash") return hashRepeatedly(request, Number(count));
    if (method === "relay") return relay(env, name);
    if (method !== "pair") return env.FLOOR.getByName(name).fetch(request);
    // Two calls of two objects, the second after the first was answered.
    const body = await request.arrayBuffer();
    for (const half of ["a", "b"]) {
      await (await env.FLOOR.getByName(name + half).fetch("http://floor/x/store", { method: "POST", body })).text();
    }
    return new Response("done");
  },
};
