// Every checker over a history.

import { checkBoundary } from "./boundary.mjs";
import { checkDelivery } from "./delivery.mjs";
import { factsOf } from "./history.mjs";
import { checkIds } from "./ids.mjs";
import { checkKept } from "./kept.mjs";
import { checkOrder } from "./order.mjs";
import { checkPages } from "./pages.mjs";
import { checkWhole } from "./whole.mjs";

const CHECKERS = {
  ids: checkIds,
  kept: checkKept,
  whole: checkWhole,
  order: checkOrder,
  pages: checkPages,
  boundary: checkBoundary,
  delivery: checkDelivery,
};

/** What does not hold, each with the name of its checker. */
export function check(history) {
  const facts = factsOf(history);
  return Object.entries(CHECKERS).flatMap(([name, checker]) => checker(history, facts).map((text) => `${name}: ${text}`));
}
