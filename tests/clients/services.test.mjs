// The services beside publish and query: configuration, health, router, operator, and what is not served yet.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";

describe("the other services", () => {
  let deployment;
  let client;

  before(async () => {
    deployment = await Deployment.start({ variables: { CONCLAVE_IDENTIFIER: "a-deployment-under-test" } });
    client = connect(deployment.url);
  });
  after(() => deployment?.stop());

  // API-210
  test("the configuration publishes the identifier and every limit that is enforced", async () => {
    const configuration = await client.configuration.getConfiguration({});
    assert.equal(configuration.identifier, "a-deployment-under-test");
    assert.equal(configuration.auth.enabled, false);
    assert.equal(configuration.retention.groupMessageSeconds, 7_776_000n);
    const { $typeName: _, ...limits } = configuration.limits;
    assert.equal(Object.keys(limits).length, 20);
    for (const [name, value] of Object.entries(limits)) assert.ok(value > 0, name);
    assert.ok(configuration.handles.minNameLength > 0);
  });

  test("health names every service as serving, and an unknown one is not found", async () => {
    const SERVING = 1;
    assert.equal((await client.health.check({})).status, SERVING);
    assert.equal((await client.health.check({ service: "xmtp.backend.v1.PublishService" })).status, SERVING);
    assert.equal((await failure(() => client.health.check({ service: "no.such.Service" }))).code, Code.NotFound);
    const { statuses } = await client.health.list({});
    assert.equal(statuses["xmtp.backend.v1.QueryService"].status, SERVING);
    const controller = new AbortController();
    for await (const { status } of client.health.watch({}, { signal: controller.signal })) {
      assert.equal(status, SERVING);
      break;
    }
    controller.abort();
  });

  test("the router names its instance, and the same one stands in the operator's status and in headers", async () => {
    const { routerInstanceId } = await client.router.getInstance({});
    assert.match(routerInstanceId, /^rti_[A-Za-z0-9_-]{22}$/);
    const status = await client.operator.getStatus({});
    assert.equal(status.routerInstanceId, routerInstanceId);
    assert.equal(status.shardCount, 16);
    let named;
    const group = envelopes.groupId();
    await client.publish.publish(
      { envelopes: [envelopes.groupMessage(group, "hello")] },
      { onHeader: (headers) => { named = headers.get("conclave-router-instance"); } },
    );
    assert.equal(named, routerInstanceId);
  });

  // API-203, API-291
  test("the closed boundary reaches the newest envelope and never falls", async () => {
    const group = envelopes.groupId();
    const { envelopeMetas } = await client.publish.publish({ envelopes: [envelopes.groupMessage(group, "hello")] });
    const first = await client.operator.getStatus({});
    assert.ok(first.closedAllocationBoundary >= envelopeMetas[0].cursor.sequenceId);
    await client.publish.publish({ envelopes: [envelopes.groupMessage(group, "again")] });
    const second = await client.operator.getStatus({});
    assert.ok(second.closedAllocationBoundary >= first.closedAllocationBoundary);
  });

  test("a publish that expects another router instance stores nothing", async () => {
    const group = envelopes.groupId();
    const headers = { "conclave-expected-router-instance": "rti_AAAAAAAAAAAAAAAAAAAAAA" };
    const error = await failure(() =>
      client.publish.publish({ envelopes: [envelopes.groupMessage(group, "hello")] }, { headers }));
    assert.equal(error.code, Code.FailedPrecondition);
    const page = await client.query.query({ queries: [{ topic: envelopes.groupTopic(group) }] });
    assert.equal(page.envelopes.length, 0);
  });

  test("what is not built yet says so", async () => {
    const unserved = [
      () => client.notification.register({}),
      () => client.notification.unregister({}),
      () => client.notification.updateSubscriptions({}),
      () => client.attachment.createUpload({}),
    ];
    for (const call of unserved) assert.equal((await failure(call)).code, Code.Unimplemented, call.toString());
  });

  test("a bidirectional stream is refused as not built yet", async () => {
    const error = await failure(async () => {
      for await (const _ of client.subscription.subscribe((async function* () {})())) break;
    });
    assert.equal(error.code, Code.Unimplemented);
  });
});
