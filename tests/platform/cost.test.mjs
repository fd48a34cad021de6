// What is paid for: rows written, those of indexes included, as the runtime counts them.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { request } from "../support/raw.mjs";

const ROWS_AN_ENVELOPE_MAX = 3;

describe("the rows written", () => {
  let deployment;
  let client;
  const written = async () => {
    const answer = await request(deployment.url, "/fail/shard/rows-written", { method: "GET" });
    return Number(answer.body.toString());
  };
  const costOf = async (work) => {
    const before = await written();
    await work();
    return (await written()) - before;
  };

  before(async () => {
    deployment = await Deployment.start({ shards: 1, testBuild: true });
    client = connect(deployment.url);
  });
  after(() => deployment?.stop());

  test("are at most three an envelope, alone, in a batch and at once, and none for a duplicate or a page", async () => {
    const group = envelopes.groupId();
    const publish = (...texts) =>
      client.publish.publish({ envelopes: texts.map((text) => envelopes.groupMessage(group, text)) });
    const texts = (what, count) => Array.from({ length: count }, (_, number) => `${what} ${number}`);
    // The first of a topic makes the topic, and the first of all sets when expired rows are looked for.
    await publish("first");
    const cost = {
      alone: await costOf(() => publish("alone")),
      batch: await costOf(() => publish(...texts("batch", 50))),
      atOnce: await costOf(() => Promise.all(texts("at once", 50).map((text) => publish(text)))),
    };
    for (const [what, envelopesStored] of [["alone", 1], ["batch", 50], ["atOnce", 50]]) {
      assert.ok(cost[what] > 0 && cost[what] <= ROWS_AN_ENVELOPE_MAX * envelopesStored, JSON.stringify(cost));
    }
    assert.equal(await costOf(() => publish("alone")), 0);
    assert.equal(await costOf(() => client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }] })), 0);
  });
});
