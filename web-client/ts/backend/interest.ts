/** What a subscription reads, and from where. Pure. */
import type { Topic } from "./types.js";

/** One topic of a subscription. */
export interface Registration {
  readonly topic: Topic;
  /** Up to where it has arrived. */
  position: bigint;
  /** Up to where it was taken by the reader. */
  taken: bigint;
  /** The head of the topic when it was registered; `undefined` until it is. */
  target: bigint | undefined;
  /** What the open stream knows: nothing, the update that tells of it, or everything. */
  state: "wanted" | "live" | bigint;
}

/** An update for the open stream. */
export interface Update {
  readonly id: bigint;
  readonly adds: readonly { topic: Topic; after: bigint }[];
  readonly removes: readonly Topic[];
}

/** The topics of a subscription. */
export class Interest {
  readonly #topics = new Map<Topic, Registration>();
  /** Topics that the open stream is still to be told of that they are read no longer. */
  readonly #removed = new Set<Topic>();
  /** Topics that were not taken yet up to where they reached when they were registered. */
  readonly #behind = new Set<Registration>();
  #asked = 0n;
  #applied = 0n;

  get size(): number {
    return this.#topics.size;
  }

  /** Adds a topic. One that is read goes on from where it is. */
  add(topic: Topic, after: bigint): void {
    if (this.#topics.has(topic)) return;
    const registration: Registration = { topic, position: after, taken: after, target: undefined, state: "wanted" };
    this.#topics.set(topic, registration);
    this.#behind.add(registration);
  }

  remove(topic: Topic): void {
    const registration = this.#topics.get(topic);
    if (registration === undefined) return;
    this.#topics.delete(topic);
    this.#behind.delete(registration);
    if (registration.state !== "wanted") this.#removed.add(topic);
  }

  /** Whether a registration is still the one of its topic. */
  holds(registration: Registration): boolean {
    return this.#topics.get(registration.topic) === registration;
  }

  /** Where each topic was taken up to. */
  cursors(): Map<Topic, bigint> {
    return new Map(Array.from(this.#topics.values(), ({ topic, taken }) => [topic, taken]));
  }

  /** Whether every topic was taken up to where it reached when it was registered. */
  get isCaughtUp(): boolean {
    return this.#behind.size === 0;
  }

  /** The reader has taken an envelope. */
  hand(registration: Registration, sequenceId: bigint): void {
    registration.taken = sequenceId;
    this.#judge(registration);
  }

  /** A stream begins that is told once: of everything. */
  whole(): { topic: Topic; after: bigint }[] {
    this.#begin("live");
    return Array.from(this.#topics.values(), ({ topic, position }) => ({ topic, after: position }));
  }

  /** A stream begins that is told by updates. */
  begin(): void {
    this.#begin("wanted");
  }

  /** Whether there is a topic that the open stream knows nothing of. */
  get hasUnread(): boolean {
    return Array.from(this.#topics.values()).some(({ state }) => state === "wanted");
  }

  /**
   * What the open stream is told next, of at most so many topics; nothing while an update is not acknowledged, so that updates
   * stay few.
   */
  nextUpdate(addsMax: number, removesMax: number): Update | undefined {
    if (this.#applied < this.#asked) return undefined;
    const id = this.#asked + 1n;
    const removes = [...this.#removed].slice(0, removesMax);
    const adds: Registration[] = [];
    for (const registration of this.#topics.values()) {
      if (adds.length === addsMax) break;
      // A topic that is read from elsewhere is removed first: an update names it once.
      if (registration.state === "wanted" && !this.#removed.has(registration.topic)) adds.push(registration);
    }
    if (adds.length + removes.length === 0) return undefined;
    for (const topic of removes) this.#removed.delete(topic);
    for (const registration of adds) registration.state = id;
    this.#asked = id;
    return { id, adds: adds.map(({ topic, position }) => ({ topic, after: position })), removes };
  }

  /** The open stream acknowledged an update. What comes before that is of earlier registrations. */
  applied(id: bigint, targets: readonly { topic: Topic; through: bigint }[]): void {
    this.#applied = id;
    for (const registration of this.#topics.values()) {
      if (registration.state === id) registration.state = "live";
    }
    this.aim(targets);
  }

  /** Learns how far topics reach. What has expired since lowers a target and does not raise it. */
  aim(targets: readonly { topic: Topic; through: bigint }[]): void {
    for (const { topic, through } of targets) {
      const registration = this.#topics.get(topic);
      if (registration === undefined || registration.state !== "live") continue;
      if (registration.target === undefined || through < registration.target) registration.target = through;
      this.#judge(registration);
    }
  }

  /** The registration that an envelope is new to, which has then arrived up to it. */
  take(topic: Topic, sequenceId: bigint): Registration | undefined {
    const registration = this.#topics.get(topic);
    if (registration?.state !== "live" || sequenceId <= registration.position) return undefined;
    registration.position = sequenceId;
    return registration;
  }

  #judge(registration: Registration): void {
    const { target, taken } = registration;
    if (target !== undefined && taken >= target) this.#behind.delete(registration);
  }

  #begin(state: "wanted" | "live"): void {
    this.#asked = 0n;
    this.#applied = 0n;
    this.#removed.clear();
    for (const registration of this.#topics.values()) registration.state = state;
  }
}
