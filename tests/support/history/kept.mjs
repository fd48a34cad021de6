// What was acknowledged, or shown to anybody, is stored for good (API-202, API-288); a success answers for each of its
// envelopes, in order (API-221).

import { keyOf } from "./history.mjs";

export function checkKept(history, { sightings, stored }) {
  const violations = [];
  for (const { moment, meta } of sightings) {
    if (!stored.has(keyOf(meta))) violations.push(`${meta.id} was shown at [${moment}] and is gone`);
  }
  for (const { keys, attempts } of history.publishes) {
    for (const { metas, returned } of attempts) {
      if (metas && metas.map(keyOf).join() !== keys.join()) {
        violations.push(`the publish answered at [${returned}] was answered for other envelopes`);
      }
    }
  }
  return violations;
}
