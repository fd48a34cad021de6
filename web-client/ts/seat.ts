/**
 * What an open endpoint is to this tab, wherever it runs: a taker of requests and a source of events. Everything that
 * crosses is JSON text, so that a request goes to the tab that owns the store as it is.
 */
import { abortable } from "./abort.js";
import type { Core } from "./conclave_web_client.js";
import { type ConclaveError, fromCore } from "./errors.js";
import type { Connection } from "./transport/connection.js";

/** An endpoint that runs somewhere. Every failure it rejects with is typed already. */
export interface Running {
  /** Resolves when the endpoint has ended, with the failure that ended it if there was one. */
  readonly closed: Promise<ConclaveError | undefined>;
  /**
   * Carries out an operation of `src/endpoint/requests.rs`. The answer is JSON, or empty where there is nothing to say.
   * When `signal` aborts, it rejects with the signal's reason.
   */
  request(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string>;
  /** Tells `listener` the current state at once, then every event: each time a JSON array. Returns how to stop. */
  watch(listener: (events: string) => void): () => void;
  /** Leaves; resolves when whatever was held is free. */
  close(): Promise<void>;
}

/** A place at an open endpoint, which may run in another tab. */
export interface Seat extends Running {
  /** Takes the one subscription to deliveries. */
  subscribe(): Promise<Subscription>;
}

/** The subscription to deliveries. */
export interface Subscription {
  /** The next delivery `{ token, message }` as JSON; `undefined` after `cancel` or when the endpoint was closed. */
  next(): Promise<string | undefined>;
  /** Gives it back; whoever asks for it after this call gets it. */
  cancel(): Promise<void>;
}

/** An endpoint that runs in this very context. */
export class LocalSeat implements Running {
  readonly closed: Promise<ConclaveError | undefined>;
  readonly #core: Core;
  readonly #news: News;
  readonly #connection: Connection;

  constructor(core: Core, news: News, connection: Connection) {
    this.closed = news.closed;
    this.#core = core;
    this.#news = news;
    this.#connection = connection;
  }

  async request(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string> {
    // The connection's own operations, which the module knows nothing of.
    const { counters } = this.#connection;
    if (operation === "statistics") return JSON.stringify(counters.get());
    if (operation === "clearStatistics") {
      counters.clear();
      return "";
    }
    try {
      return await abortable(this.#core.request(operation, argumentsJson, signal), signal);
    } catch (thrown) {
      throw fromCore(thrown);
    }
  }

  watch(listener: (events: string) => void): () => void {
    listener(`[${this.#news.connection}]`);
    listener(this.#core.open_posts());
    this.#news.listeners.add(listener);
    return () => this.#news.listeners.delete(listener);
  }

  close(): Promise<void> {
    return this.#core.close();
  }
}

/** What the wasm module tells without being asked, handed on to whoever listens. */
export class News {
  readonly listeners = new Set<(events: string) => void>();
  readonly closed: Promise<ConclaveError | undefined>;
  /** The latest event of the connection. */
  connection = '{"kind":"connection","state":"connecting"}';
  #settle: (failure: ConclaveError | undefined) => void = () => undefined;

  constructor() {
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  // The names are the module's `Observer`.
  readonly observer = {
    progress: (event: string): void => {
      if (event.includes('"kind":"connection"')) this.connection = event;
      for (const listener of this.listeners) listener(`[${event}]`);
    },
    closed: (failure: unknown): void => {
      this.#settle(failure === undefined ? undefined : (fromCore(failure) as ConclaveError));
    },
  };
}
