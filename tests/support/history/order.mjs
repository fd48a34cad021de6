// Order in real time, API-289: an envelope that was first sent after another one was shown to anybody has the greater id,
// whatever their topics.

export function checkOrder(_, { sightings, firstSent, stored }) {
  const violations = [];
  // The greatest id shown so far, at each moment at which a greater one was.
  const risen = [];
  for (const { moment, meta } of sightings) {
    if (risen.length === 0 || risen.at(-1).id < meta.id) risen.push({ moment, id: meta.id });
  }
  for (const [key, { id }] of stored) {
    const sent = firstSent.get(key);
    if (sent === undefined) {
      violations.push(`${id} is stored, and nobody sent it`);
      continue;
    }
    const before = risen.findLast(({ moment }) => moment < sent);
    if (before && before.id > id) {
      violations.push(`${id} was first sent at [${sent}], after ${before.id} was shown at [${before.moment}]`);
    }
  }
  return violations;
}
