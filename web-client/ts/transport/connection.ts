/**
 * One connection to a deployment: calls in bytes, streams, one credential, one set of counts, for everyone who shares it. It
 * knows paths and frames and no message. It runs in windows, workers and Node.
 */
import { abortable } from "../abort.js";
import { type Credential, CredentialSource } from "./credential.js";
import { type Arrival, frame } from "./frames.js";
import { request, type RequestOptions } from "./response.js";
import { carryBySocket } from "./socket.js";
import { Counters } from "./statistics.js";
import { CallFailure, drawn } from "./status.js";
import { type Carrier, Stream } from "./stream.js";

/** How long a unary call may take where its caller does not say, in milliseconds. */
const UNARY_TIMEOUT_MS = 15_000;
/** How long a stream over a body may take to begin, in milliseconds. */
const STREAM_START_MS = 15_000;
/** How long WebSockets are not tried again where one did not get through and a body did, in milliseconds. */
const SOCKETS_BLOCKED_MS = 10 * 60_000;

/** What has a connection that can be shared has it under this symbol. */
export const CONNECTION: unique symbol = Symbol("connection");

/** How to make a unary call. */
export interface CallOptions {
  /** How long it may take, in milliseconds. */
  readonly timeoutMs?: number;
  /** The only Router instance that may carry the call out. */
  readonly expectedRouterInstance?: string | undefined;
  /** Sends no credential (CONF-029). */
  readonly isPublic?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The answer to a unary call. */
export interface Answer {
  readonly message: Uint8Array;
  /** The Router instance that answered, where the response names it. */
  readonly routerInstance: string | undefined;
}

/** A connection. It is made of calls; nothing is open while there are none. */
export class Connection {
  /** The deployment's base address, without a trailing slash. */
  readonly url: string;
  /** How often each RPC was called. */
  readonly counters = new Counters();
  readonly #credential: CredentialSource;
  readonly #streams = new Set<Stream>();
  /** Those of the streams that could be WebSockets. */
  readonly #bodies = new Set<Stream>();
  #isTrying = false;
  readonly #pauses = new Set<() => void>();
  /** A WebSocket did not get through at this path, which says something only if a body does. */
  #suspect: string | undefined;
  #socketsBlockedUntil = 0;

  /** @throws TypeError, in words, for a credential that is none. */
  constructor(url: string, credential?: Credential) {
    this.url = url;
    this.#credential = new CredentialSource(credential);
  }

  /**
   * Calls a unary RPC. A call that is refused as `unauthenticated` is made once more with another credential, where there may
   * be one.
   *
   * @throws {@link CallFailure}, or the signal's reason.
   */
  async unary(path: string, message: Uint8Array, options: CallOptions = {}): Promise<Answer> {
    // Framed before anything is waited for: the bytes may lie in memory that moves.
    const body = frame(message);
    options.signal?.throwIfAborted();
    const credential = options.isPublic === true ? new CredentialSource(undefined) : this.#credential;
    const token = await abortable(credential.token(), options.signal);
    try {
      return await this.#attempt(path, body, token, options);
    } catch (thrown) {
      const isRefused = thrown instanceof CallFailure && thrown.end.isStated && thrown.end.code === "unauthenticated";
      if (!isRefused || !credential.isRenewable) throw thrown;
      const another = await abortable(credential.token(token), options.signal);
      return await this.#attempt(path, body, another, options);
    }
  }

  /** Opens a stream whose request is one message. */
  open(path: string, message: Uint8Array): Stream {
    const body = frame(message);
    const stream = this.#opened(path, (token, sink) => this.#carryByBody(path, body, token, sink));
    this.#bodies.add(stream);
    return stream;
  }

  /** Opens a stream in both directions, over a WebSocket. */
  openDuplex(path: string): Stream {
    return this.#opened(path, (token, sink) =>
      carryBySocket(this.url + path, token, sink, (gotThrough) => {
        this.#suspect = gotThrough ? undefined : path;
      }),
    );
  }

  /** Whether a stream in both directions is worth trying: there are WebSockets here, and they get through. */
  get canDuplex(): boolean {
    return this.#suspect === undefined && !this.isDuplexBlocked;
  }

  /** Whether WebSockets are known not to get through. One that did not proves nothing: it may be that nothing does. */
  get isDuplexBlocked(): boolean {
    return typeof WebSocket !== "function" || Date.now() < this.#socketsBlockedUntil;
  }

  /** Waits before another attempt: so long, or until {@link reconnectNow}. An aborted signal ends the wait too. */
  pause(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const stop = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        this.#pauses.delete(stop);
        this.#watchNetwork();
        resolve();
      };
      const timer = setTimeout(stop, delayMs);
      this.#pauses.add(stop);
      this.#watchNetwork();
      if (signal?.aborted === true) stop();
      else signal?.addEventListener("abort", stop);
    });
  }

  /**
   * To be called when there is reason to believe that the network has changed or that the machine has slept: whoever waits to
   * try again does so at once, and every open stream is asked for a sign of life. It is called when the browser goes online.
   */
  readonly reconnectNow = (): void => {
    for (const stop of [...this.#pauses]) stop();
    for (const stream of [...this.#streams]) stream.check();
  };

  async #attempt(
    path: string,
    body: Uint8Array<ArrayBuffer>,
    token: string | undefined,
    { timeoutMs = UNARY_TIMEOUT_MS, expectedRouterInstance, signal }: CallOptions,
  ): Promise<Answer> {
    this.counters.count(path);
    const abort = new AbortController();
    const stop = () => abort.abort(signal?.reason);
    let isLate = false;
    const deadline = setTimeout(() => {
      isLate = true;
      abort.abort();
    }, timeoutMs);
    signal?.addEventListener("abort", stop);
    try {
      signal?.throwIfAborted();
      return await unaryOf(this.url + path, body, { token, timeoutMs, expectedRouterInstance, signal: abort.signal });
    } catch (thrown) {
      signal?.throwIfAborted();
      if (isLate) throw new CallFailure(drawn("deadline-exceeded", `no answer within ${timeoutMs} ms`));
      throw thrown;
    } finally {
      clearTimeout(deadline);
      signal?.removeEventListener("abort", stop);
    }
  }

  #opened(path: string, carry: ConstructorParameters<typeof Stream>[1]): Stream {
    const counted: typeof carry = (token, sink) => {
      this.counters.count(path);
      return carry(token, sink);
    };
    const stream: Stream = new Stream(this.#credential, counted, () => {
      this.#streams.delete(stream);
      this.#bodies.delete(stream);
      this.#watchNetwork();
    });
    this.#streams.add(stream);
    this.#watchNetwork();
    return stream;
  }

  #carryByBody(
    path: string,
    body: Uint8Array<ArrayBuffer>,
    token: string | undefined,
    sink: (arrival: Arrival) => void,
  ): Carrier {
    const abort = new AbortController();
    const late = setTimeout(() => abort.abort(new Error(`no answer within ${STREAM_START_MS} ms`)), STREAM_START_MS);
    const response = request(this.url + path, body, { token, signal: abort.signal });
    response.then(
      () => clearTimeout(late),
      () => clearTimeout(late),
    );
    let isPulling = false;
    const pull = async () => {
      if (isPulling) return;
      isPulling = true;
      const arrival = await response
        .then(async ({ arrivals }) => (await arrivals.next()).value)
        .catch((thrown: unknown) =>
          thrown instanceof CallFailure ? { end: thrown.end } : { end: drawn("internal", String(thrown), thrown) },
        );
      isPulling = false;
      if (arrival === undefined || !("message" in arrival)) this.#suspect = undefined;
      else if (this.#suspect !== undefined) this.#try(this.#suspect, token);
      sink(arrival ?? { end: drawn("unavailable", "the stream has ended") });
    };
    return {
      pull: () => void pull(),
      send: () => undefined,
      close() {
        clearTimeout(late);
        abort.abort();
      },
    };
  }

  /**
   * A body gets through now, and a moment ago a WebSocket did not. Whether that was because nothing did is seen by trying another:
   * if it gets through, what is read by bodies is opened again, and otherwise WebSockets are left alone for a while.
   */
  #try(path: string, token: string | undefined): void {
    if (this.#isTrying) return;
    this.#isTrying = true;
    this.counters.count(path);
    const trial = carryBySocket(
      this.url + path,
      token,
      () => undefined,
      (gotThrough) => {
        this.#isTrying = false;
        this.#suspect = undefined;
        if (!gotThrough) {
          this.#socketsBlockedUntil = Date.now() + SOCKETS_BLOCKED_MS;
          return;
        }
        trial.close();
        for (const stream of [...this.#bodies]) stream.reopen();
      },
    );
  }

  /** Listens to the browser only while somebody waits for the network. */
  #watchNetwork(): void {
    if (typeof globalThis.addEventListener !== "function") return;
    if (this.#streams.size + this.#pauses.size > 0) globalThis.addEventListener("online", this.reconnectNow);
    else globalThis.removeEventListener("online", this.reconnectNow);
  }
}

/** The one message of a unary response. */
async function unaryOf(url: string, body: Uint8Array<ArrayBuffer>, options: RequestOptions): Promise<Answer> {
  const { routerInstance, arrivals } = await request(url, body, options);
  let messages = 0;
  let message = new Uint8Array();
  for await (const arrival of arrivals) {
    if ("message" in arrival) {
      messages += 1;
      message = arrival.message as Uint8Array<ArrayBuffer>;
      continue;
    }
    if (arrival.end.code !== "ok") throw new CallFailure(arrival.end, routerInstance);
  }
  if (messages === 1) return { message, routerInstance };
  throw new CallFailure(drawn("internal", `a unary response of ${messages} messages`), routerInstance);
}
