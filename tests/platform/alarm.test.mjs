// What objects do on their own account: alarms survive a killed runtime and go off without a request. The test looks at the
// disk, because a request would wake the very objects that are to wake by themselves.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import { changeOnDisk, countOnDisk } from "../support/disk.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { until } from "../support/until.mjs";

const UNFINISHED = "SELECT (SELECT count(*) FROM decision) + (SELECT count(*) FROM prepared)";
const WRITERS = 8;
const WELCOMES = 4;
const KILLS_MAX = 20;

async function withState(body) {
  const folder = temporaryFolder();
  try {
    await body(folder.path);
  } finally {
    folder.remove();
  }
}

describe("alarms", () => {
  // API-220, API-224
  test("finish what a killed runtime left of publishes across shards, without another request", () =>
    withState(async (state) => {
      const deployment = await Deployment.start({ state, shards: 16 });
      try {
        const client = connect(deployment.url);
        const cut = [];
        let isKilled = false;
        const publishUntilKilled = async () => {
          while (!isKilled) {
            const group = envelopes.groupId();
            const keys = Array.from({ length: WELCOMES }, envelopes.installationKey);
            const list = [envelopes.commit(group, "commit"), ...keys.map((key) => envelopes.welcome(key, "welcome"))];
            const topics = [envelopes.groupTopic(group), ...keys.map(envelopes.welcomeTopic)];
            try {
              await client.publish.publish({ envelopes: list });
            } catch {
              cut.push({ list, topics });
              return;
            }
          }
        };
        let left = 0;
        for (let kills = 0; left === 0 && kills < KILLS_MAX; kills += 1) {
          isKilled = false;
          const writers = Array.from({ length: WRITERS }, publishUntilKilled);
          await until("publishes under way", () => countOnDisk(state, UNFINISHED) > 0);
          const killed = deployment.killRuntime();
          left = countOnDisk(state, UNFINISHED);
          await killed;
          // One that was between two publishes is not cut off: its next one waits at the port for the next runtime.
          isKilled = true;
          await Promise.all(writers);
        }
        assert.ok(left > 0, "no kill left anything unfinished");
        await until("the alarms to finish it", () => countOnDisk(state, UNFINISHED) === 0);
        for (const { list, topics } of cut) {
          const page = () => client.query.query({ queries: topics.map((topic) => ({ topic })), limit: 1000 });
          const { length } = (await page()).envelopes;
          assert.ok(length === 0 || length === list.length, `${length} of ${list.length} are stored`);
          const { envelopeMetas } = await client.publish.publish({ envelopes: list });
          const ids = (await page()).envelopes.map(({ meta }) => meta.cursor.sequenceId);
          assert.deepEqual(ids.toSorted(), envelopeMetas.map(({ cursor }) => cursor.sequenceId).toSorted());
        }
      } finally {
        await deployment.stop();
      }
    }));

  test("delete what has expired, and neither commits nor the newest of a topic", () =>
    withState(async (state) => {
      const group = envelopes.groupId();
      const during = async (body) => {
        const deployment = await Deployment.start({ state, shards: 1 });
        try {
          return await body(connect(deployment.url));
        } finally {
          await deployment.stop();
        }
      };
      const texts = ["old", "older than any", "newest"];
      await during((client) => client.publish.publish({
        envelopes: [envelopes.commit(group, "commit"), ...texts.map((text) => envelopes.groupMessage(group, text))],
      }));
      // A hundred days pass.
      changeOnDisk(state, `UPDATE envelope SET expiry_ns = x'0000000000000001' WHERE expiry_ns != zeroblob(8);
        UPDATE retention SET due_ms = 1;`);
      assert.equal(countOnDisk(state, "SELECT count(*) FROM envelope"), 4);
      await during(async (client) => {
        const queries = [{ topic: envelopes.groupTopic(group) }];
        // Any call wakes the shard, which finds that it is time and sets its alarm.
        await client.query.query({ queries });
        await until("the alarm to delete it", () => countOnDisk(state, "SELECT count(*) FROM envelope") === 2);
        assert.deepEqual((await client.query.query({ queries })).envelopes.map(envelopes.textOf), ["commit", "newest"]);
      });
    }));
});
