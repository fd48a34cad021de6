// A page shows a prefix of each topic above its cursor, nothing omitted, at most its limit; and everything that was shown to
// anybody before it was asked for, as far as it reaches (API-201, API-202, API-240).

import { idsBetween } from "./history.mjs";

export function checkPages(history, { firstSeen }) {
  const violations = [];
  for (const { invoked, positions, limit, metas, hasMore } of history.queries) {
    if (metas.length > limit) violations.push(`the page asked for at [${invoked}] exceeds its limit`);
    for (const [topic, after] of positions) {
      const shown = metas.filter((meta) => meta.topic === topic).map(({ id }) => id);
      const last = shown.at(-1) ?? after;
      const held = idsBetween(history, topic, after, last);
      if (shown.join() !== held.join()) {
        violations.push(`the page asked for at [${invoked}] shows ${shown} of ${topic}, which holds ${held}`);
      }
      const reaches = hasMore ? last : 2n ** 63n;
      const missing = idsBetween(history, topic, last, reaches).filter((id) => firstSeen.get(id) < invoked);
      if (missing.length > 0) violations.push(`the page asked for at [${invoked}] misses ${missing}, shown before`);
    }
  }
  return violations;
}
