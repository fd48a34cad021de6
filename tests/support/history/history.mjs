// What clients did and saw, on one clock: each moment is a number that no other event has. Checkers read it and nothing of
// the deployment.

const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** What a checker needs of an EnvelopeMeta. */
export function plainMeta(meta) {
  return {
    id: meta.cursor.sequenceId,
    topic: hex(meta.topic.topic),
    hash: hex(meta.messageHash.hash.value),
    serverNs: meta.serverNs,
    expiryNs: meta.expiryNs,
    isCommitOrProposal: meta.isCommitOrProposal,
  };
}

/** What makes an envelope the same one: its topic and its hash. */
export function keyOf({ topic, hash }) {
  return `${topic}/${hash}`;
}

export class History {
  #moment = 0;
  #alarms = [];

  /** `{ keys, attempts: [{ invoked, returned?, metas? }] }`: the same bytes, sent as often as there are attempts. */
  publishes = [];
  /** `{ invoked, returned, positions: [[topic, after]], limit, metas, hasMore }`, those that were answered. */
  queries = [];
  /** `{ positions: [[topic, after]], frames: [{ moment, metas }] }`, one a connection. */
  streams = [];
  /** `{ invoked, returned, boundary?, lastAllocated }` */
  statuses = [];
  /** Topic to the metas it holds in the end. */
  logs = new Map();

  /** The next moment. */
  tick() {
    this.#moment += 1;
    while (this.#alarms[0]?.at <= this.#moment) this.#alarms.shift().ring();
    return this.#moment;
  }

  /** Resolves `events` events from now. */
  after(events) {
    return new Promise((ring) => {
      this.#alarms.push({ at: this.#moment + events, ring });
      this.#alarms.sort((one, other) => one.at - other.at);
    });
  }
}

/** What follows directly from a history, gathered once for all checkers. */
export function factsOf(history) {
  const { publishes, queries, streams, logs } = history;
  const sightings = [
    ...publishes.flatMap(({ attempts }) => attempts).filter(({ metas }) => metas),
    ...queries,
    ...streams.flatMap(({ frames }) => frames),
  ].flatMap(({ returned, moment, metas }) => metas.map((meta) => ({ moment: returned ?? moment, meta })));
  sightings.sort((one, other) => one.moment - other.moment);
  const firstSeen = new Map();
  for (const { moment, meta } of sightings) if (!firstSeen.has(meta.id)) firstSeen.set(meta.id, moment);
  const firstSent = new Map();
  const carriers = new Map();
  for (const { keys, attempts } of publishes) {
    for (const key of new Set(keys)) {
      carriers.set(key, (carriers.get(key) ?? 0) + 1);
      for (const { invoked } of attempts) firstSent.set(key, Math.min(invoked, firstSent.get(key) ?? invoked));
    }
  }
  const stored = new Map([...logs.values()].flat().map((meta) => [keyOf(meta), meta]));
  return { sightings, firstSeen, firstSent, carriers, stored };
}

/** The ids of a topic above one and up to another. */
export function idsBetween(history, topic, after, through) {
  return (history.logs.get(topic) ?? []).map(({ id }) => id).filter((id) => id > after && id <= through);
}
