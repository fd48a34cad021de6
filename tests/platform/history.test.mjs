// Many clients at once, and a runtime that is killed again and again while they go on: what they saw must add up. Each
// checker of the histories is shown one that it must refuse.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import { check } from "../support/history/check.mjs";
import { History, keyOf } from "../support/history/history.mjs";
import { Workload, randomFrom } from "../support/history/workload.mjs";

const SEED = Number(process.env.CONCLAVE_HISTORY_SEED ?? 1);
const KILLS = Number(process.env.CONCLAVE_HISTORY_KILLS ?? 20);
const SHARDS = 16;

/** Events of the clients between two kills, at most. */
const EVENTS_MAX = 80;

/** What a run that means anything has at least, for each kill. */
const ENOUGH = { publishes: 4, queries: 1, statuses: 0.3, frames: 1 };

describe("a history", () => {
  // API-201, API-202, API-203, API-220, API-222, API-224, API-254, API-284, API-287, API-288, API-289, API-291
  test(`of clients whose runtime is killed ${KILLS} times loses, renumbers, reorders and tears nothing`, async () => {
    const state = temporaryFolder();
    const deployment = await Deployment.start({ state: state.path, shards: SHARDS });
    const history = new History();
    const random = randomFrom(SEED);
    const kill = async () => {
      for (let number = 0; number < KILLS; number += 1) {
        await history.after(1 + Math.floor(random() * EVENTS_MAX));
        await deployment.killRuntime();
      }
      await history.after(EVENTS_MAX);
    };
    try {
      await new Workload(deployment.url, history, SEED).run(kill());
      const seen = {
        publishes: history.publishes.length,
        queries: history.queries.length,
        statuses: history.statuses.length,
        frames: history.streams.flatMap(({ frames }) => frames).length,
      };
      assert.deepEqual(check(history), [], `seed ${SEED}; again with CONCLAVE_HISTORY_SEED=${SEED}`);
      for (const [what, least] of Object.entries(ENOUGH)) {
        assert.ok(seen[what] >= least * KILLS, `too little happened: ${JSON.stringify(seen)}`);
      }
    } catch (error) {
      error.message += `\n(seed ${SEED})\n${deployment.log.slice(-2_000)}`;
      throw error;
    } finally {
      await deployment.stop();
      state.remove();
    }
  });

  const meta = (id, hash = `${id}`, topic = "a") =>
    ({ id: BigInt(id), topic, hash, serverNs: 1n, expiryNs: 0n, isCommitOrProposal: false });
  const published = (metas, invoked, returned) =>
    ({ keys: metas.map(keyOf), attempts: [{ invoked, returned, metas }] });

  /** Two envelopes on one topic and one on another, published, paged, streamed, and a boundary. */
  const sound = () => {
    const history = new History();
    const [one, two, other] = [meta(1), meta(2), meta(3, "3", "b")];
    history.publishes.push(published([one], 1, 2), published([two, other], 3, 4));
    history.statuses.push({ invoked: 5, returned: 6, boundary: 3n, lastAllocated: 3n });
    history.queries.push({
      invoked: 7, returned: 8, positions: [["a", 0n], ["b", 0n]], limit: 9, metas: [one, two, other], hasMore: false,
    });
    history.streams.push({ positions: [["a", 0n]], frames: [{ moment: 9, metas: [one, two] }] });
    history.logs.set("a", [one, two]).set("b", [other]);
    return history;
  };

  test("that is sound is accepted", () => {
    assert.deepEqual(check(sound()), []);
  });

  const broken = {
    "ids: one topic holds an envelope twice": (history) => history.logs.get("a").push(meta(9, "1")),
    "ids: a topic does not ascend": (history) => history.logs.get("a").reverse(),
    "ids: metadata changes": (history) => { history.queries[0].metas[0] = { ...meta(1), serverNs: 7n }; },
    "ids: an envelope is renumbered": (history) => { history.streams[0].frames[0].metas[1] = meta(4, "2"); },
    "ids: two topics share an id": (history) => { history.logs.set("b", [meta(2, "3", "b")]); },
    "kept: an acknowledged envelope is gone": (history) => history.logs.get("a").shift(),
    "kept: an answer is for another envelope": (history) => { history.publishes[0].attempts[0].metas = [meta(2)]; },
    "whole: half of a publish is stored": (history) => history.logs.set("b", []),
    "whole: a publish is stored at two times": (history) => { history.logs.get("b")[0] = { ...meta(3, "3", "b"), serverNs: 2n }; },
    "order: a later publish has a lower id": (history) => {
      history.publishes.push(published([meta(0, "0", "c")], 20, 21));
      history.logs.set("c", [meta(0, "0", "c")]);
    },
    "order: nobody sent what is stored": (history) => history.logs.set("c", [meta(5, "5", "c")]),
    "pages: a page omits an envelope in its middle": (history) => history.queries[0].metas.shift(),
    "pages: a page ends before what was shown": (history) => history.queries[0].metas.pop(),
    "pages: a page exceeds its limit": (history) => { history.queries[0].limit = 2; },
    "boundary: it falls": (history) =>
      history.statuses.push({ invoked: 10, returned: 11, boundary: 2n, lastAllocated: 3n }),
    "boundary: it is above the last id": (history) => { history.statuses[0].lastAllocated = 2n; },
    "boundary: something appears below it": (history) => { history.statuses[0].returned = 2; },
    "boundary: a page hides what lies below it": (history) => history.queries[0].metas.pop(),
    "delivery: a stream skips an envelope": (history) => history.streams[0].frames[0].metas.shift(),
    "delivery: a stream repeats an envelope": (history) => history.streams[0].frames.push({ moment: 10, metas: [meta(2)] }),
    "delivery: a stream is out of order": (history) => history.streams[0].frames[0].metas.reverse(),
  };
  for (const [what, breaks] of Object.entries(broken)) {
    test(`that is broken is refused: ${what}`, () => {
      const history = sound();
      breaks(history);
      const [checker] = what.split(":");
      assert.ok(check(history).some((violation) => violation.startsWith(`${checker}:`)), `${check(history)}`);
    });
  }
});
