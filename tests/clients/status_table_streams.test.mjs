// The rows of the contract's two tables (section 7) that belong to streams: each condition is provoked, and read by connect-es
// as the code the table names. Those of single calls: status_table.test.mjs, bounds_table.test.mjs. A client that does not read is
// in tests/platform/slow_readers.test.mjs, and a stream whose backend fails in tests/platform/failure.test.mjs.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure, outgoing } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";

const MAX_CURSOR = 9_223_372_036_854_775_807n;

const VARIABLES = {
  CONCLAVE_MAX_UPDATE_ADDS: "3",
  CONCLAVE_MAX_UPDATE_REMOVES: "3",
  CONCLAVE_MAX_STREAM_TOPICS: "4",
  // A burst of three, and then one a second.
  CONCLAVE_MAX_UPDATE_BURST: "3",
  CONCLAVE_MAX_UPDATE_FRAMES_PER_SECOND: "1",
  CONCLAVE_MAX_PING_BURST: "3",
  CONCLAVE_MAX_PING_FRAMES_PER_SECOND: "1",
  CONCLAVE_KEEPALIVE_INTERVAL_MS: "60000",
  CONCLAVE_MAX_PONG_WAIT_MS: "90000",
};

const topics = (count) => Array.from({ length: count }, () => envelopes.groupTopic(envelopes.groupId()));
const adding = (list) => list.map((topic) => ({ topic }));
const update = (id, adds, removes = []) => ({ case: "update", value: { id, adds, removes } });
const ping = (nonce) => ({ case: "ping", value: { nonce } });

describe("the tables, on streams", () => {
  let deployment;
  let client;
  let limits;

  before(async () => {
    deployment = await Deployment.start({ shards: 2, variables: VARIABLES });
    client = connect(deployment.url);
    ({ limits } = await client.configuration.getConfiguration({}));
  });
  after(() => deployment?.stop());

  /** Sends requests, and reads until as many frames of a kind have come or the stream has failed. */
  const exchange = async (sent, kind, count) => {
    const requests = outgoing();
    sent.forEach((request) => requests.push(request));
    const seen = [];
    try {
      for await (const { response } of client.subscription.subscribe(requests)) {
        if (response.case === kind) seen.push(response.value);
        if (seen.length === count) break;
      }
    } finally {
      requests.end();
    }
    return seen;
  };
  const accepts = async (...updates) => assert.equal((await exchange(updates, "applied", updates.length)).length, updates.length);
  const refuses = async (code, ...sent) =>
    assert.equal((await failure(() => exchange(sent, "none", 1))).code, code);

  // API-281
  test("Subscribe Update: adds not more than max_update_adds", async () => {
    await accepts(update(1n, adding(topics(limits.maxUpdateAdds))));
    await refuses(Code.InvalidArgument, update(1n, adding(topics(limits.maxUpdateAdds + 1))));
  });

  // API-281
  test("Subscribe Update: removes not more than max_update_removes", async () => {
    await accepts(update(1n, [], topics(limits.maxUpdateRemoves)));
    await refuses(Code.InvalidArgument, update(1n, [], topics(limits.maxUpdateRemoves + 1)));
  });

  // API-281
  test("Subscribe Update: topics registered after the update not more than max_stream_topics", async () => {
    const [one, ...rest] = topics(limits.maxStreamTopics + 1);
    const first = update(1n, adding(rest.slice(0, 2)));
    await accepts(first, update(2n, adding(rest.slice(2))));
    await refuses(Code.InvalidArgument, first, update(2n, adding([one, ...rest.slice(2)])));
    // What an update removes makes room for what it adds.
    await accepts(first, update(2n, adding([one, ...rest.slice(2)]), [rest[0]]));
  });

  // API-251, API-281
  test("Any request: every Cursor.sequence_id not greater than 9223372036854775807", async () => {
    const [topic] = topics(1);
    await accepts(update(1n, [{ topic, cursor: { sequenceId: MAX_CURSOR } }]));
    await refuses(Code.InvalidArgument, update(1n, [{ topic, cursor: { sequenceId: MAX_CURSOR + 1n } }]));
  });

  // API-258, API-281
  test("RESOURCE_EXHAUSTED: a stream's bucket of Update frames is exhausted", async () => {
    const updates = (count) => Array.from({ length: count }, (_, index) => update(BigInt(index + 1), []));
    await accepts(...updates(limits.maxUpdateBurst));
    await refuses(Code.ResourceExhausted, ...updates(limits.maxUpdateBurst + 2));
  });

  // API-256, API-258, API-281
  test("RESOURCE_EXHAUSTED: a stream's bucket of Ping frames is exhausted", async () => {
    const pings = (count) => Array.from({ length: count }, (_, index) => ping(BigInt(index)));
    const pongs = await exchange(pings(limits.maxPingBurst), "pong", limits.maxPingBurst);
    assert.deepEqual(pongs.map(({ nonce }) => nonce), [0n, 1n, 2n]);
    await refuses(Code.ResourceExhausted, ...pings(limits.maxPingBurst + 2));
  });
});

describe("the tables, on streams of deployments of their own", () => {
  const served = async (variables, use) => {
    const deployment = await Deployment.start({ shards: 1, variables });
    try {
      await use(deployment, connect(deployment.url));
    } finally {
      await deployment.stop();
    }
  };
  const read = async (frames) => {
    for await (const _ of frames) continue;
  };

  // API-257, API-281
  test("DEADLINE_EXCEEDED: a Pong did not arrive", () =>
    served({ CONCLAVE_KEEPALIVE_INTERVAL_MS: "100", CONCLAVE_MAX_PONG_WAIT_MS: "200" }, async (_, client) => {
      const requests = outgoing();
      const error = await failure(() => read(client.subscription.subscribe(requests)));
      requests.end();
      assert.equal(error.code, Code.DeadlineExceeded);
    }));

  // API-281
  test("RESOURCE_EXHAUSTED: a Started or Applied frame would be longer than max_response_bytes", () =>
    served({ CONCLAVE_MAX_ENVELOPE_BYTES: "1", CONCLAVE_MAX_RESPONSE_BYTES: "257" }, async (_, client) => {
      const many = adding(topics(20));
      assert.equal((await failure(() => read(client.subscription.subscribeStatic({ topics: many })))).code, Code.ResourceExhausted);
      const requests = outgoing();
      requests.push(update(1n, many));
      assert.equal((await failure(() => read(client.subscription.subscribe(requests)))).code, Code.ResourceExhausted);
      requests.end();
    }));

  // API-254, API-281
  test("RESOURCE_EXHAUSTED: a stored envelope cannot fit a frame", async () => {
    const state = temporaryFolder();
    const group = envelopes.groupId();
    try {
      let deployment = await Deployment.start({ shards: 1, state: state.path });
      try {
        await connect(deployment.url).publish.publish({ envelopes: [envelopes.groupMessageOf(5000, group)] });
      } finally {
        await deployment.stop();
      }
      const variables = { CONCLAVE_MAX_ENVELOPE_BYTES: "1000", CONCLAVE_MAX_RESPONSE_BYTES: "2000" };
      deployment = await Deployment.start({ shards: 1, state: state.path, variables });
      try {
        const { subscription } = connect(deployment.url);
        const error = await failure(() => read(subscription.subscribeStatic({ topics: adding([envelopes.groupTopic(group)]) })));
        assert.equal(error.code, Code.ResourceExhausted);
      } finally {
        await deployment.stop();
      }
    } finally {
      state.remove();
    }
  });
});
