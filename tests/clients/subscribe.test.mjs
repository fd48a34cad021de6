// Subscribe by connect-es, which streams both ways over one HTTP/1.1 request.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure, outgoing } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";

describe("Subscribe by connect-es", () => {
  let deployment;
  let client;
  before(async () => {
    deployment = await Deployment.start();
    client = connect(deployment.url);
  });
  after(() => deployment?.stop());

  const publish = async (group, text) =>
    (await client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] })).envelopeMetas[0];
  const update = (id, adds, removes = []) => ({ case: "update", value: { id, adds, removes } });

  // API-250, API-252, API-253, API-254, API-259
  test("topics come and go, and the stream ends with its client's half", async () => {
    const groups = [envelopes.groupId(), envelopes.groupId()];
    const head = await publish(groups[0], "old");
    const requests = outgoing();
    const frames = client.subscription.subscribe(requests)[Symbol.asyncIterator]();
    const next = async (kind) => {
      const { value } = await frames.next();
      assert.equal(value?.response.case, kind);
      return value.response.value;
    };
    await next("started");
    requests.push(update(1n, groups.map((group) => ({ topic: envelopes.groupTopic(group) }))));
    const { addedTargets } = await next("applied");
    assert.deepEqual(addedTargets.map(({ throughSequenceId }) => throughSequenceId), [head.cursor.sequenceId, 0n]);
    assert.deepEqual((await next("messages")).envelopes.map(envelopes.textOf), ["old"]);
    await publish(groups[1], "new");
    assert.deepEqual((await next("messages")).envelopes.map(envelopes.textOf), ["new"]);
    requests.push(update(2n, [], [envelopes.groupTopic(groups[1])]));
    assert.equal((await next("applied")).id, 2n);
    await publish(groups[1], "unseen");
    await publish(groups[0], "seen");
    assert.deepEqual((await next("messages")).envelopes.map(envelopes.textOf), ["seen"]);
    requests.push({ case: "ping", value: { nonce: 7n } });
    assert.equal((await next("pong")).nonce, 7n);
    requests.end();
    assert.equal((await frames.next()).done, true);
  });

  // API-251
  test("an update that is invalid fails the call with its code", async () => {
    const requests = outgoing();
    requests.push(update(0n, []));
    const error = await failure(async () => {
      for await (const _ of client.subscription.subscribe(requests)) continue;
    });
    assert.equal(error.code, Code.InvalidArgument);
    requests.end();
  });
});
