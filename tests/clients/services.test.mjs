// The services beside publish and query: configuration, health, router, operator, and what is not served yet.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { frame, parse, request } from "../support/raw.mjs";
import { contractServices } from "../support/wire.mjs";

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

  // A deployment without push and storage (companions 5.6): each request is judged, and nothing is stored.
  test("push and attachments answer as a deployment that has none", async () => {
    const { notification, attachment } = client;
    const recipient = { recipientId: randomBytes(32), recipientSecret: randomBytes(32) };
    const code = async (call) => (await failure(call)).code;
    assert.equal(await code(() => notification.register(recipient)), Code.FailedPrecondition);
    assert.equal(await code(() => notification.unregister(recipient)), Code.NotFound);
    assert.equal(await code(() => notification.updateSubscriptions(recipient)), Code.NotFound);
    for (const short of [{ ...recipient, recipientId: randomBytes(31) }, { ...recipient, recipientSecret: randomBytes(33) }]) {
      for (const method of ["register", "unregister", "updateSubscriptions"]) {
        assert.equal(await code(() => notification[method](short)), Code.InvalidArgument, method);
      }
    }
    assert.equal(await code(() => attachment.createUpload({ contentDigest: randomBytes(32), contentLength: 1n })), Code.Unimplemented);
    assert.equal((await client.configuration.getConfiguration({})).attachments, undefined);
  });

  // API-210
  test("no RPC of the published files is unknown, and one that is not in them is", async () => {
    const refusal = async (path) => {
      const headers = { "content-type": "application/grpc-web+proto", "grpc-timeout": "1S" };
      const { trailers } = parse((await request(deployment.url, path, { headers, body: frame(Buffer.from([0xff])) })).body);
      return trailers;
    };
    const paths = contractServices.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`));
    assert.equal(paths.length, 12);
    for (const path of paths) assert.doesNotMatch(await refusal(path), /there is no RPC|not served/, path);
    for (const path of ["/xmtp.backend.v1.QueryService/Get", "/xmtp.backend.v1.NoService/Query", "/no/such/path", "/"]) {
      assert.match(await refusal(path), /^grpc-status:12\r\n/, path);
    }
  });
});
