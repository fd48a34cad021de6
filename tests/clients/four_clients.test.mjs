// Four gRPC implementations that nobody here wrote do the same through one port, and see the same: Python's grpcio, tonic
// and connect-es in native gRPC, connect-es and Google's grpc-web in gRPC-Web.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { Call } from "../support/callers/call.mjs";
import { ConnectCaller } from "../support/callers/connect_es.mjs";
import { GoogleCaller } from "../support/callers/google_grpc_web.mjs";
import { ProcessCaller } from "../support/callers/process.mjs";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { decode, encode, service } from "../support/wire.mjs";

const fromRoot = (relative) => fileURLToPath(new URL(`../../${relative}`, import.meta.url));
const python = process.env.CONCLAVE_PYTHON ?? fromRoot("target/python/bin/python");
const tonic = process.env.CONCLAVE_TONIC_CALLER ?? fromRoot("target/debug/conclave-tonic-caller");
const grpcio = fromRoot("tests/support/callers/grpcio_caller.py");

const IDENTIFIER = "one-port-for-all";
const MAX_ENVELOPE_BYTES = 1 << 19;
const MAX_REQUEST_BYTES = 1 << 20;
const LARGE_BYTES = 200_000;
const PUBLISH_ERROR = "type.googleapis.com/xmtp.backend.v1.PublishError";

/** What every client sees. */
const UNARY = [
  "health: 1",
  `configuration: ${IDENTIFIER}`,
  "publish: 3 stored, in order",
  "router instance: the header's",
  "the same again: what was stored",
  "page: zero one, more",
  "page: two, no more",
  "newest: two",
  "a large one: whole",
  "a publish of nothing: 3, envelope 1, reason 1",
  "another router instance: 9",
  "an RPC that is not served here: 12",
  "a request beyond the bound: 11",
];
const STATIC = [
  "static: started, targets in order",
  "static: zero one two, then three",
  "static, cancelled: 1",
  "static, past its deadline: 4",
  "static, of no topic: 3",
];
const BIDIRECTIONAL = [
  "subscribe: started before anything was asked",
  "subscribe: 1 applied, 1 target, the head",
  "subscribe: one two, then three",
  "subscribe: pong 7",
  "subscribe: 2 applied, 0 targets",
  "subscribe: pong 8, and nothing of a topic removed",
  "subscribe, half-closed: 0",
  "subscribe, an update twice: 3",
  "subscribe, cancelled: 1",
  "subscribe, past its deadline: 4",
];

/** Everything one client does. Says what it saw, in words that do not depend on when it was. */
async function unaryCalls(caller, say) {
  const call = (name, fields, options) => begin(caller, name, fields, options).unary();
  const group = envelopes.groupId();
  const topic = envelopes.groupTopic(group);
  const message = (text) => envelopes.groupMessage(group, text);
  const publish = (list, options) => call("xmtp.backend.v1.PublishService/Publish", { envelopes: list }, options);

  const health = await call("grpc.health.v1.Health/Check", {});
  say(`health: ${health.value.status}`);
  const configuration = await call("xmtp.backend.v1.ConfigurationService/GetConfiguration", {});
  say(`configuration: ${configuration.value.identifier}`);

  const texts = ["zero", "one", "two"];
  const stored = await publish(texts.map(message));
  const metas = stored.value.envelopeMetas;
  const ids = metas.map(({ cursor }) => cursor.sequenceId);
  say(`publish: ${metas.length} stored, ${ids[0] < ids[1] && ids[1] < ids[2] ? "in order" : ids}`);
  const instance = await call("conclave.router.v1.RouterService/GetInstance", {});
  const named = stored.headers["conclave-router-instance"];
  say(`router instance: ${instance.value.routerInstanceId === named ? "the header's" : named}`);
  const again = await publish([message("one")]);
  assert.deepEqual(again.value.envelopeMetas[0], metas[1]);
  say("the same again: what was stored");

  const page = async (cursor) => {
    const { value } = await call("xmtp.backend.v1.QueryService/Query", { queries: [{ topic, cursor }], limit: 2 });
    const found = value.envelopes.map(envelopes.textOf).join(" ");
    say(`page: ${found}, ${value.continuation?.hasMore ? "more" : "no more"}`);
    return value.envelopes.at(-1).meta.cursor;
  };
  await page(await page(undefined));
  const topics = [topic, envelopes.groupTopic(envelopes.groupId())];
  const newest = await call("xmtp.backend.v1.QueryService/QueryNewest", { topics, includeFullEnvelope: true });
  say(`newest: ${newest.value.results.map(envelopes.textOf).join(" ")}`);
  const large = "x".repeat(LARGE_BYTES);
  await publish([message(large)]);
  const back = await call("xmtp.backend.v1.QueryService/Query", { queries: [{ topic, cursor: metas[2].cursor }] });
  say(`a large one: ${envelopes.textOf(back.value.envelopes[0]) === large ? "whole" : "changed"}`);

  const refused = await publish([message("three"), {}]);
  const [detail] = decode("google.rpc.Status", refused.details).details;
  assert.equal(detail.typeUrl, PUBLISH_ERROR);
  const { index, reason } = decode("xmtp.backend.v1.PublishError", detail.value);
  say(`a publish of nothing: ${refused.code}, envelope ${index}, reason ${reason}`);
  const headers = { "conclave-expected-router-instance": "rti_AAAAAAAAAAAAAAAAAAAAAA" };
  say(`another router instance: ${(await publish([message("three")], { headers })).code}`);
  const upload = { contentDigest: new Uint8Array(32), contentLength: 1n };
  const unserved = await call("xmtp.backend.v1.AttachmentService/CreateUpload", upload);
  say(`an RPC that is not served here: ${unserved.code}`);
  const tooLong = [1, 2, 3, 4, 5].map((number) => message(String(number).repeat(MAX_REQUEST_BYTES / 4)));
  say(`a request beyond the bound: ${(await publish(tooLong)).code}`);
}

/** What a static stream brings, and how it ends. */
async function staticStreams(caller, say) {
  const group = envelopes.groupId();
  const publish = (...texts) =>
    begin(caller, "xmtp.backend.v1.PublishService/Publish", {
      envelopes: texts.map((text) => envelopes.groupMessage(group, text)),
    }).unary();
  const open = (topics, options) =>
    begin(caller, "xmtp.backend.v1.SubscriptionService/SubscribeStatic", { topics }, options);
  const { envelopeMetas } = (await publish("zero", "one", "two")).value;
  const topics = [{ topic: envelopes.groupTopic(group) }, { topic: envelopes.groupTopic(envelopes.groupId()) }];

  const stream = open(topics);
  const { response } = await stream.nextValue();
  assert.equal(response.case, "started");
  const targets = response.value.targets.map(({ throughSequenceId }) => throughSequenceId);
  assert.deepEqual(targets, [envelopeMetas[2].cursor.sequenceId, 0n]);
  say("static: started, targets in order");
  const history = await take(stream, 3);
  await publish("three");
  say(`static: ${history.join(" ")}, then ${(await take(stream, 1)).join(" ")}`);
  stream.cancel();
  say(`static, cancelled: ${(await stream.end()).code}`);
  say(`static, past its deadline: ${(await open(topics, { timeoutMs: 300 }).end()).code}`);
  say(`static, of no topic: ${(await open([]).end()).code}`);
}

/** What a bidirectional stream brings, and how it ends. */
async function bidirectionalStreams(caller, say) {
  const group = envelopes.groupId();
  const topic = envelopes.groupTopic(group);
  const publish = (...texts) =>
    begin(caller, "xmtp.backend.v1.PublishService/Publish", {
      envelopes: texts.map((text) => envelopes.groupMessage(group, text)),
    }).unary();
  const subscribe = (options) => open(caller, "xmtp.backend.v1.SubscriptionService/Subscribe", options);
  const update = (value) => ({ request: { case: "update", value } });
  const ping = (nonce) => ({ request: { case: "ping", value: { nonce } } });
  const next = async (stream, kind) => {
    const { response } = await stream.nextValue();
    assert.equal(response.case, kind);
    return response.value;
  };
  const { envelopeMetas } = (await publish("zero", "one", "two")).value;

  const stream = subscribe();
  assert.ok((await next(stream, "started")).keepaliveIntervalMs > 0);
  say("subscribe: started before anything was asked");
  const applied = async () => {
    const { id, addedTargets } = await next(stream, "applied");
    const isHead = addedTargets.every((target) => target.throughSequenceId === envelopeMetas[2].cursor.sequenceId);
    const targets = addedTargets.length === 1 ? "1 target" : `${addedTargets.length} targets`;
    say(`subscribe: ${id} applied, ${targets}${addedTargets.length > 0 && isHead ? ", the head" : ""}`);
  };
  stream.sendValue(update({ id: 1n, adds: [{ topic, cursor: envelopeMetas[0].cursor }] }));
  await applied();
  const history = await take(stream, 2);
  await publish("three");
  say(`subscribe: ${history.join(" ")}, then ${(await take(stream, 1)).join(" ")}`);
  stream.sendValue(ping(7n));
  say(`subscribe: pong ${(await next(stream, "pong")).nonce}`);
  stream.sendValue(update({ id: 2n, removes: [topic] }));
  await applied();
  await publish("four");
  stream.sendValue(ping(8n));
  say(`subscribe: pong ${(await next(stream, "pong")).nonce}, and nothing of a topic removed`);
  stream.halfClose();
  say(`subscribe, half-closed: ${(await stream.end()).code}`);

  const twice = subscribe();
  for (const _ of ["once", "again"]) twice.sendValue(update({ id: 1n }));
  say(`subscribe, an update twice: ${(await twice.end()).code}`);
  const cancelled = subscribe();
  await next(cancelled, "started");
  cancelled.cancel();
  say(`subscribe, cancelled: ${(await cancelled.end()).code}`);
  say(`subscribe, past its deadline: ${(await subscribe({ timeoutMs: 300 }).end()).code}`);
}

/** The texts of the next `count` envelopes of a stream. */
async function take(stream, count) {
  const texts = [];
  while (texts.length < count) {
    const { response } = await stream.nextValue();
    if (response.case === "messages") texts.push(...response.value.envelopes.map(envelopes.textOf));
  }
  return texts;
}

/** Begins a call of one request. Its answers are decoded: `value` of a unary one, `nextValue()` of a stream. */
function begin(caller, name, fields, options) {
  const call = open(caller, name, options);
  call.sendValue(fields);
  call.halfClose();
  return call;
}

/** Opens a call of any number of requests. */
function open(caller, name, options) {
  const [serviceName, methodName] = name.split("/");
  const method = service(serviceName).methods.find((candidate) => candidate.name === methodName);
  const call = new Call(caller, `/${name}`, options);
  return {
    sendValue: (fields) => call.send(encode(method.input.typeName, fields)),
    halfClose: () => call.halfClose(),
    cancel: () => call.cancel(),
    end: () => call.end(),
    nextValue: async () => decode(method.output.typeName, await call.next()),
    unary: async () => {
      const answer = await call.unary();
      return { ...answer, value: answer.code === 0 ? decode(method.output.typeName, answer.message) : undefined };
    },
  };
}

describe("through one port", () => {
  let deployment;
  const closing = [];

  /** The clients, by how they speak. */
  const makers = {
    "grpcio, native gRPC": (url) => program("grpcio", python, [grpcio, new URL(url).host]),
    "tonic, native gRPC": (url) => program("tonic", tonic, [url]),
    "connect-es, native gRPC": (url) => new ConnectCaller("connect-es", createGrpcTransport({ baseUrl: url })),
    "connect-es, gRPC-Web": (url) =>
      new ConnectCaller("connect-es", createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1" })),
    "connect-es, gRPC-Web over HTTP/2": (url) =>
      new ConnectCaller("connect-es", createGrpcWebTransport({ baseUrl: url, httpVersion: "2" })),
    "Google's grpc-web": (url) => new GoogleCaller(url),
  };

  /** A caller that is a program, ended after the tests. */
  function program(name, file, argument) {
    const caller = new ProcessCaller(name, file, argument);
    closing.push(caller);
    return caller;
  }

  before(async () => {
    deployment = await Deployment.start({
      variables: {
        CONCLAVE_IDENTIFIER: IDENTIFIER,
        CONCLAVE_MAX_ENVELOPE_BYTES: String(MAX_ENVELOPE_BYTES),
        CONCLAVE_MAX_REQUEST_BYTES: String(MAX_REQUEST_BYTES),
      },
    });
  });
  after(async () => {
    for (const caller of closing) await caller.close();
    await deployment?.stop();
  });

  for (const [name, make] of Object.entries(makers)) {
    describe(name, () => {
      const callers = {};
      const caller = () => (callers[name] ??= make(deployment.url));

      // API-281, API-285
      test("unary calls, their errors and the details of those are what every other client sees", async () => {
        const seen = [];
        await unaryCalls(caller(), (line) => seen.push(line));
        assert.deepEqual(seen, UNARY);
      });

      // API-254, API-260, API-281, API-285
      test("a static stream, its cancellation and its deadline are what every other client sees", async () => {
        const seen = [];
        await staticStreams(caller(), (line) => seen.push(line));
        assert.deepEqual(seen, STATIC);
      });

      // API-250, API-252, API-253, API-254, API-256, API-259, API-281, API-285
      test("a bidirectional stream is what every other client sees that has them", async (context) => {
        if (!caller().isBidirectional) return context.skip("it has none");
        const seen = [];
        await bidirectionalStreams(caller(), (line) => seen.push(line));
        assert.deepEqual(seen, BIDIRECTIONAL);
      });
    });
  }
});
