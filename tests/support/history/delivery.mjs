// A stream delivers every envelope above its cursors once and in order, until it ends (API-254). One that is opened again
// from what it has delivered so goes on without a gap and without repeating anything.

import { idsBetween } from "./history.mjs";

export function checkDelivery(history) {
  const violations = [];
  for (const { positions, frames } of history.streams) {
    for (const [topic, after] of positions) {
      const delivered = frames.flatMap(({ metas }) => metas.filter((meta) => meta.topic === topic).map(({ id }) => id));
      const held = idsBetween(history, topic, after, delivered.at(-1) ?? after);
      if (delivered.join() !== held.join()) {
        violations.push(`a stream of ${topic} above ${after} delivered ${delivered}, and the topic holds ${held}`);
      }
    }
  }
  return violations;
}
