/// <reference lib="esnext.disposable" preserve="true" />
import { toBase64url } from "./base64url.js";
import { Broadcast } from "./broadcast.js";
import { loadCore } from "./core.js";
import { type ConclaveError, OpenError, SendError } from "./errors.js";
import type { EndpointEvent, EndpointState } from "./events.js";
import { exportHistory, History, type HistoryOptions, Snapshots } from "./history.js";
import { LiveState } from "./live_state.js";
import { Messages } from "./messages.js";
import { type Plan, placeOf } from "./opening.js";
import { type PostProof, type ProofOptions, readProof } from "./proof.js";
import { keyJson } from "./registry_key.js";
import type { Seat } from "./seat.js";
import {
  inspectStore,
  requestPersistence,
  resetStore,
  restoreStore,
  type StoreInspection,
  type StoreOptions,
  storeName,
} from "./store.js";
import { host } from "./tabs/host.js";
import { type Place, TabSeat } from "./tabs/tab_seat.js";
import { baseAddress } from "./transport/address.js";
import { Connection, CONNECTION } from "./transport/connection.js";
import { type Statistics, summary } from "./transport/statistics.js";
import type {
  Address,
  AgentAddress,
  Content,
  Conversation,
  Delivery,
  Ed25519Jwk,
  OpenOptions,
  SendOptions,
  SentPost,
} from "./types.js";
import { watchForWaking } from "./waking.js";

/**
 * One agent, its store and its connection.
 *
 * @example
 * ```ts
 * const alice = await Endpoint.open({ url: "https://conclave.example", name: "alice" });
 * await alice.send("agent:bob", "hello"); // certified when it resolves
 * for await (const { message, acknowledge } of alice.messages()) {
 *   console.log(message.sender, message.content);
 *   await acknowledge();
 * }
 * ```
 */
export class Endpoint {
  /** The local agent's name. */
  readonly name: string;
  /** The local agent's address, for others to send to. */
  readonly address: AgentAddress;
  /**
   * Resolves when the endpoint has ended: with `undefined` after `close`, otherwise with the failure that ended it.
   */
  readonly closed: Promise<ConclaveError | undefined>;

  readonly #seat: Seat;
  readonly #live = new LiveState();
  readonly #events = new Broadcast<EndpointEvent>();
  readonly #readers = new Set<(event: EndpointEvent) => void>();
  readonly #snapshots = new Snapshots();

  private constructor(name: string, seat: Seat) {
    this.name = name;
    this.address = `agent:${name}`;
    this.closed = seat.closed;
    this.#seat = seat;
    const stopWatching = seat.watch((events) => {
      for (const event of JSON.parse(events) as EndpointEvent[]) {
        for (const told of this.#live.take(event)) this.#readers.forEach((push) => push(told));
      }
    });
    // An endpoint that ends meanwhile has nothing to wake.
    const stopWaking = watchForWaking(() => void seat.request("wake", "{}").catch(() => undefined));
    void seat.closed.then(() => {
      stopWaking();
      stopWatching();
      this.#events.end();
    });
  }

  /**
   * Opens the agent's store in this browser, registers the name if this store has not done so, and connects.
   *
   * An endpoint that was open before opens without the deployment too; it connects when it can.
   *
   * @throws {@link OpenError}, {@link StoreError}, or the signal's reason.
   */
  static async open(options: OpenOptions): Promise<Endpoint> {
    if (typeof options !== "object" || options === null) throw new OpenError("invalid-options", "there are no options");
    const { name, admissionToken, storageName, share, signal, onOpening, wasm } = options;
    const connection = connectionOf(options);
    const { url } = connection;
    const registryKey = encodeRegistryKey(options.registryKey);
    for (const [option, value] of Object.entries({ name, admissionToken, storageName })) {
      if (typeof value !== "string" && (value !== undefined || option === "name")) {
        throw new OpenError("invalid-options", `\`${option}\` is not a string`);
      }
    }
    signal?.throwIfAborted();
    // Not waited for: some browsers ask their user.
    void requestPersistence();
    const store = storeName(url, name, storageName);
    const plan: Plan = { url, name, registryKey, thumbprint: await thumbprint(registryKey), admissionToken, store, isShared: share !== false, wasm };
    const place = { ...placeOf(plan, connection, onOpening), host: hostOf(options, plan) };
    // Whoever may have to take over has the module at hand; what is wrong with it shows when it does.
    if (place.host === undefined) loadCore(wasm).catch(() => undefined);
    onOpening?.({ phase: "waiting-for-store" });
    return new Endpoint(name, await TabSeat.open(place, signal));
  }

  /**
   * What opening this store would do. Nothing is written and nothing is made; another page may have the store open.
   *
   * @throws {@link StoreError}
   */
  static inspect(options: StoreOptions): Promise<StoreInspection> {
    return inspectStore(options);
  }

  /**
   * Puts a store back as it was before a migration that failed with `migration-failed`, for the release that wrote it.
   * Once an endpoint was open over the migrated store this is refused with `store-rolled-back`: what was signed since would
   * be forgotten.
   *
   * @throws {@link StoreError}
   */
  static restore(options: StoreOptions): Promise<void> {
    return restoreStore(options);
  }

  /**
   * Removes a store with everything in it: the agent's key, its history, what was not sent yet. Its name stays registered
   * to the key that is then gone, so open under another name.
   *
   * @throws {@link StoreError}
   */
  static reset(options: StoreOptions): Promise<void> {
    return resetStore(options);
  }

  /**
   * Sends a post to an agent or a group, and resolves when it is certified: signed by and stored at a quorum of the
   * members, this one included. A text is one text part.
   *
   * @throws {@link SendError}, {@link StoreError}, or the signal's reason. A post that was recorded before the signal
   * aborted is still sent.
   */
  async send(to: Address, content: string | Content, options: SendOptions = {}): Promise<SentPost> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (!isText(to)) throw new SendError("invalid-address", "an address is a string");
    const parts: Content = typeof content === "string" ? [{ type: "text", text: content }] : content;
    // Minted here: whichever tab records the post, asked again it is the same.
    const postId = `pst_${toBase64url(crypto.getRandomValues(new Uint8Array(32)))}`;
    await this.#seat.request("send", JSON.stringify({ to, content: encodeContent(parts), postId }), signal);
    return { postId };
  }

  /**
   * The messages of other members: those not acknowledged yet, then new ones as they are certified. One iteration may
   * be running at a time; ending it (or aborting `signal`) lets another begin, which starts over with everything that is
   * not acknowledged.
   *
   * Iterating throws {@link ListenError}.
   */
  messages(options: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<Delivery, undefined> {
    return new Messages(this.#seat, options.signal);
  }

  /**
   * The certified posts of one conversation, first to last, from this agent's own store. `await` gives a page, `for await`
   * every post; both within a snapshot that later posts do not move. Each post is verified as it is read, as it was at
   * start-up: its row, its hashes, every signature kept with it.
   *
   * Nothing is read before that. Reading throws {@link HistoryError}: `corrupt` names the row that does not verify.
   */
  history(address: Address, options: HistoryOptions = {}): History {
    return new History(this.#seat, this.#snapshots, address, options);
  }

  /**
   * Gives back the snapshot of a continuation that is not needed any more. Its continuations are then refused. It is not
   * owed: of more than {@link HISTORY_SNAPSHOTS_MAX} the one unused for longest goes by itself.
   */
  releaseHistory(continuation: string): void {
    this.#snapshots.release(continuation);
  }

  /**
   * What proves a certified post: its record core, who signed it and who vouches that it is stored, with their complete
   * messages, and a file that anybody with the Registry's key can verify.
   *
   * @throws {@link HistoryError}
   */
  proof(address: Address, postId: string, options: ProofOptions = {}): Promise<PostProof> {
    return readProof(this.#seat, address, postId, options);
  }

  /**
   * The whole certified history of a conversation as a file: one canonical JSON value a line, the members first, then
   * every record and re-anchor in order. `verify` checks it anywhere. It is read page by page and what is certified
   * meanwhile is not in it.
   *
   * @example
   * ```ts
   * const link = document.createElement("a");
   * link.href = URL.createObjectURL(await endpoint.export("agent:bob"));
   * link.download = "bob.jsonl";
   * link.click();
   * ```
   *
   * @throws {@link HistoryError}, or the signal's reason.
   */
  export(address: Address, options: { readonly signal?: AbortSignal } = {}): Promise<Blob> {
    return exportHistory(this.#seat, address, options.signal);
  }

  /** The key of the Registry this agent trusts, which verifies what it exports. */
  async registryKey(): Promise<Ed25519Jwk> {
    return JSON.parse(await this.#seat.request("registryKey", "{}")) as Ed25519Jwk;
  }

  /**
   * The conversations this agent is a member of, by address.
   *
   * @throws {@link HistoryError}
   */
  async conversations(): Promise<readonly Conversation[]> {
    return JSON.parse(await this.#seat.request("conversations", "{}")) as Conversation[];
  }

  /**
   * What an onlooker may want to show: the connection, what conversations wait for, where each post is, the storage. It begins
   * with the present state of everything that is under way. Any number of readers.
   *
   * @example
   * ```ts
   * for await (const event of alice.events()) {
   *   if (event.kind === "connection") light.dataset.state = event.state;
   *   if (event.kind === "recovery" && event.waits?.paused) ask(event.waits.missing);
   * }
   * ```
   */
  events(options: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<EndpointEvent, undefined> {
    return this.#events.subscribe(options.signal, (push) => {
      this.#live.current().forEach(push);
      this.#readers.add(push);
      return () => this.#readers.delete(push);
    });
  }

  /** The present state of everything that is under way: what {@link Endpoint.events} begins with, in one piece. */
  get state(): EndpointState {
    return this.#live.state();
  }

  /**
   * How often each RPC of the backend was called over this endpoint's connection, by everyone who shares it: other tabs of the
   * agent, and the `Backend` it was opened with.
   */
  async statistics(): Promise<Statistics> {
    return JSON.parse(await this.#seat.request("statistics", "{}")) as Statistics;
  }

  /** The {@link statistics} as text, for people. Its format may change. */
  async statisticsSummary(): Promise<string> {
    return summary(await this.statistics());
  }

  /** Sets every count of the {@link statistics} to 0, for everyone who shares the connection. */
  async clearStatistics(): Promise<void> {
    await this.#seat.request("clearStatistics", "{}");
  }

  /** Ends the connection and lets go of the store. What is recorded stays; it goes on when the agent is opened again. */
  async close(): Promise<void> {
    await this.#seat.close();
  }

  /** Closes the endpoint at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Callers without types pass anything, and the module's memory is read wrong where a string is taken for granted. */
function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** The connection of the backend that is shared, or one of its own. */
function connectionOf({ url, backend, credential }: OpenOptions): Connection {
  if (backend !== undefined) {
    if (url !== undefined || credential !== undefined) {
      throw new OpenError("invalid-options", "`backend` has an address and a credential already: leave out `url` and `credential`");
    }
    if (backend[CONNECTION] instanceof Connection) return backend[CONNECTION];
    throw new OpenError("invalid-options", "`backend` is not what `Backend.connect` gave");
  }
  try {
    return new Connection(baseAddress(url ?? ""), credential);
  } catch (cause) {
    throw new OpenError("invalid-options", (cause as Error).message, { cause });
  }
}

/** How a worker is had to queue for the store, if one is to. */
function hostOf({ worker = false, backend, credential, onOpening, wasm }: OpenOptions, plan: Plan): Place["host"] {
  if (worker === false) return undefined;
  const isOwn = typeof worker === "object" && worker !== null && ("postMessage" in worker || "port" in worker);
  if (worker !== "shared" && worker !== "dedicated" && !isOwn) throw new OpenError("invalid-options", "`worker` is none of its values");
  if (backend !== undefined) throw new OpenError("invalid-options", "a worker has a connection of its own: give it `url` and not `backend`");
  if (!plan.isShared) throw new OpenError("invalid-options", "what runs in a worker is shared: leave out `share`");
  // A worker that runs an endpoint can not start another worker everywhere: it runs this one too.
  if (!isOwn && typeof Worker === "undefined") return undefined;
  const address = wasm instanceof URL ? wasm.href : typeof wasm === "string" ? new URL(wasm, location.href).href : wasm;
  return (signal) => host(worker, { ...plan, wasm: address }, credential, onOpening, signal);
}

/** A thumbprint URI as it is, a key as its canonical JSON. */
function encodeRegistryKey(key: OpenOptions["registryKey"]): string | undefined {
  if (key === undefined || typeof key === "string") return key;
  const json = keyJson(key);
  if (json === undefined) throw new OpenError("invalid-options", "`registryKey` is not a key");
  return json;
}

/** The thumbprint URI of a key in the form {@link encodeRegistryKey} gives (RFC 7638, RFC 9278). */
async function thumbprint(key: string | undefined): Promise<string | undefined> {
  // Without Web Crypto there are no Web Locks either, and the opening says so.
  if (key === undefined || !key.startsWith("{") || !("subtle" in crypto)) return key;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${toBase64url(hash)}`;
}

/** The content as JSON text; the module checks it against its schema. */
function encodeContent(content: Content): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(content, refuseLossy);
  } catch (cause) {
    throw new SendError("content-invalid", `the content is not a JSON value: ${String(cause)}`, { cause });
  }
  if (json === undefined) throw new SendError("content-invalid", "the content is missing");
  return json;
}

/** Half of a character: no encoding of Unicode has a place for it. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Refuses what JSON text would silently turn into something else. */
function refuseLossy(key: string, value: unknown): unknown {
  if (LONE_SURROGATE.test(key) || (typeof value === "string" && LONE_SURROGATE.test(value))) {
    throw new TypeError(`a text at "${key}" is not well-formed Unicode`);
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value} at "${key}" is not a finite number`);
  if (value === undefined || typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(`a value of type ${typeof value} at "${key}" has no JSON form`);
  }
  return value;
}
