/**
 * A connection as the wasm module holds it: what comes of a call is a plain object and never an exception, and messages are
 * taken from memory that moves, so they are copied before a call returns. `src/transport/call.rs` has the other side.
 */
import type { Answer, Connection } from "./connection.js";
import type { Arrival } from "./frames.js";
import { CallFailure, CODES, drawn, type End } from "./status.js";
import type { Stream } from "./stream.js";

/** A message, or what a call came to. */
export interface Outcome {
  /** The number of the code; 0 and a message, or no message at the end of a stream. */
  readonly code: number;
  readonly text: string;
  readonly isStated: boolean;
  readonly message: Uint8Array | undefined;
  readonly routerInstance: string | undefined;
}

/** A call under way. */
export interface Exchange {
  /** The next outcome. The only one of a unary call. */
  next(): Promise<Outcome>;
  send(message: Uint8Array): void;
  /** See `Stream.expect`. */
  expect(silenceMs: number, probe: Uint8Array): void;
  close(): void;
}

/** What the module is given. */
export class CoreTransport {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  unary(path: string, message: Uint8Array, expectedRouterInstance: string | undefined): Exchange {
    const abort = new AbortController();
    const options = { expectedRouterInstance, signal: abort.signal };
    const outcome = this.#connection.unary(path, message, options).then(answered, failed);
    return { next: () => outcome, send: () => undefined, expect: () => undefined, close: () => abort.abort() };
  }

  open(path: string, message: Uint8Array): Exchange {
    return exchange(this.#connection.open(path, message));
  }

  open_duplex(path: string): Exchange {
    return exchange(this.#connection.openDuplex(path));
  }

  can_duplex(): boolean {
    return this.#connection.canDuplex;
  }

  pause(delayMs: number): Promise<void> {
    return this.#connection.pause(delayMs);
  }

  reconnect_now(): void {
    this.#connection.reconnectNow();
  }
}

function exchange(stream: Stream): Exchange {
  return {
    next: async () => arrived(await stream.next()),
    send: (message) => stream.send(message.slice()),
    // A probe that is empty is none.
    expect: (silenceMs, probe) => stream.expect(silenceMs, probe.length === 0 ? undefined : probe.slice()),
    close: () => stream.close(),
  };
}

function arrived(arrival: Arrival): Outcome {
  if ("end" in arrival) return ended(arrival.end, undefined);
  return { code: 0, text: "", isStated: true, message: arrival.message, routerInstance: undefined };
}

function answered({ message, routerInstance }: Answer): Outcome {
  return { code: 0, text: "", isStated: true, message, routerInstance };
}

function failed(thrown: unknown): Outcome {
  if (thrown instanceof CallFailure) return ended(thrown.end, thrown.routerInstance);
  return ended(drawn("cancelled", String(thrown)), undefined);
}

function ended(end: End, routerInstance: string | undefined): Outcome {
  const { code, message: text, isStated } = end;
  return { code: CODES.indexOf(code), text, isStated, message: undefined, routerInstance };
}
