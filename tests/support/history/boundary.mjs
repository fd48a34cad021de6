// The closed boundary never falls and is never above the last id; nothing that was first sent after it was told lies at or
// below it, and a page asked for after it was told misses nothing there (API-203, API-291).

import { idsBetween } from "./history.mjs";

export function checkBoundary(history, { firstSent, stored }) {
  const violations = [];
  const told = history.statuses.filter(({ boundary }) => boundary !== undefined);
  told.sort((one, other) => one.returned - other.returned);
  for (const { returned, boundary, lastAllocated } of told) {
    if (boundary > lastAllocated) violations.push(`the boundary ${boundary} is above the last id`);
    for (const later of told) {
      if (later.invoked > returned && later.boundary < boundary) {
        violations.push(`the boundary fell from ${boundary} at [${returned}] to ${later.boundary}`);
      }
    }
    for (const [key, { id }] of stored) {
      if (id <= boundary && firstSent.get(key) > returned) {
        violations.push(`${id} was first sent after the boundary ${boundary} was told at [${returned}]`);
      }
    }
    for (const page of history.queries.filter(({ invoked }) => invoked > returned)) {
      for (const [topic, after] of page.positions) {
        const shown = new Set(page.metas.filter((meta) => meta.topic === topic).map(({ id }) => id));
        const last = [...shown].at(-1) ?? after;
        const reaches = page.hasMore && last < boundary ? last : boundary;
        const hidden = idsBetween(history, topic, after, reaches).filter((id) => !shown.has(id));
        if (hidden.length > 0) violations.push(`a page asked for at [${page.invoked}] hides ${hidden} below ${boundary}`);
      }
    }
  }
  return violations;
}
