// Sequence ids are unique over all topics and rise on each; an envelope is stored once per topic and hash, and its id and
// metadata are the same whenever it is shown (API-201, API-222, API-287, API-288).

import { keyOf } from "./history.mjs";

const words = (meta) => JSON.stringify(meta, (_, value) => (typeof value === "bigint" ? `${value}` : value));

export function checkIds(history, { sightings }) {
  const violations = [];
  for (const [topic, log] of history.logs) {
    const keys = new Set(log.map(keyOf));
    if (keys.size < log.length) violations.push(`${topic} holds an envelope twice`);
    if (log.some(({ id }, at) => at > 0 && id <= log[at - 1].id)) violations.push(`${topic} does not ascend`);
  }
  const [byKey, byId] = [new Map(), new Map()];
  for (const meta of [...sightings.map((sighting) => sighting.meta), ...[...history.logs.values()].flat()]) {
    const [key, text] = [keyOf(meta), words(meta)];
    if ((byKey.get(key) ?? text) !== text) violations.push(`it was ${byKey.get(key)}, and is ${text}`);
    if ((byId.get(meta.id) ?? key) !== key) violations.push(`${meta.id} is both ${byId.get(meta.id)} and ${key}`);
    byKey.set(key, text);
    byId.set(meta.id, key);
  }
  return violations;
}
