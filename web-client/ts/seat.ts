/**
 * What an open endpoint is to this tab, wherever it runs: a taker of requests and a source of events. Everything that
 * crosses is JSON text, so that a request goes to the tab that owns the store as it is.
 */
import { abortable } from "./abort.js";
import type { Core } from "./conclave_web_client.js";
import { ConclaveError, fromCore } from "./errors.js";
import type { ConnectionEvent, EndpointEvent } from "./events.js";
import { BEGIN, LiveState } from "./live_state.js";
import { pause } from "./pause.js";
import { platformVerifier } from "./signatures.js";
import { StorageUse } from "./storage_use.js";
import type { Connection } from "./transport/connection.js";
import type { EndpointOptions, OpeningProgress } from "./types.js";

/** An endpoint that runs somewhere. Every failure it rejects with is typed already. */
export interface Running {
  /** Resolves when the endpoint has ended, with the failure that ended it if there was one. */
  readonly closed: Promise<ConclaveError | undefined>;
  /**
   * Carries out an operation of `src/endpoint/requests.rs`. The answer is JSON, or empty where there is nothing to say.
   * When `signal` aborts, it rejects with the signal's reason.
   */
  request(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string>;
  /** Tells `listener` `BEGIN` and the current state, then every event: each time a JSON array. Returns how to stop. */
  watch(listener: (events: string) => void): () => void;
  /** Leaves; resolves when whatever was held is free. */
  close(): Promise<void>;
}

/** A place at an open endpoint, which may run in another tab. */
export interface Seat extends Running {
  /**
   * The one subscription to deliveries. It is taken when it is first read.
   *
   * @throws {@link ListenError} `already-listening`
   */
  subscribe(): Subscription;
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
  readonly #open = new Set<Promise<string>>();
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

  request(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string> {
    const answer = this.#carryOut(operation, argumentsJson, signal);
    this.#open.add(answer);
    const forget = (): void => void this.#open.delete(answer);
    answer.then(forget, forget);
    return answer;
  }

  /** Resolves when every request has its answer. An endpoint that has ended answers them all. */
  answered(): Promise<unknown> {
    return Promise.allSettled(this.#open);
  }

  async #carryOut(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string> {
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
      const error = fromCore(thrown);
      if (error instanceof ConclaveError) this.#news.storage.failed(error);
      throw error;
    }
  }

  watch(listener: (events: string) => void): () => void {
    listener(JSON.stringify([BEGIN, ...this.#news.live.current()]));
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
  /** The latest of what was told. */
  readonly live = new LiveState();
  readonly storage = new StorageUse((event) => this.#tell(event));
  #settle: (failure: ConclaveError | undefined) => void = () => undefined;

  readonly #onOpening: EndpointOptions["onOpening"];

  constructor(onOpening?: EndpointOptions["onOpening"]) {
    this.#onOpening = onOpening;
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#tell(connection({ state: "connecting" }, undefined));
    void this.storage.ask();
  }

  // The names are the module's `Observer`.
  readonly observer = {
    progress: (json: string): void => {
      const event = JSON.parse(json) as EndpointEvent;
      this.#tell(event.kind === "connection" ? connection(event, this.live.state().connection) : event);
    },
    stored: (transitions: number): void => this.storage.stored(transitions),
    opening: (phase: OpeningProgress["phase"], done: number, total: number): void => {
      this.#onOpening?.(phase === "verifying" ? { phase, done, total } : { phase });
    },
    pause,
    verify: platformVerifier(),
    closed: (failure: unknown): void => {
      const error = failure === undefined ? undefined : (fromCore(failure) as ConclaveError);
      if (error !== undefined) this.storage.failed(error);
      this.#settle(error);
    },
  };

  #tell(event: EndpointEvent): void {
    const told = JSON.stringify(this.live.take(event));
    for (const listener of this.listeners) listener(told);
  }
}

/** A state of the connection as the module tells it. */
interface ToldConnection {
  readonly state: ConnectionEvent["state"];
  readonly detail?: string | null;
  /** Milliseconds until the next attempt. */
  readonly retryInMs?: number;
}

/** The complete picture of a connection that was told, after the one before. */
function connection({ state, detail = null, retryInMs }: ToldConnection, before: ConnectionEvent | undefined): ConnectionEvent {
  const now = Date.now();
  const since = before?.state === state ? before.since : now;
  return { kind: "connection", state, since, detail, nextAttemptAt: retryInMs === undefined ? null : now + retryInMs };
}
