/**
 * This tab's seat at the endpoint of a store: as its owner, or at the line to the tab that is.
 *
 * Whoever holds the store's lock is the owner. Every tab queues for it, so that the browser itself names the next one as soon
 * as the owner is gone, however it went. A tab that has lost its line asks again at the next owner what was not answered:
 * posts carry their id, acknowledgments may be repeated, and what the subscription gave out is not given out twice.
 */
import { abortable } from "../abort.js";
import { type ConclaveError, fromCore, ListenError, OpenError, StoreError } from "../errors.js";
import type { RoleEvent } from "../events.js";
import type { LocalSeat, Running, Seat, Subscription } from "../seat.js";
import { Desk } from "./desk.js";
import type { Hosted } from "./host.js";
import { Ended, Line, LOST } from "./line.js";
import { hold, locked, lockOf, settled } from "./lock.js";
import { type OwnerState, parse, sealed, type TabMessage, TABS_MAX } from "./protocol.js";
import { TabSubscription } from "./subscription.js";

/** How long a tab waits for any word of the owner that holds the store. */
const OWNER_WAIT_MS = 10_000;

/** How long a tab that will not attach waits for the store: a page that reloads finds its predecessor still letting go. */
const LOCK_WAIT_MS = 1500;

/** How a seat is taken. */
export interface Place {
  /** The store's name. */
  readonly store: string;
  /** What all tabs of the store must agree on. */
  readonly terms: Terms;
  /** Whether other tabs may attach to this one, and this one to others. */
  readonly isShared: boolean;
  /** Runs the endpoint in this context: the store's lock is held. */
  readonly run: (signal: AbortSignal) => Promise<LocalSeat>;
  /** Has a worker queue for the store first; this context is behind it, for when the worker dies. */
  readonly host?: ((signal: AbortSignal) => Promise<Hosted>) | undefined;
}

/** What all tabs of a store must agree on. */
export interface Terms {
  readonly url: string;
  readonly name: string;
  /** The thumbprint URI of the Registry's key, where it was given. */
  readonly registryKey?: string | undefined;
}

/** What there is while this tab is the owner. */
interface Office {
  readonly running: Running;
  readonly desk: Desk;
  /** The endpoint can not even be closed: it has ended all the same. */
  readonly giveUp: (reason: unknown) => void;
}

/** A line that will be there, until the seat has ended. */
class Pledge {
  resolve: (line: Line) => void = () => undefined;
  reject: (reason: unknown) => void = () => undefined;
  readonly line = new Promise<Line>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  constructor() {
    // Nobody may be waiting when the seat ends.
    this.line.catch(() => undefined);
  }
}

export class TabSeat implements Seat {
  readonly closed: Promise<ConclaveError | undefined>;
  #settleClosed: (failure: ConclaveError | undefined) => void = () => undefined;
  #ended: Ended | undefined;
  readonly #place: Place;
  readonly #channel: BroadcastChannel;
  #line: Line | undefined;
  #pledge = new Pledge();
  /** Ends this tab's presence: its queueing, its attachment, its opening. */
  #presence = new AbortController();
  /** Settles when nothing of the presence is left. */
  #left: Promise<unknown> = Promise.resolve();
  /** Names this tab's time of ownership, while it holds the store's lock. */
  #epoch: string | undefined;
  #office: Office | undefined;
  /** The tabs at the desk, each with how to let it go. */
  readonly #attached = new Map<string, () => void>();
  /** The listeners, each with how to end its watch at the line. */
  readonly #watches = new Map<(events: string) => void, () => void>();
  #role: RoleEvent["role"] = "waiting";
  #subscription: TabSubscription | undefined;
  /** Looks for the owner. */
  #greet: () => void = () => undefined;
  /** The owner was heard of. */
  #hear: () => void = () => undefined;

  private constructor(place: Place) {
    this.#place = place;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
    this.#channel = new BroadcastChannel(lockOf(place.store));
    this.#channel.onmessage = ({ data }) => this.#take(parse(data));
  }

  /**
   * Takes a seat. When `signal` aborts it rejects with the signal's reason, and has let go of everything.
   *
   * @throws {@link OpenError} or {@link StoreError}.
   */
  static async open(place: Place, signal: AbortSignal | undefined): Promise<TabSeat> {
    const seat = new TabSeat(place);
    seat.#enter();
    try {
      await abortable(seat.#pledge.line, signal);
    } catch (thrown) {
      await seat.close();
      throw thrown instanceof Ended ? thrown.failure : thrown;
    }
    for (const event of PRESENCE_EVENTS) addEventListener(event, seat, true);
    return seat;
  }

  async request(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string> {
    let isAsked = false;
    for (;;) {
      try {
        const line = await abortable(this.#pledge.line, signal);
        isAsked = true;
        const json = await line.request(operation, argumentsJson, signal);
        if (operation === "acknowledge") this.#subscription?.forget(argumentsJson);
        return json;
      } catch (thrown) {
        if (thrown instanceof Ended) throw closedFailure(operation, isAsked, thrown.failure);
        if (thrown !== LOST) throw thrown;
      }
    }
  }

  subscribe(): Subscription {
    if (this.#subscription !== undefined) {
      throw new ListenError("already-listening", "messages are already being read: an endpoint has one subscriber");
    }
    const subscription = new TabSubscription(
      () => this.#pledge.line,
      () => {
        if (this.#subscription === subscription) this.#subscription = undefined;
      },
    );
    this.#subscription = subscription;
    return subscription;
  }

  watch(listener: (events: string) => void): () => void {
    listener(roleEvent(this.#role));
    this.#watches.set(listener, this.#line?.watch(listener) ?? nothing);
    return () => {
      this.#watches.get(listener)?.();
      this.#watches.delete(listener);
    };
  }

  async close(): Promise<void> {
    try {
      await this.#leave();
    } finally {
      this.#end(undefined);
    }
  }

  /** A page that may be frozen lets go of the store, and comes back when it goes on. */
  handleEvent(event: Event): void {
    const { type } = event;
    if (type === "pageshow" || type === "resume") {
      if (this.#presence.signal.aborted && this.#ended === undefined) this.#enter();
    } else {
      this.#lose();
      // An endpoint that cannot be closed has said so to whoever waits for its end.
      this.#leave().catch(nothing);
    }
  }

  #enter(): void {
    const { signal } = (this.#presence = new AbortController());
    const fail = (failure: unknown): void => {
      if (!signal.aborted) this.#end(failure as ConclaveError);
    };
    this.#left = this.#left.then(() =>
      Promise.all([this.#attach(signal).catch(fail), this.#compete(signal).catch(fail)]),
    );
  }

  /** Leaves the store and its owner; resolves when the store is free of this tab. */
  async #leave(): Promise<void> {
    this.#presence.abort();
    const office = this.#office;
    if (office === undefined) return void (await this.#left);
    this.#retire();
    try {
      await office.running.close();
    } catch (thrown) {
      office.giveUp(thrown);
      throw thrown;
    } finally {
      await this.#left;
    }
  }

  /** Becomes findable for the owner, and looks for it. */
  async #attach(signal: AbortSignal): Promise<void> {
    const { store, isShared, host } = this.#place;
    const tab = crypto.randomUUID();
    const name = lineOf(store, tab);
    // Before the owner hears of the tab: it takes this lock for the sign that the tab is gone.
    const release = await hold(name, signal);
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => this.#takeFromOwner(channel, parse(data));
    // A worker waits itself: until it is there nobody may own the store.
    const late = (): void => this.#end(locked());
    const wait = host === undefined ? setTimeout(late, isShared ? OWNER_WAIT_MS : LOCK_WAIT_MS) : undefined;
    this.#hear = () => clearTimeout(wait);
    this.#greet = () => {
      if (isShared) this.#channel.postMessage(sealed({ kind: "hello", tab }));
    };
    this.#greet();
    await aborted(signal);
    this.#greet = nothing;
    this.#hear();
    if (this.#line !== undefined && this.#epoch === undefined) {
      channel.postMessage(sealed({ kind: "bye", epoch: this.#line.epoch }));
      this.#lose();
    }
    channel.close();
    release();
  }

  /** Queues for the store, and runs the endpoint whenever it has it. */
  async #compete(signal: AbortSignal): Promise<void> {
    const hosted = await this.#place.host?.(signal);
    const held = hold(lockOf(this.#place.store), signal);
    try {
      await (hosted === undefined ? held : Promise.race([held, hosted.failed]));
    } catch (thrown) {
      held.then((release) => release(), nothing);
      await hosted?.close();
      throw thrown;
    }
    // The worker is gone, if there was one: it queued first.
    void hosted?.close();
    const release = await held;
    try {
      await this.#own(signal);
    } finally {
      this.#epoch = undefined;
      this.#lose();
      release();
    }
  }

  async #own(signal: AbortSignal): Promise<void> {
    const epoch = crypto.randomUUID();
    this.#hear();
    this.#lose();
    this.#epoch = epoch;
    this.#announce("opening");
    const running = await this.#place.run(signal);
    // Asked to leave before there was anything to close.
    if (signal.aborted) return running.close();
    const desk = new Desk(running, epoch, settled);
    let giveUp: (reason: unknown) => void = nothing;
    const givenUp = new Promise<never>((_, reject) => {
      giveUp = reject;
    });
    this.#office = { running, desk, giveUp };
    const own = desk.attend((message) => line.take(message));
    const line = new Line(epoch, own.take);
    this.#connect(line);
    this.#announce("open");
    // Only the endpoint knows of a send whether the post is recorded, and it says so last.
    const ended = running.closed.then(async (failure) => {
      this.#retire();
      await running.answered();
      return failure;
    });
    const failure = await Promise.race([ended, givenUp]);
    if (!signal.aborted || failure !== undefined) this.#end(failure);
  }

  /** Tells the tabs at the desk that the next owner is theirs. */
  #retire(): void {
    this.#office = undefined;
    for (const release of [...this.#attached.values()]) release();
    this.#announce("leaving");
  }

  #end(failure: ConclaveError | undefined): void {
    if (this.#ended !== undefined) return;
    this.#ended = new Ended(failure);
    this.#presence.abort();
    this.#channel.close();
    this.#lose();
    this.#pledge.reject(this.#ended);
    // Node has no such function: an opening there ends before it has listened.
    for (const event of PRESENCE_EVENTS) globalThis.removeEventListener?.(event, this, true);
    this.#settleClosed(failure);
  }

  #announce(state: OwnerState): void {
    if (this.#epoch !== undefined && this.#ended === undefined) this.#channel.postMessage(sealed({ kind: "owner", epoch: this.#epoch, state }));
  }

  #connect(line: Line): void {
    this.#lose();
    this.#line = line;
    this.#pledge.resolve(line);
    this.#takeRole(this.#epoch === undefined ? "attached" : "owner");
    for (const listener of this.#watches.keys()) this.#watches.set(listener, line.watch(listener));
  }

  #lose(): void {
    const line = this.#line;
    if (line === undefined) return;
    this.#line = undefined;
    this.#pledge = new Pledge();
    line.lose();
    this.#takeRole("waiting");
  }

  #takeRole(role: RoleEvent["role"]): void {
    this.#role = role;
    for (const listener of this.#watches.keys()) listener(roleEvent(role));
  }

  /** What is said on the store's channel. */
  #take(message: TabMessage | "foreign" | undefined): void {
    if (message === "foreign") {
      if (this.#epoch === undefined) this.#end(incompatible());
    } else if (message?.kind === "hello") {
      if (this.#office !== undefined) this.#receive(message.tab, this.#office.desk);
      else this.#announce("opening");
    } else if (message?.kind === "owner" && this.#epoch === undefined && this.#place.isShared) {
      this.#hear();
      const isLeaving = message.state === "leaving";
      if (this.#line !== undefined && (this.#line.epoch === message.epoch) === isLeaving) this.#lose();
      if (message.state === "open" && this.#line === undefined) this.#greet();
    }
  }

  /** What the owner says on this tab's line. */
  #takeFromOwner(channel: BroadcastChannel, message: TabMessage | "foreign" | undefined): void {
    if (this.#epoch !== undefined || message === undefined) return;
    if (message === "foreign") return this.#end(incompatible());
    if (message.kind !== "welcome") {
      if ("epoch" in message && message.epoch === this.#line?.epoch) this.#line.take(message);
      return;
    }
    this.#hear();
    const refusal = this.#judge(message.terms);
    if (refusal !== undefined) return this.#end(refusal);
    this.#connect(new Line(message.epoch, (said) => channel.postMessage(sealed(said))));
  }

  /** Why this tab may not attach to an owner on these terms. */
  #judge(terms: string): ConclaveError | undefined {
    if (terms === "") return locked();
    if (terms === CROWDED) return locked(`the tab that owns this agent's store serves ${TABS_MAX} others, as many as it can`);
    let theirs: Partial<Terms> | null;
    try {
      theirs = JSON.parse(terms) as Partial<Terms> | null;
    } catch {
      return incompatible();
    }
    const { url, name, registryKey } = this.#place.terms;
    if (theirs?.url === url && theirs.name === name && (registryKey ?? theirs.registryKey) === theirs.registryKey) return undefined;
    return new OpenError("options-differ", "another tab has this store open for another deployment, name or Registry key");
  }

  /** A tab comes to this owner. */
  #receive(tab: string, desk: Desk): void {
    this.#attached.get(tab)?.();
    const epoch = this.#epoch;
    if (epoch === undefined) return;
    const { store, terms, isShared } = this.#place;
    const name = lineOf(store, tab);
    const channel = new BroadcastChannel(name);
    if (this.#attached.size >= TABS_MAX) {
      channel.postMessage(sealed({ kind: "welcome", epoch, terms: CROWDED }));
      return channel.close();
    }
    const attendance = desk.attend((message) => channel.postMessage(sealed(message)));
    const gone = new AbortController();
    const release = (): void => {
      this.#attached.delete(tab);
      gone.abort();
      attendance.leave();
      channel.close();
    };
    this.#attached.set(tab, release);
    channel.onmessage = ({ data }) => {
      const message = parse(data);
      if (typeof message !== "object" || !("epoch" in message) || message.epoch !== epoch) return;
      if (message.kind === "bye") release();
      else attendance.take(message);
    };
    hold(name, gone.signal).then((letGo) => (letGo(), release()), nothing);
    channel.postMessage(sealed({ kind: "welcome", epoch, terms: isShared ? JSON.stringify(terms) : "" }));
  }
}

/** When a page may stop to run, and when it goes on. A page that is unloaded leaves in the same way. */
const PRESENCE_EVENTS = ["pagehide", "freeze", "pageshow", "resume"] as const;

/** In place of the terms where an owner serves as many tabs as it can. */
const CROWDED = "crowded";

/** A tab's lock and its line to the owner. */
const lineOf = (store: string, tab: string): string => `conclave-tab/${store}/${tab}`;

function nothing(): void {}

function roleEvent(role: RoleEvent["role"]): string {
  return JSON.stringify([{ kind: "role", role }]);
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve);
  });
}

function incompatible(): OpenError {
  return new OpenError("incompatible-owner", "the tab that owns this store runs another release; reload the tabs of the older one");
}

/** What a request hears of an endpoint that is closed. What became of a send that another tab was asked for is not known here. */
function closedFailure(operation: string, isAsked: boolean, cause: ConclaveError | undefined): unknown {
  const [kind, code] =
    operation === "send" ? ["send", isAsked ? "delivery-pending" : "closed"]
    : operation === "acknowledge" ? ["acknowledge", "persistence-failed"]
    : ["history", "persistence-failed"];
  const message = code === "delivery-pending" ? "the endpoint closed before it answered: if the post is recorded, it is still sent" : "the endpoint is closed";
  return fromCore({ operation: kind, code, message, retryable: false, cause });
}
