// A publish is stored as a whole, at one time, or not at all; one that succeeded is stored (API-212, API-220). Envelopes
// that several publishes carry say nothing of one of them.

export function checkWhole(history, { carriers, stored }) {
  const violations = [];
  for (const { keys, attempts } of history.publishes) {
    const [{ invoked }] = attempts;
    const all = keys.filter((key) => stored.has(key)).length;
    const own = keys.filter((key) => carriers.get(key) === 1 && stored.has(key));
    if (all < keys.length && (own.length > 0 || attempts.some(({ metas }) => metas))) {
      violations.push(`the publish sent at [${invoked}] is stored in part, ${all} of ${keys.length}`);
    }
    const times = new Set(own.map((key) => stored.get(key).serverNs));
    if (times.size > 1) violations.push(`the publish sent at [${invoked}] was stored at ${times.size} times`);
  }
  return violations;
}
