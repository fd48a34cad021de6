/** Finding out what became of envelopes whose publish gave no answer (API-224, API-290). */
import { clientEnvelope } from "./tables.js";
import { isKeyPackageTopic, topics } from "./topics.js";
import type { Envelope, Settlement, StoredEnvelope, Topic } from "./types.js";
import { encode, hexOf } from "./wire.js";

/** The reads that this needs. */
export interface Reads {
  /** Every envelope of topics after a sequence id. */
  query(topics: readonly Topic[]): AsyncIterable<StoredEnvelope>;
  /** The newest envelope of each topic. */
  newest(topics: readonly Topic[]): Promise<ReadonlyMap<Topic, StoredEnvelope>>;
}

/** What became of each envelope, by its index. */
export async function settle(envelopes: readonly Envelope[], reads: Reads): Promise<Settlement[]> {
  const wanted = envelopes.map((envelope) => ({ topic: topics.of(envelope), bytes: keyOf(envelope) }));
  const named = [...new Set(wanted.flatMap(({ topic }) => topic ?? []))];
  const stored = new Map<string, StoredEnvelope>();
  const see = (found: StoredEnvelope) => {
    const bytes = found.envelope === undefined ? undefined : keyOf(found.envelope);
    if (bytes !== undefined) stored.set(`${found.meta.topic} ${bytes}`, found);
  };
  for await (const found of reads.query(named.filter((topic) => !isKeyPackageTopic(topic)))) see(found);
  for (const found of (await reads.newest(named.filter(isKeyPackageTopic))).values()) see(found);
  return wanted.map(({ topic, bytes }) => {
    const found = stored.get(`${topic} ${bytes}`);
    if (found !== undefined) return { outcome: "stored", meta: found.meta };
    return { outcome: topic !== undefined && isKeyPackageTopic(topic) ? "unknown" : "not-stored" };
  });
}

/**
 * Equal texts for equal envelopes: the backend's encoding need not be this one, so what it returns is encoded again.
 * `undefined` for one that this release does not know whole.
 */
function keyOf(envelope: Envelope): string | undefined {
  try {
    return hexOf(encode(clientEnvelope, envelope));
  } catch {
    return undefined;
  }
}
