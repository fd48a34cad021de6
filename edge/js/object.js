// The Durable Objects, as the runtime sees them. Each holds a host in WebAssembly, which does the work.

import { DurableObject } from "cloudflare:workers";
import { ObjectHost } from "./index.js";
import { InstanceWatch, ensureInstance, instanceGeneration, isLosingTurn } from "./instance.js";
import { forgetSocket } from "./platform.js";

/** A host, and what is going on in it. */
class Life {
  calls = 0;
  generation = instanceGeneration();
  watch = new InstanceWatch();
  host;
}

/** Where an object keeps its own name, which the runtime tells only to those that are called by it. */
const NAME_KEY = "conclave.name";

/** How many attempts at an alarm the runtime makes before it drops the alarm, less a margin. */
const ALARM_ATTEMPTS = 4;

/** How long an alarm that keeps failing is put off. */
const ALARM_PUT_OFF_MS = 60_000;

/** A random number below 2^53, which both JavaScript and Rust hold exactly. */
function randomId() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x1fffff) * 2 ** 32 + low;
}

/** The class of the objects that play `role`. */
export function objectClass(role) {
  return class extends DurableObject {
    #name = this.#ownName();
    #life = this.#begin();

    #ownName() {
      const { kv } = this.ctx.storage;
      const stored = kv.get(NAME_KEY);
      const name = this.ctx.id.name ?? stored ?? role;
      if (name !== stored) kv.put(NAME_KEY, name);
      return name;
    }

    #begin() {
      ensureInstance();
      const life = new Life();
      life.watch.lost.then((error) => {
        // Work was cut short: its callers must fail now, and the writes of this turn must not stay. A host that was idle in
        // another turn is simply made anew when it is needed.
        if (life.calls > 0 || isLosingTurn()) this.#restart(error);
      });
      life.host = new ObjectHost(this.#name, this.ctx, this.env);
      return life;
    }

    #restart(reason) {
      this.ctx.abort(`${this.#name} restarts: ${reason}`);
    }

    /** Runs `use` on the host, and counts it as work in progress until it settles. */
    async #run(use) {
      ensureInstance();
      if (this.#life.generation !== instanceGeneration()) {
        if (this.#life.calls > 0) this.#restart("its WebAssembly instance was lost");
        this.#life = this.#begin();
      }
      const life = this.#life;
      life.calls += 1;
      try {
        return await use(life.host);
      } finally {
        life.calls -= 1;
      }
    }

    /** Runs a method; the answer is bytes too. */
    call(method, body) {
      return this.#run((host) => host.call(method, body));
    }

    /** Only message streams are opened by a request. */
    async fetch(request) {
      if (request.headers.get("upgrade") === "websocket") return this.#accept();
      return new Response(null, { status: 404 });
    }

    /** Takes a message stream. Its id is a tag of the socket, which outlives the host and the object's sleep. */
    async #accept() {
      const { 0: theirs, 1: ours } = new WebSocketPair();
      const socket = randomId();
      ours.binaryType = "arraybuffer";
      this.ctx.acceptWebSocket(ours, [String(socket)]);
      await this.#run((host) => host.accepted(socket));
      return new Response(null, { status: 101, webSocket: theirs });
    }

    #socketId(webSocket) {
      return Number(this.ctx.getTags(webSocket)[0]);
    }

    async webSocketMessage(webSocket, message) {
      if (typeof message === "string") return;
      const bytes = new Uint8Array(message instanceof Blob ? await message.arrayBuffer() : message);
      await this.#run((host) => host.message(this.#socketId(webSocket), bytes));
    }

    async webSocketClose(webSocket) {
      const socket = this.#socketId(webSocket);
      forgetSocket(this.ctx, socket);
      await this.#run((host) => host.closed(socket));
    }

    webSocketError(webSocket) {
      return this.webSocketClose(webSocket);
    }

    async alarm(attempt) {
      if (attempt?.retryCount >= ALARM_ATTEMPTS) {
        await this.ctx.storage.setAlarm(Date.now() + ALARM_PUT_OFF_MS);
        await this.ctx.storage.sync();
      }
      await this.#run((host) => host.alarm());
    }
  };
}
