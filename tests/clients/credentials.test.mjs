// Credentials: tokens signed by `jose`, a key set over HTTP, API keys, and who gets in with them.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { ALGORITHMS, KeySetServer, keyPair, now, sign } from "../support/issuer.mjs";
import { grpcStatus, request } from "../support/raw.mjs";
import { until } from "../support/until.mjs";

const API_KEY = "an-api-key-of-32-bytes-and-more-than-that";
const SERVING = 1;
const NOT_SERVING = 2;

const bearer = (token) => ({ headers: { authorization: `Bearer ${token}` } });
const base64url = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a deployment that asks for credentials", () => {
  const pairs = {};
  let issuer;
  let deployment;
  let client;

  const claims = (more = {}) =>
    ({ exp: now() + 300, iss: "https://issuer.example", aud: "backend", scope: "read chat", sub: "somebody", ...more });
  const ask = (token) => client.query.query({ queries: [{ topic: envelopes.groupTopic(envelopes.groupId()) }] }, bearer(token));

  before(async () => {
    for (const algorithm of ALGORITHMS) pairs[algorithm] = await keyPair(`key of ${algorithm}`, algorithm);
    issuer = await KeySetServer.start(Object.values(pairs));
    deployment = await Deployment.start({
      shards: 1,
      variables: {
        CONCLAVE_AUTH_ENABLED: "true",
        CONCLAVE_AUTH_API_KEY_app: API_KEY,
        CONCLAVE_AUTH_JWKS_URL: issuer.url,
        CONCLAVE_AUTH_JWKS_REFRESH_SECONDS: "1",
        CONCLAVE_AUTH_JWKS_MAX_STALE_SECONDS: "3600",
        CONCLAVE_AUTH_ISSUERS: "https://issuer.example",
        CONCLAVE_AUTH_AUDIENCES: "backend,another",
        CONCLAVE_AUTH_REQUIRED_SCOPES: "chat",
      },
    });
    client = connect(deployment.url);
  });
  after(async () => {
    await deployment?.stop();
    issuer?.stop();
  });

  // AUTH-008, AUTH-010
  for (const algorithm of ALGORITHMS) {
    test(`a token signed with ${algorithm} is admitted, and one whose signature was changed is not`, async () => {
      const token = await sign(pairs[algorithm], claims());
      assert.deepEqual((await ask(token)).envelopes, []);
      const [header, payload, signature] = token.split(".");
      const changed = Buffer.from(signature, "base64url");
      changed[changed.length >> 1] ^= 1;
      const forged = `${header}.${payload}.${changed.toString("base64url")}`;
      assert.equal((await failure(() => ask(forged))).rawMessage, "token signature is not trusted");
      const richer = `${header}.${base64url(claims({ scope: "everything chat" }))}.${signature}`;
      assert.equal((await failure(() => ask(richer))).rawMessage, "token signature is not trusted");
    });
  }

  // AUTH-006
  test("an API key is admitted in any case of the scheme, and anything near it is not", async () => {
    assert.deepEqual((await ask(API_KEY)).envelopes, []);
    const message = { queries: [{ topic: envelopes.groupTopic(envelopes.groupId()) }] };
    await client.query.query(message, { headers: { authorization: `bEARER ${API_KEY}` } });
    for (const near of [API_KEY.slice(1), `${API_KEY}x`, API_KEY.toUpperCase()]) {
      assert.equal((await failure(() => ask(near))).code, Code.Unauthenticated, near);
    }
  });

  // AUTH-005, AUTH-008 to AUTH-014, AUTH-031
  test("every refusal has its status and its fixed words, and the earliest one wins", async () => {
    const pair = pairs.EdDSA;
    const stranger = await keyPair(pair.kid, "EdDSA");
    const rsaPublicAsSecret = new TextEncoder().encode(JSON.stringify(pairs.RS256.jwk));
    const hmac = { kid: pairs.RS256.kid, algorithm: "HS256", privateKey: rsaPublicAsSecret };
    const none = `${base64url({ alg: "none", kid: pair.kid })}.${base64url(claims())}.`;
    const MALFORMED = "token is not a supported JWT";
    const UNTRUSTED = "token signature is not trusted";
    const table = [
      ["x.y", MALFORMED],
      ["x".repeat(8193), MALFORMED],
      [none, MALFORMED],
      [await sign(hmac, claims()), MALFORMED],
      [await sign(pair, claims(), { crit: ["exp"], exp: 1 }).catch(() => "a.b.c"), MALFORMED],
      [await sign(stranger, claims()), UNTRUSTED],
      [await sign({ ...pair, kid: "no such key" }, claims()), UNTRUSTED],
      [await sign({ ...pair, kid: pairs.ES256.kid }, claims()), UNTRUSTED],
      [await sign(stranger, claims({ exp: 1 })), UNTRUSTED],
      [await sign(pair, claims({ exp: now() - 90 })), "token has expired"],
      [await sign(pair, claims({ exp: undefined })), "token has expired"],
      [await sign(pair, claims({ nbf: now() + 90 })), "token is not yet valid"],
      [await sign(pair, claims({ aud: ["nobody"] })), "token audience is not allowed"],
      [await sign(pair, claims({ iss: "https://elsewhere.example" })), "token issuer is not allowed"],
      [await sign(pair, claims({ sub: 7, scope: "read" })), MALFORMED],
    ];
    for (const [token, words] of table) {
      const error = await failure(() => ask(token));
      assert.equal(error.rawMessage, words, token);
      assert.equal(error.code, Code.Unauthenticated, words);
    }
    const scope = await failure(async () => ask(await sign(pair, claims({ scope: ["read"] }))));
    assert.equal(scope.rawMessage, "token is missing a required scope");
    assert.equal(scope.code, Code.PermissionDenied);
    const missing = await failure(() => client.query.query({}));
    assert.deepEqual([missing.code, missing.rawMessage], [Code.Unauthenticated, "missing bearer token"]);
    const basic = await failure(() => client.query.query({}, { headers: { authorization: "Basic eDp5" } }));
    assert.equal(basic.rawMessage, "authorization header is not a bearer token");
  });

  // AUTH-001, AUTH-002, CONF-010
  test("health, the configuration and preflights are public, and nothing else is", async () => {
    assert.equal((await client.health.check({}, bearer("junk"))).status, SERVING);
    await client.health.list({});
    await client.configuration.getConfiguration({});
    const others = [
      () => client.publish.publish({}),
      () => client.query.queryNewest({}),
      () => client.identity.getInboxIds({}),
      () => client.notification.register({}),
      () => client.attachment.createUpload({}),
      () => client.router.getInstance({}),
      () => client.operator.getStatus({}),
      () => client.registry.getSigner({}),
      async () => { for await (const _ of client.subscription.subscribeStatic({})) break; },
    ];
    for (const call of others) assert.equal((await failure(call)).code, Code.Unauthenticated, call.toString());

    const text = { "content-type": "text/plain" };
    const grpcWeb = { "content-type": "application/grpc-web+proto" };
    const send = (path, options) => request(deployment.url, path, options);
    const unknown = await send("/no.such.Service/Method", { headers: grpcWeb, body: "" });
    assert.equal(grpcStatus(unknown.body), Code.Unauthenticated);
    for (const [path, method] of [["/xmtp.backend.v1.QueryService/Query", "POST"], ["/xmtp.backend.v1.QueryService/Query", "GET"], ["/nowhere", "POST"]]) {
      const refused = await send(path, { method, headers: text, body: method === "POST" ? "{}" : undefined });
      assert.equal(refused.status, 401, `${method} ${path}`);
      assert.equal(refused.headers["www-authenticate"], "Bearer");
    }
    const admitted = { ...text, authorization: `Bearer ${API_KEY}` };
    assert.equal((await send("/xmtp.backend.v1.QueryService/Query", { headers: admitted, body: "{}" })).status, 415);
    const preflight = await send("/xmtp.backend.v1.QueryService/Query", {
      method: "OPTIONS",
      headers: { "access-control-request-method": "POST", "access-control-request-headers": "authorization,traceparent" },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers["access-control-allow-headers"], "authorization,traceparent");
  });

  // AUTH-001
  test("a credential is asked for before the body is looked at", async () => {
    const path = "/xmtp.backend.v1.QueryService/Query";
    const headers = { "content-type": "application/grpc-web+proto", "grpc-encoding": "gzip" };
    const broken = await request(deployment.url, path, { headers, body: "not a frame" });
    assert.equal(grpcStatus(broken.body), Code.Unauthenticated);
    const known = { ...headers, authorization: `Bearer ${API_KEY}` };
    assert.equal(grpcStatus((await request(deployment.url, path, { headers: known, body: "not a frame" })).body), Code.Unimplemented);
  });

  /** Opens Subscribe on a WebSocket as a browser does, and resolves with its subprotocol and its first frame or close code. */
  const openSocket = (...protocols) => new Promise((resolve) => {
    const url = `${deployment.url.replace("http", "ws")}/xmtp.backend.v1.SubscriptionService/Subscribe`;
    const socket = new WebSocket(url, protocols);
    socket.binaryType = "arraybuffer";
    let frame;
    socket.addEventListener("message", ({ data }) => {
      frame ??= Buffer.from(data);
      // A trailer frame is followed by the server's own close.
      if (!(frame[0] & 0x80)) socket.close();
    });
    socket.addEventListener("close", ({ code }) => resolve({ protocol: socket.protocol, frame, code }));
  });

  // AUTH-001, AUTH-005
  test("a page's WebSocket carries its credential as a subprotocol", async () => {
    const subprotocol = (token) => `conclave.bearer.${Buffer.from(token).toString("base64url")}`;
    const token = await sign(pairs.ES384, claims());
    for (const credential of [token, API_KEY]) {
      const { protocol, frame } = await openSocket("conclave", subprotocol(credential));
      assert.equal(protocol, "conclave", "what carries the token is not repeated");
      assert.equal(frame[0], 0, "the first frame of the stream");
    }
    const without = await openSocket("conclave");
    assert.match(without.frame.toString("latin1"), /grpc-status:16\r\n/);
    assert.equal(without.code, 4000 + Code.Unauthenticated);
    for (const wrong of [subprotocol("x.y"), "conclave.bearer.x", subprotocol(await sign(pairs.ES384, claims({ exp: 1 })))]) {
      assert.equal((await openSocket("conclave", wrong)).code, 4000 + Code.Unauthenticated, wrong);
    }
    const poor = await openSocket("conclave", subprotocol(await sign(pairs.ES384, claims({ scope: "read" }))));
    assert.equal(poor.code, 4000 + Code.PermissionDenied);
  });

  // CONF-011, CONF-068
  test("what is asked for is published, and no key of it", async () => {
    const { auth } = await client.configuration.getConfiguration({});
    assert.equal(auth.enabled, true);
    assert.deepEqual(auth.keys.map(({ kid, alg }) => [kid, alg]), ALGORITHMS.map((alg) => [`key of ${alg}`, alg]));
    assert.deepEqual([auth.audiences, auth.issuers, auth.requiredScopes], [["backend", "another"], ["https://issuer.example"], ["chat"]]);
  });

  // AUTH-004, AUTH-018
  test("a key set that is replaced lets new tokens in and old ones no more, and an open stream goes on", async () => {
    const old = pairs.EdDSA;
    const next = await keyPair("the next key", "EdDSA");
    const oldToken = await sign(old, claims());
    const nextToken = await sign(next, claims());
    assert.equal((await failure(() => ask(nextToken))).rawMessage, "token signature is not trusted");

    const group = envelopes.groupId();
    const controller = new AbortController();
    const stream = client.subscription.subscribeStatic(
      { topics: [{ topic: envelopes.groupTopic(group) }] },
      { ...bearer(oldToken), signal: controller.signal },
    )[Symbol.asyncIterator]();
    assert.equal((await stream.next()).value.response.case, "started");

    issuer.keys = [...Object.values(pairs).filter((pair) => pair !== old), next];
    await until("the new key to be known", async () => ask(nextToken));
    assert.equal((await failure(() => ask(oldToken))).rawMessage, "token signature is not trusted");
    await client.publish.publish({ envelopes: [envelopes.groupMessage(group, "still here")] }, bearer(nextToken));
    let received;
    do received = (await stream.next()).value.response; while (received.case !== "messages");
    assert.equal(envelopes.textOf(received.value.envelopes[0]), "still here");
    controller.abort();
    const { auth } = await client.configuration.getConfiguration({});
    assert.equal(auth.keys.some(({ kid }) => kid === next.kid), false, "the configuration is that of the start");
    issuer.keys = Object.values(pairs);
  });

  // AUTH-015, AUTH-017, OPS-005
  test("a deployment that cannot have its keys serves API keys, says so, and recovers", async () => {
    const other = await KeySetServer.start(Object.values(pairs));
    issuer.misbehave = (_, response) => {
      response.writeHead(302, { location: other.url });
      response.end();
    };
    try {
      await deployment.killRuntime();
      const health = () => client.health.check({}).then(({ status }) => status);
      await until("health to be told", async () => (await health()) === NOT_SERVING);
      const token = await sign(pairs.ES256, claims());
      const refused = await failure(() => ask(token));
      assert.deepEqual([refused.code, refused.rawMessage], [Code.Unavailable, "the keys that tokens are signed with cannot be had"]);
      assert.equal((await failure(() => client.configuration.getConfiguration({}))).code, Code.Unavailable);
      assert.equal((await failure(() => ask("x.y"))).code, Code.Unauthenticated, "what is no token needs no key");
      assert.deepEqual((await ask(API_KEY)).envelopes, []);
      assert.equal(other.requests, 0, "a redirect is not followed");
      const asked = issuer.requests;
      await Promise.all(Array.from({ length: 20 }, () => failure(() => ask(token))));
      assert.ok(issuer.requests - asked <= 1, "a source that fails is left in peace");
    } finally {
      issuer.misbehave = undefined;
      other.stop();
    }
    await until("health to recover", async () => (await client.health.check({})).status === SERVING);
    await ask(await sign(pairs.ES256, claims()));
  });

  // AUTH-017
  test("many first requests of a process fetch the key set once", async () => {
    await deployment.killRuntime();
    const before = issuer.requests;
    let release;
    const held = new Promise((resolve) => { release = resolve; });
    issuer.misbehave = async (_, response) => {
      await held;
      response.end(JSON.stringify({ keys: issuer.keys.map(({ jwk }) => jwk) }));
    };
    try {
      const token = await sign(pairs.RS256, claims());
      const asking = Promise.all(Array.from({ length: 10 }, () => ask(token)));
      await until("the fetch", () => issuer.requests > before);
      assert.equal(issuer.requests, before + 1);
      release();
      await asking;
    } finally {
      issuer.misbehave = undefined;
      release();
    }
  });
});

test("a deployment that asks for none does not read the header", async () => {
  const deployment = await Deployment.start({ shards: 1 });
  try {
    const client = connect(deployment.url);
    const topic = envelopes.groupTopic(envelopes.groupId());
    for (const headers of [{}, { authorization: "Basic eDp5" }, { authorization: "Bearer junk" }]) {
      assert.deepEqual((await client.query.query({ queries: [{ topic }] }, { headers })).envelopes, []);
    }
    assert.equal((await client.configuration.getConfiguration({})).auth.enabled, false);
  } finally {
    await deployment.stop();
  }
});
