import { BackendError, PublishError } from "../errors.js";
import { baseAddress } from "../transport/address.js";
import { Connection, CONNECTION } from "../transport/connection.js";
import type { Credential } from "../transport/credential.js";
import { type Statistics, summary } from "../transport/statistics.js";
import { CallFailure } from "../transport/status.js";
import { call, groups, type Rpc } from "./calls.js";
import { configurationOf } from "./configuration.js";
import { backendError, publishError } from "./failure.js";
import { Query, type QueryOptions } from "./query.js";
import { settle } from "./settle.js";
import { Subscription } from "./subscription.js";
import * as tables from "./tables.js";
import { parseTopics, topics } from "./topics.js";
import type {
  Configuration,
  Envelope,
  EnvelopeMeta,
  Identifier,
  Settlement,
  StoredEnvelope,
  Topic,
  Topics,
  WalletSignature,
  WalletVerdict,
} from "./types.js";
import { encode, type Table, type Union } from "./wire.js";

/** How long an attempt of a call may take where the caller does not say, in milliseconds. */
const TIMEOUT_MS = 30_000;
/** The longest time that gRPC's header for it carries, in milliseconds. */
const TIMEOUT_MS_MAX = 99_999_999;
/** The most bytes before an entry of a request: a tag and a length. */
const PREFIX_BYTES_MAX = 6;
/** The bytes of a topic in a request, and what stands before them, at most. */
const TOPIC_BYTES_MAX = 40;

const rpc = (service: string, method: string, request: Rpc["request"], response: Rpc["response"]): Rpc => ({
  path: `/xmtp.backend.v1.${service}/${method}`,
  request,
  response,
});
const GET_CONFIGURATION = rpc(
  "ConfigurationService",
  "GetConfiguration",
  tables.getConfigurationRequest,
  tables.getConfigurationResponse,
);
const PUBLISH = rpc("PublishService", "Publish", tables.listRequest, tables.publishResponse);
const QUERY = rpc("QueryService", "Query", tables.queryRequest, tables.queryResponse);
const QUERY_NEWEST = rpc("QueryService", "QueryNewest", tables.queryNewestRequest, tables.queryNewestResponse);
const GET_INBOX_IDS = rpc("IdentityService", "GetInboxIds", tables.listRequest, tables.getInboxIdsResponse);
const VERIFY = rpc("IdentityService", "VerifySmartContractWalletSignatures", tables.listRequest, tables.verifyResponse);

/** How to connect. */
export interface ConnectOptions {
  /** Where the deployment answers, such as `https://conclave.example`. */
  readonly url: string | URL;
  /**
   * For a deployment that asks for credentials: a bearer token, or a function that gives one. The function is asked before the
   * first call, and again when a call is refused.
   */
  readonly credential?: Credential;
  /** How long one attempt of a call may take, in milliseconds: from 1 to 99,999,999, and 30,000 by default. */
  readonly timeoutMs?: number;
  /** Ends the connecting. It has no effect on a backend that is connected. */
  readonly signal?: AbortSignal;
}

/** How to make a call. */
export interface CallOptions {
  /** Ends the wait; the call may still have its effect. */
  readonly signal?: AbortSignal;
}

/**
 * A deployment, as whoever publishes and reads envelopes uses it. It runs in windows, workers and Node.
 *
 * Calls that fail for a while are made again, at most five times, with the same bytes; what a deployment refuses is not.
 * Failures are {@link BackendError}s, those of a publish {@link PublishError}s.
 *
 * @example
 * ```ts
 * const backend = await Backend.connect({ url: "https://conclave.example" });
 * const [meta] = await backend.publish([{ kind: "group-message", data }]);
 * for await (const { envelope } of backend.subscribe(topics.groupMessages(groupId))) console.log(envelope);
 * ```
 */
export class Backend {
  /** The deployment's base address. */
  readonly url: string;
  /** What the deployment said of itself when this was connected. */
  readonly configuration: Configuration;
  /** @internal */
  readonly [CONNECTION]: Connection;

  readonly #timeoutMs: number;
  readonly #closed = new AbortController();

  private constructor(connection: Connection, configuration: Configuration, timeoutMs: number) {
    this.url = connection.url;
    this.configuration = configuration;
    this[CONNECTION] = connection;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Connects: reads what the deployment says of itself, without a credential.
   *
   * @throws {@link BackendError}, or the signal's reason.
   */
  static async connect(options: ConnectOptions): Promise<Backend> {
    const { url, credential, timeoutMs = TIMEOUT_MS, signal } = (options as ConnectOptions | undefined) ?? { url: "" };
    if (!(Number.isSafeInteger(timeoutMs) && timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
      throw new BackendError("invalid-argument", `\`timeoutMs\` is a whole number from 1 to ${TIMEOUT_MS_MAX}.`);
    }
    let connection: Connection;
    try {
      connection = new Connection(baseAddress(url), credential);
    } catch (cause) {
      throw new BackendError("invalid-argument", (cause as Error).message, { cause });
    }
    const answer = await call(connection, GET_CONFIGURATION, {}, { isPublic: true, timeoutMs, signal }).catch(typed("GetConfiguration"));
    return new Backend(connection, configurationOf(answer), timeoutMs);
  }

  /**
   * Publishes envelopes, all of them or none, and resolves with what was assigned to each, in their order. Publishing the same
   * envelope again changes nothing and gives the same answer, so an attempt whose answer was lost is repeated as it was.
   *
   * A publish is one request and is never split. One that is beyond the deployment's limits is refused before it is sent.
   *
   * @throws {@link PublishError}, which says whether nothing was stored, or the signal's reason.
   */
  async publish(envelopes: readonly Envelope[], options: CallOptions = {}): Promise<readonly EnvelopeMeta[]> {
    const entries = this.#encodePublish(envelopes);
    try {
      const { metas } = (await this.#call(PUBLISH, { entries }, options)) as { metas: EnvelopeMeta[] };
      if (metas.length === envelopes.length) return metas;
    } catch (thrown) {
      throw thrown instanceof CallFailure ? publishError(thrown) : thrown;
    }
    throw new PublishError("internal", "Publish failed: the answer is not one entry per envelope.", { isRefused: false });
  }

  /**
   * What became of envelopes whose publish failed without saying so (API-290): each is read from its topic. This is the way on
   * after `out-of-range`, which forbids to publish the same again.
   *
   * `after` is a sequence id from before the publish, so that less has to be read.
   *
   * @throws {@link BackendError}, or the signal's reason.
   */
  async settle(
    envelopes: readonly Envelope[],
    { after = 0n, ...options }: CallOptions & { readonly after?: bigint } = {},
  ): Promise<readonly Settlement[]> {
    return settle(arrayOf("envelopes", envelopes, invalid), {
      query: (topics) => this.query(topics.map((topic) => ({ topic, after })), options),
      newest: (topics) => this.newest(topics, options),
    });
  }

  /**
   * The stored envelopes of topics. It is a {@link Query}: iterate it for envelopes, or its `pages()`.
   *
   * @throws {@link BackendError} `invalid-argument`; iterating throws {@link BackendError} or the signal's reason.
   */
  query(topics: Topics, options: QueryOptions = {}): Query {
    for (const [name, value] of Object.entries({ limit: options.limit, pageSize: options.pageSize })) {
      if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
        throw new BackendError("invalid-argument", `\`${name}\` is a whole number of at least 1.`);
      }
    }
    return new Query(parseTopics(topics), this.configuration.limits, options, async (queries, limit) => {
      const answer = await this.#call(QUERY, { queries, limit }, options).catch(typed("Query"));
      return answer as { envelopes: StoredEnvelope[]; hasMore: boolean };
    });
  }

  /**
   * The newest envelope of each topic, by topic. A topic that holds none is not in the map.
   *
   * @throws {@link BackendError}, or the signal's reason.
   */
  async newest(
    topics: Topics,
    options: CallOptions & {
      /** Leaves the envelopes themselves out. */
      readonly metadataOnly?: boolean;
    } = {},
  ): Promise<ReadonlyMap<Topic, StoredEnvelope>> {
    const { maxNewestFullTopics, maxNewestMetadataTopics, maxRequestBytes } = this.configuration.limits;
    const includeFullEnvelope = options.metadataOnly !== true;
    const count = includeFullEnvelope ? maxNewestFullTopics : maxNewestMetadataTopics;
    const asked = parseTopics(topics);
    const newest = new Map<Topic, StoredEnvelope>();
    const ask = async (group: readonly Topic[]): Promise<void> => {
      const request = { topics: group, includeFullEnvelope };
      try {
        const { results } = (await this.#call(QUERY_NEWEST, request, options).catch(typed("QueryNewest"))) as {
          results: (StoredEnvelope & { topic: Topic })[];
        };
        // A result says which topic it is of; its place says nothing (API-245).
        for (const { topic, meta, envelope } of results) if (asked.has(topic)) newest.set(topic, { meta, envelope });
      } catch (thrown) {
        if (!(thrown instanceof BackendError) || thrown.code !== "out-of-range" || group.length === 1) throw thrown;
        const half = Math.ceil(group.length / 2);
        await ask(group.slice(0, half));
        await ask(group.slice(half));
      }
    };
    for (const group of groups(asked.keys(), count, maxRequestBytes, () => TOPIC_BYTES_MAX)) await ask(group);
    return newest;
  }

  /**
   * The envelopes of topics, what is stored and what is published from now on. See {@link Subscription}.
   *
   * @throws {@link BackendError} `invalid-argument`
   */
  subscribe(topics: Topics = [], { signal }: CallOptions = {}): Subscription {
    return new Subscription(this[CONNECTION], this.configuration.limits, topics, [signal, this.#closed.signal]);
  }

  /**
   * The inbox of each identifier, in their order; `undefined` where there is none. The answer is the deployment's alone.
   *
   * @throws {@link BackendError}, or the signal's reason.
   */
  async getInboxIds(
    identifiers: readonly Identifier[],
    options: CallOptions = {},
  ): Promise<readonly (string | undefined)[]> {
    const { maxLookupIdentifiers } = this.configuration.limits;
    const entries = encodeAll("identifiers", tables.identifier, ["identifier", "kind"], identifiers, invalid);
    const answered = this.#inGroups(GET_INBOX_IDS, entries, maxLookupIdentifiers, options);
    return ((await answered) as { inboxId?: string }[]).map(({ inboxId }) => inboxId);
  }

  /**
   * Whether smart contract wallets accept signatures, in their order. A signature that is not valid is a verdict.
   *
   * @throws {@link BackendError}, or the signal's reason.
   */
  async verifySmartContractWalletSignatures(
    signatures: readonly WalletSignature[],
    options: CallOptions = {},
  ): Promise<readonly WalletVerdict[]> {
    const { maxScwSignatures } = this.configuration.limits;
    const entries = encodeAll("signatures", tables.walletSignature, ["accountId", "hash", "signature"], signatures, invalid);
    return (await this.#inGroups(VERIFY, entries, maxScwSignatures, options)) as WalletVerdict[];
  }

  /** How often each RPC was called over this connection, by everyone who shares it. */
  statistics(): Statistics {
    return this[CONNECTION].counters.get();
  }

  /** The {@link statistics} as text, for people. Its format may change. */
  statisticsSummary(): string {
    return summary(this.statistics());
  }

  /** Sets every count of the {@link statistics} to 0, for everyone who shares the connection. */
  clearStatistics(): void {
    this[CONNECTION].counters.clear();
  }

  /** Tries again at once whatever waits to be tried again, and makes sure that what is open still lives. */
  reconnect(): void {
    this[CONNECTION].reconnectNow();
  }

  /** Ends every subscription. Endpoints that share the connection go on. */
  close(): void {
    this.#closed.abort();
  }

  #call(rpc: Rpc, value: unknown, { signal }: CallOptions): Promise<unknown> {
    return call(this[CONNECTION], rpc, value, { timeoutMs: this.#timeoutMs, signal });
  }

  /** Calls an RPC that answers each entry of its request at the same index. */
  async #inGroups(rpc: Rpc, entries: readonly Uint8Array[], count: number, options: CallOptions): Promise<unknown[]> {
    const method = rpc.path.slice(rpc.path.lastIndexOf("/") + 1);
    const responses: unknown[] = [];
    const bytesOf = ({ length }: Uint8Array) => length + PREFIX_BYTES_MAX;
    for (const group of groups(entries, count, this.configuration.limits.maxRequestBytes, bytesOf)) {
      const answer = await this.#call(rpc, { entries: group }, options).catch(typed(method));
      const answered = (answer as { responses: unknown[] }).responses;
      if (answered.length !== group.length) {
        throw new BackendError("internal", `${method} failed: the answer is not one entry per entry of the request.`);
      }
      responses.push(...answered);
    }
    return responses;
  }

  /** The envelopes, encoded. Refuses what the deployment would refuse for its size. */
  #encodePublish(envelopes: readonly Envelope[]): readonly Uint8Array[] {
    const { maxEnvelopeBytes, maxRequestBytes, maxPublishTopics } = this.configuration.limits;
    const refuse = (what: string, index?: number) => {
      const message = `Publish failed: ${what}. Nothing was sent, and a publish is not split: publish fewer envelopes at once.`;
      throw new PublishError("invalid-argument", message, { isRefused: true, reason: "too-large", index });
    };
    const encoded = encodeAll("envelopes", tables.clientEnvelope, ["kind"], envelopes, (what, cause, index) => {
      const reason = "malformed-payload";
      return new PublishError("invalid-argument", `Publish failed: ${what}. Nothing was sent.`, { isRefused: true, reason, index, cause });
    });
    let bytes = 0;
    for (const [index, { length }] of encoded.entries()) {
      if (length > maxEnvelopeBytes) refuse(`envelope ${index} has ${length} bytes of ${maxEnvelopeBytes}`, index);
      bytes += length + prefixBytes(length);
    }
    const named = new Set(envelopes.flatMap((envelope) => topics.of(envelope) ?? []));
    if (bytes > maxRequestBytes) refuse(`the request has ${bytes} bytes of ${maxRequestBytes}`);
    if (named.size > maxPublishTopics) refuse(`the request is of ${named.size} topics of ${maxPublishTopics}`);
    return encoded;
  }
}

/** Why an argument is not taken: what is wrong, what that was seen by, and with which entry. */
type Refuse = (what: string, cause?: unknown, index?: number) => BackendError;

const invalid: Refuse = (what, cause) => new BackendError("invalid-argument", `${what}. Nothing was sent.`, { cause });

/** An argument that is an array. Callers without types pass anything. */
function arrayOf<T>(name: string, entries: readonly T[], refuse: Refuse): readonly T[] {
  if (Array.isArray(entries)) return entries;
  throw refuse(`\`${name}\` is not an array`);
}

/** The entries of an argument, each encoded. */
function encodeAll(name: string, table: Table | Union, needed: readonly string[], entries: readonly object[], refuse: Refuse): Uint8Array[] {
  return arrayOf(name, entries, refuse).map((entry, index) => {
    try {
      const held = entry as Record<string, unknown> | null | undefined;
      const missing = needed.find((property) => (held?.[property] ?? undefined) === undefined);
      if (missing !== undefined) throw new TypeError(`its \`${missing}\` is missing`);
      return encode(table, entry);
    } catch (cause) {
      throw refuse(`\`${name}[${index}]\` is none: ${(cause as Error).message}`, cause, index);
    }
  });
}

/** The bytes of a tag and of a length. */
function prefixBytes(length: number): number {
  let bytes = 2;
  for (let rest = length; rest >= 0x80 && bytes < PREFIX_BYTES_MAX; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}

/** Makes a typed error of a failed call. */
function typed(method: string): (thrown: unknown) => never {
  return (thrown) => {
    throw thrown instanceof CallFailure ? backendError(method, thrown) : thrown;
  };
}
