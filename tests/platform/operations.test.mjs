// What a deployment says of itself: request ids, one line a request with nothing private in it, and counters.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { KeySetServer, keyPair, now, sign } from "../support/issuer.mjs";
import { frame, request } from "../support/raw.mjs";
import { until } from "../support/until.mjs";

const API_KEY = "an-api-key-of-32-bytes-and-more-than-that";
const OPERATOR_TOKEN = "an-operators-token-of-32-bytes-and-more";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const QUERY = "/xmtp.backend.v1.QueryService/Query";
const PUBLISH = "/xmtp.backend.v1.PublishService/Publish";
const STATIC = "/xmtp.backend.v1.SubscriptionService/SubscribeStatic";

const bearer = (token) => ({ authorization: `Bearer ${token}` });

describe("a deployment that is watched", () => {
  let issuer;
  let pair;
  let deployment;
  let client;

  before(async () => {
    pair = await keyPair("a-private-kid", "ES256");
    issuer = await KeySetServer.start([pair]);
    deployment = await Deployment.start({
      shards: 2,
      variables: {
        CONCLAVE_IDENTIFIER: "a-watched-deployment",
        // A client that went away is noticed when something is sent to it.
        CONCLAVE_KEEPALIVE_INTERVAL_MS: "500",
        CONCLAVE_AUTH_ENABLED: "true",
        CONCLAVE_AUTH_API_KEY_app: API_KEY,
        CONCLAVE_AUTH_JWKS_URL: issuer.url,
        CONCLAVE_OPERATOR_TOKEN: OPERATOR_TOKEN,
        CONCLAVE_REQUEST_LOGGER: "true",
      },
    });
    client = connect(deployment.url);
  });
  after(async () => {
    await deployment?.stop();
    issuer?.stop();
  });

  /** The lines of the log that are objects. */
  const lines = () => deployment.log.split("\n").flatMap((line) => {
    try {
      const parsed = JSON.parse(line.slice(line.indexOf("{")));
      return typeof parsed === "object" ? [parsed] : [];
    } catch {
      return [];
    }
  });
  const lineOf = (requestId, message = "request completed") =>
    until(`the line of ${requestId}`, () => lines().find((line) => line.request_id === requestId && line.message === message));

  /** Makes a call and resolves with the id its response names. */
  async function idOf(call) {
    let id;
    await call((headers) => { id = headers.get("x-request-id"); });
    return id;
  }

  // OPS-011
  test("every response to a call names a fresh request id, whatever the caller sends", async () => {
    const own = "00000000-0000-4000-8000-000000000000";
    const headers = { ...bearer(API_KEY), "content-type": "application/grpc-web+proto", "x-request-id": own, "x-correlation-id": own };
    const send = (path, options = {}) => request(deployment.url, path, { headers, ...options });
    const responses = [
      await send(QUERY, { body: frame(Buffer.alloc(0)) }),
      await send(QUERY, { body: "no frame" }),
      await send(QUERY, { headers: { ...headers, authorization: "Bearer x.y" }, body: frame(Buffer.alloc(0)) }),
      await send("/no.such.Service/Method", { body: frame(Buffer.alloc(0)) }),
      await send(QUERY, { headers: { ...headers, "content-type": "application/json" }, body: "{}" }),
      await send("/grpc.health.v1.Health/Check", { body: frame(Buffer.alloc(0)) }),
    ];
    const ids = responses.map((response) => response.headers["x-request-id"]);
    for (const id of ids) assert.match(id, UUID);
    assert.equal(new Set([own, ...ids]).size, ids.length + 1);
    assert.match(responses[0].headers["access-control-expose-headers"], /x-request-id/);
  });

  // OPS-012, OPS-013, OPS-018, AUTH-028
  test("a call leaves one line with its id, its route, its code, its sizes and its trace", async () => {
    const message = { queries: [{ topic: envelopes.groupTopic(envelopes.groupId()) }] };
    const headers = { ...bearer(API_KEY), traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01`, tracestate: "vendor=private" };
    const id = await idOf((onHeader) => client.query.query(message, { headers, onHeader }));
    const line = await lineOf(id);
    const { duration_ms, request_size_bytes, response_size_bytes, ...fixed } = line;
    assert.deepEqual(fixed, {
      message: "request completed",
      request_id: id,
      identifier: "a-watched-deployment",
      method: QUERY,
      grpc_code: "OK",
      trace_id: TRACE_ID,
      auth_principal: "app",
    });
    assert.ok(Number.isInteger(duration_ms) && duration_ms >= 0);
    assert.equal(request_size_bytes, 5 + 23);
    assert.ok(response_size_bytes > 5);
    assert.equal(lines().filter((other) => other.request_id === id).length, 1);
  });

  // AUTH-027
  test("a refused credential leaves its reason and nothing of itself", async () => {
    const headers = { ...bearer("a-guess-at-a-key"), "content-type": "application/grpc-web+proto" };
    const refused = await request(deployment.url, QUERY, { headers, body: frame(Buffer.alloc(0)) });
    const id = refused.headers["x-request-id"];
    assert.deepEqual(await lineOf(id, "credential rejected"), {
      message: "credential rejected",
      request_id: id,
      identifier: "a-watched-deployment",
      reason: "malformed",
    });
    assert.equal((await lineOf(id)).grpc_code, "Unauthenticated");
  });

  test("a stream leaves its line when it is over, not before", async () => {
    const controller = new AbortController();
    let id;
    const stream = client.subscription.subscribeStatic(
      { topics: [{ topic: envelopes.groupTopic(envelopes.groupId()) }] },
      { headers: bearer(API_KEY), signal: controller.signal, onHeader: (headers) => { id = headers.get("x-request-id"); } },
    )[Symbol.asyncIterator]();
    await stream.next();
    assert.equal(lines().some((line) => line.request_id === id), false);
    controller.abort();
    const line = await lineOf(id);
    assert.deepEqual([line.method, line.grpc_code], [STATIC, "Cancelled"]);
    assert.ok(line.response_size_bytes > 0);
  });

  // OPS-014, AUTH-027
  test("nothing a caller sent stands in the log", async () => {
    const group = envelopes.groupId();
    const key = envelopes.installationKey();
    const text = "words-nobody-else-may-read";
    const subject = "a-private-subject";
    const token = await sign(pair, { exp: now() + 300, sub: subject, iss: "https://private-issuer.example" });
    const headers = { ...bearer(token), "x-own-header": "a-private-header" };
    const inbox = "ab".repeat(32);
    await client.publish.publish({ envelopes: [envelopes.groupMessage(group, text)] }, { headers });
    const topics = [envelopes.groupTopic(group), envelopes.welcomeTopic(key)];
    await client.query.query({ queries: topics.map((topic) => ({ topic, cursor: { sequenceId: 0n } })) }, { headers });
    await client.query.queryNewest({ topics, includeFullEnvelope: true }, { headers });
    await client.identity.getInboxIds({ requests: [{ identifier: inbox, identifierKind: 1 }] }, { headers }).catch(() => {});
    const bad = { payload: { case: "identityUpdate", value: { inboxId: inbox } } };
    assert.equal((await failure(() => client.publish.publish({ envelopes: [bad] }, { headers }))).code, Code.InvalidArgument);
    assert.equal((await failure(() => client.query.query({ queries: [{ topic: { topic: key } }] }, { headers }))).code, Code.InvalidArgument);
    await request(deployment.url, `/a-private-path.Service/${"a".repeat(8)}?q=a-private-query`, { headers: { ...headers, "content-type": "application/grpc-web+proto" }, body: frame(Buffer.alloc(0)) });
    const id = await idOf((onHeader) => client.query.query({}, { headers, onHeader }));
    await lineOf(id);

    const log = deployment.log;
    assert.ok(lines().filter((line) => line.message === "request completed").length >= 7, "there is something to look at");
    const spelled = (bytes) => [
      Buffer.from(bytes).toString("hex"),
      Buffer.from(bytes).toString("base64").replace(/=+$/, ""),
      Buffer.from(bytes).toString("base64url"),
      [...bytes].slice(0, 8).join(","),
      [...bytes].slice(0, 8).join(", "),
    ];
    const secrets = [
      text, subject, inbox, token, API_KEY, OPERATOR_TOKEN, "private", ...token.split("."),
      ...spelled(group), ...spelled(key), ...spelled(Buffer.from(text)),
    ];
    for (const secret of secrets) assert.equal(log.toLowerCase().includes(secret.toLowerCase()), false, secret);
  });

  // OPS-016, OPS-017
  test("the counters are read with the operator's token alone", async () => {
    const read = (headers, method = "GET") => request(deployment.url, "/metrics", { method, headers });
    const token = await sign(pair, { exp: now() + 300 });
    for (const headers of [{}, bearer(API_KEY), bearer(token), bearer(`${OPERATOR_TOKEN}x`), { authorization: OPERATOR_TOKEN }]) {
      const refused = await read(headers);
      assert.deepEqual([refused.status, refused.body.length], [401, 0]);
    }
    assert.equal((await read(bearer(OPERATOR_TOKEN), "DELETE")).status, 405);

    const group = envelopes.groupId();
    await client.publish.publish({ envelopes: [envelopes.groupMessage(group, "counted")] }, { headers: bearer(API_KEY) });
    const answer = await read(bearer(OPERATOR_TOKEN));
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    const samples = new Map(answer.body.toString().split("\n").filter((line) => line && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
    const route = (path, type, more = "") => {
      const [, service, method] = path.split("/");
      return `{grpc_service="${service}",grpc_method="${method}",grpc_type="${type}"${more}}`;
    };
    assert.ok(samples.get(`grpc_server_handled_total${route(PUBLISH, "unary", ',grpc_code="OK"')}`) >= 1);
    assert.ok(samples.get(`grpc_server_started_total${route(STATIC, "server_stream")}`) >= 1);
    assert.equal(samples.get(`grpc_server_in_flight${route(PUBLISH, "unary")}`), 0);
    assert.ok(samples.get('xmtp_auth_rejections_total{reason="malformed"}') >= 1);
    assert.ok(samples.get('xmtp_auth_jwks_refresh_total{result="ok"}') >= 1);
    assert.equal(samples.get("xmtp_auth_keys"), 1);
    assert.equal(samples.get("xmtp_backend_ready"), 1);
    assert.ok(samples.get("conclave_last_sequence_id") >= 1);
    assert.ok(samples.get("conclave_counting_since_seconds") <= now());
    const unknown = [...samples.keys()].filter((name) => name.includes("private"));
    assert.deepEqual(unknown, [], "a caller makes no labels");
  });

  test("an operator may ask for the status too", async () => {
    const status = await client.operator.getStatus({}, { headers: bearer(OPERATOR_TOKEN) });
    assert.equal(status.identifier, "a-watched-deployment");
  });
});

test("a deployment without an operator has no counters to read and, if it is told so, writes no lines", async () => {
  const deployment = await Deployment.start({ shards: 1, variables: { CONCLAVE_REQUEST_LOGGER: "false" } });
  try {
    for (const headers of [{}, bearer(OPERATOR_TOKEN)]) {
      assert.equal((await request(deployment.url, "/metrics", { method: "GET", headers })).status, 404);
    }
    const client = connect(deployment.url);
    await client.query.query({ queries: [{ topic: envelopes.groupTopic(envelopes.groupId()) }] });
    await client.router.getInstance({});
    assert.equal(deployment.log.includes("request completed"), false);
  } finally {
    await deployment.stop();
  }
});

test("storage that was put back keeps its envelopes under a new router instance", async () => {
  const state = temporaryFolder();
  const group = envelopes.groupId();
  const topic = envelopes.groupTopic(group);
  const run = async (variables, use) => {
    const deployment = await Deployment.start({ shards: 2, state: state.path, variables });
    try {
      const client = connect(deployment.url);
      return { instance: (await client.router.getInstance({})).routerInstanceId, used: await use(client) };
    } finally {
      await deployment.stop();
    }
  };
  try {
    const publish = (client, headers) =>
      client.publish.publish({ envelopes: [envelopes.groupMessage(group, "kept")] }, { headers });
    const born = await run({}, (client) => publish(client));
    const restored = await run({ CONCLAVE_RESTORED: "2026-12-01" }, async (client) => {
      const expecting = { "conclave-expected-router-instance": born.instance };
      assert.equal((await failure(() => publish(client, expecting))).code, Code.FailedPrecondition);
      const stream = client.subscription.subscribeStatic({ topics: [{ topic }] });
      for await (const { response } of stream) if (response.case === "messages") break;
      return client.query.query({ queries: [{ topic }] });
    });
    assert.notEqual(restored.instance, born.instance);
    assert.match(restored.instance, /^rti_[A-Za-z0-9_-]{22}$/);
    assert.equal(restored.used.envelopes.length, 1);
    const again = await run({ CONCLAVE_RESTORED: "2026-12-01" }, (client) =>
      publish(client, { "conclave-expected-router-instance": restored.instance }));
    assert.equal(again.instance, restored.instance);
  } finally {
    state.remove();
  }
});
