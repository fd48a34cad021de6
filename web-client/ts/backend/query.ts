/** Reading topics in pages (Backend API contract, section 4). */
import { BackendError } from "../errors.js";
import { groups } from "./calls.js";
import type { Limits, StoredEnvelope, Topic } from "./types.js";

/** The most bytes that a topic and its cursor take in a request. */
const QUERY_BYTES_MAX = 64;

/** How to query. */
export interface QueryOptions {
  /** The most envelopes in all; without end where there is none. */
  readonly limit?: number;
  /** The most envelopes a page; the most the deployment gives where there is none. */
  readonly pageSize?: number;
  readonly signal?: AbortSignal;
}

/** One page, asked for with a page size. */
export type AskPage = (
  queries: readonly { topic: Topic; after: bigint }[],
  limit: number,
) => Promise<{ envelopes: readonly StoredEnvelope[]; hasMore: boolean }>;

/**
 * The envelopes of topics, in the order of each topic. Nothing is asked before it is iterated; each iteration begins anew.
 *
 * @example
 * ```ts
 * for await (const { meta, envelope } of backend.query(topic)) console.log(meta.sequenceId, envelope);
 * ```
 */
export class Query implements AsyncIterable<StoredEnvelope> {
  readonly #cursors: ReadonlyMap<Topic, bigint>;
  readonly #limits: Limits;
  readonly #options: QueryOptions;
  readonly #ask: AskPage;

  /** @internal */
  constructor(cursors: ReadonlyMap<Topic, bigint>, limits: Limits, options: QueryOptions, ask: AskPage) {
    this.#cursors = cursors;
    this.#limits = limits;
    this.#options = options;
    this.#ask = ask;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StoredEnvelope, undefined> {
    for await (const page of this.pages()) yield* page;
  }

  /** The same in pages as they arrive; none is empty. */
  async *pages(): AsyncGenerator<readonly StoredEnvelope[], undefined> {
    const { maxQueryTopics, maxQueryLimit, maxRequestBytes } = this.#limits;
    let left = this.#options.limit ?? Infinity;
    let pageSize = Math.min(this.#options.pageSize ?? maxQueryLimit, maxQueryLimit);
    for (const group of groups(this.#cursors, maxQueryTopics, maxRequestBytes - QUERY_BYTES_MAX, () => QUERY_BYTES_MAX)) {
      const cursors = new Map(group);
      for (let hasMore = true; hasMore; ) {
        const limit = Math.min(pageSize, left);
        if (limit < 1) return;
        let page: Awaited<ReturnType<AskPage>>;
        try {
          page = await this.#ask(Array.from(cursors, ([topic, after]) => ({ topic, after })), limit);
        } catch (thrown) {
          // The page was longer than an answer may be: a smaller one is another request.
          if (!(thrown instanceof BackendError) || thrown.code !== "out-of-range" || limit === 1) throw thrown;
          pageSize = Math.floor(limit / 2);
          continue;
        }
        const news = page.envelopes.filter(({ meta }) => advance(cursors, meta.topic, meta.sequenceId));
        ({ hasMore } = page);
        if (news.length > 0) {
          left -= news.length;
          yield news;
        } else if (hasMore) {
          throw new BackendError("internal", "Query failed: the deployment says that there is more and gives nothing new.");
        }
      }
    }
  }
}

/** Moves a topic's cursor to an envelope. False where it was there already, or where the topic was not asked for. */
function advance(cursors: Map<Topic, bigint>, topic: Topic, sequenceId: bigint): boolean {
  const at = cursors.get(topic);
  if (at === undefined || sequenceId <= at) return false;
  cursors.set(topic, sequenceId);
  return true;
}
