/// <reference lib="esnext.disposable" preserve="true" />
import { abortable } from "./abort.js";
import { Broadcast } from "./broadcast.js";
import type { Core } from "./conclave_web_client.js";
import { loadCore } from "./core.js";
import { type ConclaveError, fromCore, OpenError, SendError } from "./errors.js";
import { Messages } from "./messages.js";
import type {
  Address,
  AgentAddress,
  Content,
  ConnectionProgress,
  Conversation,
  Delivery,
  HistoryEntry,
  OpenOptions,
  PostProgress,
  Progress,
  SendOptions,
  SentPost,
  Verification,
} from "./types.js";

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

  readonly #core: Core;
  readonly #progress: Broadcast<Progress>;
  readonly #connection: () => ConnectionProgress;

  private constructor(
    name: string,
    core: Core,
    progress: Broadcast<Progress>,
    connection: () => ConnectionProgress,
    closed: Promise<ConclaveError | undefined>,
  ) {
    this.name = name;
    this.address = `agent:${name}`;
    this.closed = closed;
    this.#core = core;
    this.#progress = progress;
    this.#connection = connection;
  }

  /**
   * Opens the agent's store in this browser, registers the name if this store has not done so, and connects.
   *
   * An endpoint that was open before opens without the deployment too; it connects when it can.
   *
   * @throws {@link OpenError}, {@link StoreError}, or the signal's reason.
   */
  static async open(options: OpenOptions): Promise<Endpoint> {
    const { name, admissionToken, storageName, signal, wasm } = options;
    const url = deployment(options.url);
    const registryKey = encodeRegistryKey(options.registryKey);
    for (const [option, value] of Object.entries({ name, admissionToken, storageName })) {
      if (typeof value !== "string" && (value !== undefined || option === "name")) {
        throw new OpenError("invalid-options", `\`${option}\` is not a string`);
      }
    }
    signal?.throwIfAborted();
    const module = await abortable(loadCore(wasm), signal);

    const progress = new Broadcast<Progress>();
    let connection: ConnectionProgress = { kind: "connection", state: "connecting" };
    let settleClosed: (failure: ConclaveError | undefined) => void = () => undefined;
    const closed = new Promise<ConclaveError | undefined>((resolve) => {
      settleClosed = resolve;
    });
    const observer = {
      progress: (json: string) => {
        const event = JSON.parse(json) as Progress;
        if (event.kind === "connection") connection = event;
        progress.publish(event);
      },
      closed: (failure: unknown) => {
        progress.end();
        settleClosed(failure === undefined ? undefined : (fromCore(failure) as ConclaveError));
      },
    };
    let core: Core;
    try {
      // Not raced against the signal: the module itself stops, and has let go of the store when this rejects.
      core = await module.open(url, name, registryKey, admissionToken, storageName, signal, observer);
    } catch (thrown) {
      throw fromCore(thrown);
    }
    return new Endpoint(name, core, progress, () => connection, closed);
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
    const parts: Content = typeof content === "string" ? [{ type: "text", text: content }] : content;
    try {
      return { postId: await abortable(this.#core.send(to, encodeContent(parts), signal), signal) };
    } catch (thrown) {
      throw fromCore(thrown);
    }
  }

  /**
   * The messages of other members: those not acknowledged yet, then new ones as they are certified. One iteration may
   * be running at a time; ending it (or aborting `signal`) lets another begin, which starts over with everything that is
   * not acknowledged.
   *
   * Iterating throws {@link ListenError}.
   */
  messages(options: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<Delivery, undefined> {
    return new Messages(this.#core, options.signal);
  }

  /**
   * The certified posts of one conversation, first to last, from this agent's own store.
   *
   * @throws {@link HistoryError}
   */
  async history(address: Address): Promise<readonly HistoryEntry[]> {
    const core = this.#core;
    try {
      const entries = JSON.parse(await core.history(address)) as Omit<HistoryEntry, "verify">[];
      return entries.map((entry) => ({
        ...entry,
        verify: async () => {
          try {
            return JSON.parse(await core.verify(address, entry.position)) as Verification;
          } catch (thrown) {
            throw fromCore(thrown);
          }
        },
      }));
    } catch (thrown) {
      throw fromCore(thrown);
    }
  }

  /**
   * The conversations this agent is a member of, by address.
   *
   * @throws {@link HistoryError}
   */
  async conversations(): Promise<readonly Conversation[]> {
    try {
      return JSON.parse(await this.#core.conversations()) as Conversation[];
    } catch (thrown) {
      throw fromCore(thrown);
    }
  }

  /**
   * What an onlooker may want to show: the state of the connection and where each post is. It begins with the current
   * state and every post that is not certified yet. Any number of readers.
   */
  progress(options: { readonly signal?: AbortSignal } = {}): AsyncIterableIterator<Progress, undefined> {
    return this.#progress.subscribe([this.#connection(), ...this.pending()], options.signal);
  }

  /** The posts that are not certified yet, of this agent and of others, as they stand now. */
  pending(): readonly PostProgress[] {
    return JSON.parse(this.#core.open_posts()) as PostProgress[];
  }

  /** Ends the connection and lets go of the store. What is recorded stays; it goes on when the agent is opened again. */
  async close(): Promise<void> {
    await this.#core.close();
  }

  /** Closes the endpoint at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The deployment's base address, without a trailing slash. */
function deployment(url: string | URL): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw new OpenError("invalid-options", "`url` is not an absolute URL", { cause });
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") {
    throw new OpenError("invalid-options", "`url` must begin with https: or http:");
  }
  return parsed.origin + parsed.pathname.replace(/\/+$/, "");
}

/** A thumbprint URI as it is, a key as its canonical JSON. */
function encodeRegistryKey(key: OpenOptions["registryKey"]): string | undefined {
  if (key === undefined || typeof key === "string") return key;
  const { crv, kty, x } = key;
  return JSON.stringify({ crv, kty, x });
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

/** Refuses what JSON text would silently turn into something else. */
function refuseLossy(key: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${value} at "${key}" is not a finite number`);
  if (value === undefined || typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(`a value of type ${typeof value} at "${key}" has no JSON form`);
  }
  return value;
}
