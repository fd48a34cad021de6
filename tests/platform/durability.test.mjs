// What survives: a runtime that is killed, a deployment that is stopped, a panic, and a configuration that changes.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { until } from "../support/until.mjs";

const publish = async (client, envelope) =>
  (await client.publish.publish({ envelopes: [envelope] })).envelopeMetas[0];
const read = async (client, group) =>
  (await client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }], limit: 1000 })).envelopes;

/** Publishes as API-224 and API-284 say: the same bytes again until there is an answer. */
async function publishUntilAnswered(client, envelope) {
  return until("the publish to be answered", () => publish(client, envelope));
}

async function withDeployment(options, body) {
  const deployment = await Deployment.start(options);
  try {
    await body(deployment, connect(deployment.url));
  } finally {
    await deployment.stop();
  }
}

async function withState(body) {
  const folder = temporaryFolder();
  try {
    await body(folder.path);
  } finally {
    folder.remove();
  }
}

describe("durability", () => {
  for (const shards of [1, 16]) {
    // API-202, API-222, API-224, API-287, API-288, API-289
    test(`a runtime killed under load loses and repeats nothing, over ${shards} shard(s)`, async () => {
      await withState((state) => withDeployment({ state, shards }, async (deployment, client) => {
        const group = envelopes.groupId();
        const answered = new Map();
        const writer = async (number) => {
          for (let round = 0; round < 15; round += 1) {
            const text = `${number}-${round}`;
            answered.set(text, await publishUntilAnswered(client, envelopes.groupMessage(group, text)));
          }
        };
        const writers = Promise.all(Array.from({ length: 4 }, (_, number) => writer(number)));
        for (const share of [10, 30]) {
          await until("some publishes", () => answered.size >= share);
          await deployment.killRuntime();
        }
        await writers;
        const stored = await until("a page", () => read(client, group));
        assert.equal(stored.length, answered.size);
        for (const envelope of stored) {
          assert.deepEqual(envelope.meta, answered.get(envelopes.textOf(envelope)));
        }
        const ids = stored.map(({ meta }) => meta.cursor.sequenceId);
        assert.deepEqual(ids, [...ids].sort((a, b) => (a < b ? -1 : 1)));
        assert.equal(new Set(ids).size, ids.length);
      }));
    });
  }

  // API-288, API-291
  test("a deployment stopped and started again has its envelopes, its instance and its boundary", async () => {
    await withState(async (state) => {
      const group = envelopes.groupId();
      let stored;
      let status;
      await withDeployment({ state }, async (_, client) => {
        stored = await publish(client, envelopes.groupMessage(group, "kept"));
        status = await client.operator.getStatus({});
      });
      await withDeployment({ state }, async (_, client) => {
        const [envelope] = await read(client, group);
        assert.deepEqual(envelope.meta, stored);
        const later = await client.operator.getStatus({});
        assert.equal(later.routerInstanceId, status.routerInstanceId);
        assert.ok(later.closedAllocationBoundary >= status.closedAllocationBoundary);
        const next = await publish(client, envelopes.groupMessage(group, "later"));
        assert.ok(next.cursor.sequenceId > stored.cursor.sequenceId);
      });
    });
  });

  // API-254
  test("a stream cut by a restart and opened again from its cursor skips and repeats nothing", async () => {
    await withState((state) => withDeployment({ state }, async (deployment, client) => {
      const group = envelopes.groupId();
      const received = [];
      let cursor = { sequenceId: 0n };
      let finished = false;
      const reader = (async () => {
        while (!finished) {
          try {
            const topics = [{ topic: envelopes.groupTopic(group), cursor }];
            for await (const { response } of client.subscription.subscribeStatic({ topics })) {
              if (response.case !== "messages") continue;
              for (const envelope of response.value.envelopes) {
                received.push(envelopes.textOf(envelope));
                cursor = envelope.meta.cursor;
              }
              if (received.length === 20) { finished = true; break; }
            }
          } catch (error) {
            if (!("code" in error)) throw error;
          }
        }
      })();
      for (let number = 0; number < 20; number += 1) {
        await publishUntilAnswered(client, envelopes.groupMessage(group, `${number}`));
        if (number === 7) await deployment.killRuntime();
      }
      await reader;
      assert.deepEqual(received, Array.from({ length: 20 }, (_, number) => `${number}`));
    }));
  });

  test("a shard count other than the one at birth is refused with both numbers, in either direction", async () => {
    for (const [born, changed] of [[1, 4], [4, 1]]) {
      await withState(async (state) => {
        const group = envelopes.groupId();
        await withDeployment({ state, shards: born }, (_, client) =>
          publish(client, envelopes.groupMessage(group, "kept")));
        await assert.rejects(Deployment.start({ state, shards: changed }), (error) => {
          assert.match(error.message, new RegExp(`\\b${born}\\b.*shard`));
          assert.match(error.message, new RegExp(`\\b${changed}\\b`));
          return true;
        });
        await withDeployment({ state, shards: born }, async (_, client) => {
          assert.equal((await read(client, group)).length, 1);
        });
      });
    }
  });

  test("a configuration with a bad value serves nothing, and its key is named", async () => {
    const variables = { CONCLAVE_KEEPALIVE_INTERVAL_MS: "soon" };
    await assert.rejects(Deployment.start({ variables }), /CONCLAVE_KEEPALIVE_INTERVAL_MS/);
    await assert.rejects(Deployment.start({ variables: { CONCLAVE_NO_SUCH_KEY: "1" } }), /CONCLAVE_NO_SUCH_KEY/);
  });
});
