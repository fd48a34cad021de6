/** Reading one conversation from the agent's own store: pages within one snapshot, every post of it, and the export. */
import { type CertifiedRecord, type CompletedReanchor, entryOf, readDescriptor } from "./certified.js";
import { HistoryError } from "./errors.js";
import type { Seat } from "./seat.js";
import type { Address, HistoryEntry } from "./types.js";

/** Posts of a page whose length nobody chose. */
export const HISTORY_PAGE_DEFAULT = 50;

/** Most posts of one page. */
export const HISTORY_PAGE_MAX = 1_000;

/** Most snapshots that an endpoint keeps for continuations. Of more, the one unused for longest is released. */
export const HISTORY_SNAPSHOTS_MAX = 64;

/** How to read a history. */
export interface HistoryOptions {
  /** Begin after the post with this record hash, or after this many posts. By default at the first post. */
  readonly after?: string | number;
  /** Go on where a page ended, in the same snapshot. Not together with `after`. */
  readonly continuation?: string;
  /** Most posts of a page: 1 to {@link HISTORY_PAGE_MAX}, by default {@link HISTORY_PAGE_DEFAULT}. */
  readonly limit?: number;
  /** Ends the reading. */
  readonly signal?: AbortSignal;
}

/** Some posts of a conversation, in order. */
export interface HistoryPage {
  /** The posts; each was read from the store and verified for this page. */
  readonly entries: readonly HistoryEntry[];
  /** How many posts the snapshot has: those that were certified when the first page was read. */
  readonly total: number;
  /** What the next page is read with; `undefined` after the last post. Repeating a page is possible, too. */
  readonly next: string | undefined;
}

/** A place in a history: posts before it, and re-anchors before it. */
type Place = readonly [records: number, reanchors: number];

/** What a page is asked for besides its address and its limit. */
interface Question {
  readonly [name: string]: string | number | undefined;
}

/** What the module says of a page before its lines. */
interface PageHead {
  readonly end: Place;
  readonly head: string | null;
  readonly from: Place;
  readonly next: Place;
}

/** The lines of a page: the members, then records and re-anchors. */
export interface Lines extends PageHead {
  readonly descriptor: string;
  readonly items: readonly string[];
}

/** A history as it was when it was first read. It is a place in a chain that only grows, so keeping it costs nothing. */
interface Snapshot {
  readonly address: Address;
  readonly end: Place;
  readonly head: string | null;
}

/** Asks the owner of the store for some lines, each verified as at start-up. */
export async function readLines(
  seat: Seat,
  address: Address,
  question: Question,
  limit: number,
  signal: AbortSignal | undefined,
): Promise<Lines> {
  signal?.throwIfAborted();
  const [first = "", descriptor = "", ...items] = (
    await seat.request("history", JSON.stringify({ ...question, address, limit }), signal)
  ).split("\n");
  return { ...(JSON.parse(first) as PageHead), descriptor, items };
}

/** Asks for what stands at a place of a snapshot. */
function within({ end, head }: Snapshot, [fromRecords, fromReanchors]: Place): Question {
  const ofConversation = head === null ? {} : { head };
  return { ...ofConversation, endRecords: end[0], endReanchors: end[1], fromRecords, fromReanchors };
}

/**
 * Asks for what follows a page that is not the last.
 *
 * @throws {@link HistoryError} `corrupt` for one that is empty: nothing would follow, and what is missing would not show.
 */
function following(snapshot: Snapshot, { next, items }: Lines): Question {
  if (items.length === 0) throw new HistoryError("corrupt", `the store gives nothing after ${next[0]} of ${snapshot.end[0]} posts`);
  return within(snapshot, next);
}

/** Whether a place is the end of a snapshot, or behind it. */
function isEnd({ end }: Snapshot, [records, reanchors]: Place): boolean {
  return records >= end[0] && reanchors >= end[1];
}

/** The snapshots that continuations of one endpoint name. */
export class Snapshots {
  readonly #held = new Map<string, Snapshot>();

  /** The continuation at a place. */
  continuation(id: string, place: Place): string {
    return `${id}.${place.join(".")}`;
  }

  hold(snapshot: Snapshot): string {
    const id = crypto.randomUUID();
    this.#held.set(id, snapshot);
    if (this.#held.size > HISTORY_SNAPSHOTS_MAX) {
      const [oldest] = this.#held.keys();
      if (oldest !== undefined) this.#held.delete(oldest);
    }
    return id;
  }

  /** @throws {@link HistoryError} `invalid-continuation` for one that was released or is of another conversation. */
  resume(continuation: string, address: Address): { id: string; snapshot: Snapshot; place: Place } {
    const [id = "", records, reanchors] = typeof continuation === "string" ? continuation.split(".") : [];
    const snapshot = this.#held.get(id);
    const place = [Number(records), Number(reanchors)] as const;
    if (snapshot?.address !== address || !place.every(isCount)) {
      throw new HistoryError("invalid-continuation", "the continuation was released, or is not of this history; read its first page again");
    }
    // The last used is the last released.
    this.#held.delete(id);
    this.#held.set(id, snapshot);
    return { id, snapshot, place };
  }

  release(continuation: string): void {
    this.#held.delete(String(continuation).split(".", 1)[0] ?? "");
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * One reading of a history. Awaited it is its first page; iterated it is every post of its snapshot, read page by page.
 * What is certified meanwhile does not show: it belongs to the next reading.
 *
 * @example
 * ```ts
 * for await (const post of endpoint.history("agent:bob")) console.log(post.author, post.content);
 *
 * let page = await endpoint.history("agent:bob", { limit: 20 });
 * while (page.next !== undefined) page = await endpoint.history("agent:bob", { continuation: page.next, limit: 20 });
 * ```
 */
export class History implements Promise<HistoryPage>, AsyncIterable<HistoryEntry, undefined> {
  readonly [Symbol.toStringTag] = "History";
  readonly #seat: Seat;
  readonly #snapshots: Snapshots;
  readonly #address: Address;
  readonly #options: HistoryOptions;
  #first: Promise<HistoryPage> | undefined;

  /** Only `Endpoint.history` makes one. */
  constructor(seat: Seat, snapshots: Snapshots, address: Address, options: HistoryOptions) {
    this.#seat = seat;
    this.#snapshots = snapshots;
    this.#address = address;
    this.#options = options;
  }

  then<A = HistoryPage, B = never>(
    onPage?: ((page: HistoryPage) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#first ??= this.#page(this.#options);
    return this.#first.then(onPage, onError);
  }

  catch<B = never>(onError?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<HistoryPage | B> {
    return this.then(undefined, onError);
  }

  finally(onEnd?: (() => void) | null): Promise<HistoryPage> {
    return this.then().finally(onEnd);
  }

  /** Every post of the snapshot. Leaving the loop releases the snapshot; so does its end. */
  async *[Symbol.asyncIterator](): AsyncGenerator<HistoryEntry, undefined, undefined> {
    const { after: _, ...again } = this.#options;
    let page = await this.#page(this.#options);
    const { next: first } = page;
    try {
      for (;;) {
        yield* page.entries;
        if (page.next === undefined) return undefined;
        page = await this.#page({ ...again, continuation: page.next });
      }
    } finally {
      if (first !== undefined && this.#options.continuation === undefined) this.#snapshots.release(first);
    }
  }

  async #page({ after, continuation, limit = HISTORY_PAGE_DEFAULT, signal }: HistoryOptions): Promise<HistoryPage> {
    const address = this.#address;
    if (typeof address !== "string") throw new HistoryError("invalid-address", "an address is a string");
    if (!isCount(limit) || limit < 1 || limit > HISTORY_PAGE_MAX) {
      throw new HistoryError("invalid-options", `\`limit\` is not a whole number from 1 to ${HISTORY_PAGE_MAX}`);
    }
    if (after !== undefined && (continuation !== undefined || (typeof after !== "string" && !isCount(after)))) {
      throw new HistoryError("invalid-options", "`after` is a record hash or a number of posts, without `continuation`");
    }
    const resumed = continuation === undefined ? undefined : this.#snapshots.resume(continuation, address);
    let question: Question =
      resumed !== undefined ? within(resumed.snapshot, resumed.place) : typeof after === "string" ? { after } : { position: after ?? 0 };
    const entries: HistoryEntry[] = [];
    for (;;) {
      const lines = await readLines(this.#seat, address, question, limit - entries.length, signal);
      const { end, head, from, next, descriptor, items } = lines;
      const snapshot = resumed?.snapshot ?? { address, end, head };
      const { members } = readDescriptor(descriptor);
      let [position] = from;
      for (const line of items) {
        const item = JSON.parse(line) as CertifiedRecord | CompletedReanchor;
        if (item.kind === "certified_record") entries.push(entryOf(item, position++, members));
      }
      // Re-anchors after the last post are not worth a page.
      if (next[0] >= end[0]) return { entries, total: end[0], next: undefined };
      if (entries.length >= limit) {
        const id = resumed?.id ?? this.#snapshots.hold(snapshot);
        return { entries, total: end[0], next: this.#snapshots.continuation(id, next) };
      }
      question = following(snapshot, lines);
    }
  }
}

/** Items asked for at a time by an export. The owner of the store may give fewer. */
const EXPORT_PAGE = 200;

/** The file of a whole conversation, in parts that the browser may keep outside of memory. */
export async function exportHistory(seat: Seat, address: Address, signal: AbortSignal | undefined): Promise<Blob> {
  if (typeof address !== "string") throw new HistoryError("invalid-address", "an address is a string");
  const parts: Blob[] = [];
  let question: Question = { position: 0 };
  for (;;) {
    const page = await readLines(seat, address, question, EXPORT_PAGE, signal);
    const { end, head, next, descriptor, items } = page;
    const lines = parts.length === 0 ? [descriptor, ...items] : items;
    parts.push(new Blob(lines.map((line) => `${line}\n`)));
    const snapshot = { address, end, head };
    if (isEnd(snapshot, next)) return new Blob(parts, { type: "application/jsonl" });
    question = following(snapshot, page);
  }
}
