// The transport, byte by byte: framing, content types, compression, CORS, and requests that are not gRPC at all.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Deployment } from "../support/deployment.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { frame, grpcStatus, parse, request, statusDetails } from "../support/raw.mjs";
import { decode, encode } from "../support/wire.mjs";

const PUBLISH = "/xmtp.backend.v1.PublishService/Publish";
const QUERY = "/xmtp.backend.v1.QueryService/Query";
const BINARY = { "content-type": "application/grpc-web+proto" };

const INVALID_ARGUMENT = 3;
const OUT_OF_RANGE = 11;
const UNIMPLEMENTED = 12;

const publishRequest = (...list) => Buffer.from(encode("xmtp.backend.v1.PublishRequest", { envelopes: list }));

describe("the transport", () => {
  let deployment;
  let send;

  before(async () => {
    deployment = await Deployment.start();
    send = (path, options) => request(deployment.url, path, options);
  });
  after(() => deployment?.stop());

  // API-285
  test("a unary answer is a message frame and a trailer frame without a content-length", async () => {
    const body = frame(publishRequest(envelopes.groupMessage(envelopes.groupId(), "hello")));
    const answer = await send(PUBLISH, { headers: BINARY, body });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["content-type"], "application/grpc-web+proto");
    assert.equal(answer.headers["content-length"], undefined);
    assert.match(answer.headers["x-request-id"], /^[0-9a-f-]{36}$/);
    const { messages, trailers } = parse(answer.body);
    assert.equal(messages.length, 1);
    assert.match(trailers, /^grpc-status:0\r\n/);
    const response = decode("xmtp.backend.v1.PublishResponse", messages[0]);
    assert.equal(response.envelopeMetas.length, 1);
  });

  // API-285
  test("every spelling of the content type is served, text mode included", async () => {
    const group = envelopes.groupId();
    const body = frame(publishRequest(envelopes.groupMessage(group, "hello")));
    for (const type of ["application/grpc-web", "Application/GRPC-Web+Proto; charset=utf-8"]) {
      assert.equal(grpcStatus((await send(PUBLISH, { headers: { "content-type": type }, body })).body), 0, type);
    }
    for (const type of ["application/grpc-web-text", "application/grpc-web-text+proto"]) {
      const parts = [body.subarray(0, 7), body.subarray(7)].map((part) => part.toString("base64")).join("");
      const answer = await send(PUBLISH, { headers: { "content-type": type }, body: parts });
      assert.match(answer.headers["content-type"], /^application\/grpc-web-text/);
      const padded = answer.body.toString("latin1").match(/[^=]+=*/g);
      const decoded = Buffer.concat(padded.map((part) => Buffer.from(part, "base64")));
      assert.equal(grpcStatus(decoded), 0, type);
    }
  });

  // API-281
  test("compression is not implemented, declared or flagged", async () => {
    const message = publishRequest(envelopes.groupMessage(envelopes.groupId(), "hello"));
    const declared = await send(PUBLISH, { headers: { ...BINARY, "grpc-encoding": "gzip" }, body: frame(message) });
    assert.equal(grpcStatus(declared.body), UNIMPLEMENTED);
    const flagged = await send(PUBLISH, { headers: BINARY, body: frame(message, 1) });
    assert.equal(grpcStatus(flagged.body), UNIMPLEMENTED);
    const whole = await send(PUBLISH, { headers: { ...BINARY, "content-encoding": "gzip" }, body: frame(message) });
    assert.equal(grpcStatus(whole.body), UNIMPLEMENTED);
    const identity = await send(PUBLISH, { headers: { ...BINARY, "grpc-encoding": "identity" }, body: frame(message) });
    assert.equal(grpcStatus(identity.body), 0);
  });

  // API-281, API-282
  test("a request longer than the budget on the wire is out of range, and the next one is served", async () => {
    const { body } = await send("/xmtp.backend.v1.ConfigurationService/GetConfiguration", {
      headers: BINARY,
      body: frame(Buffer.alloc(0)),
    });
    const { limits } = decode("xmtp.backend.v1.GetConfigurationResponse", parse(body).messages[0]);
    const tooLong = frame(Buffer.alloc(Number(limits.maxRequestBytes) + 1));
    assert.equal(grpcStatus((await send(PUBLISH, { headers: BINARY, body: tooLong })).body), OUT_OF_RANGE);
    assert.equal(grpcStatus((await send(QUERY, { headers: BINARY, body: frame(Buffer.alloc(0)) })).body), 0);
  });

  // API-282, API-283
  test("25 MiB are carried in both directions, to the byte", async () => {
    const CEILING_BYTES = 26_214_400;
    const group = envelopes.groupId();
    let count = 0;
    const templates = new Map();
    /** Another envelope of the same length each time. */
    const next = (bytes) => {
      if (!templates.has(bytes)) templates.set(bytes, envelopes.groupMessageOf(bytes, group).payload.value.data);
      const data = templates.get(bytes).slice();
      data[data.length - 1] = (count += 1);
      return { payload: { case: "groupMessage", value: { data } } };
    };
    const many = Array.from({ length: 25 }, () => next(1_040_000));
    const rest = (list) => CEILING_BYTES - publishRequest(...list).length;
    // The last takes a tag and a length of three bytes.
    const exact = publishRequest(...many, next(rest(many) - 4));
    assert.equal(exact.length, CEILING_BYTES);
    const published = await send(PUBLISH, { headers: BINARY, body: frame(exact) });
    assert.equal(grpcStatus(published.body), 0);

    const { envelopeMetas } = decode("xmtp.backend.v1.PublishResponse", parse(published.body).messages[0]);
    const last = envelopeMetas.at(-1).cursor.sequenceId;
    const read = async (type) => {
      const queries = [{ topic: envelopes.groupTopic(group), cursor: { sequenceId: last } }];
      const query = frame(Buffer.from(encode("xmtp.backend.v1.QueryRequest", { queries, limit: 1000 })));
      const isText = type.includes("text");
      const answer = await send(QUERY, { headers: { "content-type": type }, body: isText ? query.toString("base64") : query });
      return parse(isText ? Buffer.from(answer.body.toString("latin1"), "base64") : answer.body);
    };
    const page = Array.from({ length: 24 }, () => next(1_040_000));
    assert.equal(grpcStatus((await send(PUBLISH, { headers: BINARY, body: frame(publishRequest(...page)) })).body), 0);
    const { messages: [almost] } = await read("application/grpc-web");
    const [one] = decode("xmtp.backend.v1.QueryResponse", almost).envelopes;
    const around = encode("xmtp.backend.v1.QueryResponse", { envelopes: [one] }).length - 1_040_000;
    const filler = CEILING_BYTES - almost.length - around;
    // Two, because one would be longer than an envelope may be.
    const halves = [Math.floor((filler - around) / 2), Math.ceil((filler - around) / 2)].map(next);
    assert.equal(grpcStatus((await send(PUBLISH, { headers: BINARY, body: frame(publishRequest(...halves)) })).body), 0);
    for (const type of ["application/grpc-web", "application/grpc-web-text"]) {
      const { messages, trailers } = await read(type);
      assert.match(trailers, /^grpc-status:0\r\n/);
      assert.equal(messages[0].length, CEILING_BYTES, type);
    }
    assert.equal(grpcStatus((await send(PUBLISH, { headers: BINARY, body: frame(publishRequest(next(100))) })).body), 0);
    assert.match((await read("application/grpc-web")).trailers, new RegExp(`^grpc-status:${OUT_OF_RANGE}\r\n`));
  });

  // API-223, API-285
  test("an error is a trailer frame with the PublishError as a detail", async () => {
    const answer = await send(PUBLISH, { headers: BINARY, body: frame(publishRequest({})) });
    assert.equal(answer.status, 200);
    assert.equal(grpcStatus(answer.body), INVALID_ARGUMENT);
    const { details } = statusDetails(answer.body);
    assert.equal(details[0].typeUrl, "type.googleapis.com/xmtp.backend.v1.PublishError");
    assert.equal(decode("xmtp.backend.v1.PublishError", details[0].value).index, 0);
  });

  test("bytes that are no message, and frames cut short, fail as malformed and not as a crash", async () => {
    const garbage = frame(Buffer.from([0xff, 0xff, 0xff]));
    const cut = frame(publishRequest(envelopes.groupMessage(envelopes.groupId(), "x"))).subarray(0, -1);
    for (const body of [garbage, cut, Buffer.alloc(0), Buffer.from([0])]) {
      const answer = await send(PUBLISH, { headers: BINARY, body });
      assert.equal(answer.status, 200);
      assert.ok(grpcStatus(answer.body) > 0);
    }
  });

  test("a path that no service implements is unimplemented", async () => {
    const answer = await send("/xmtp.backend.v1.QueryService/Get", { headers: BINARY, body: frame(Buffer.alloc(0)) });
    assert.equal(grpcStatus(answer.body), UNIMPLEMENTED);
  });

  test("what is not gRPC-Web never runs an RPC", async () => {
    const group = envelopes.groupId();
    const body = frame(publishRequest(envelopes.groupMessage(group, "hidden")));
    for (const type of ["application/json", "text/plain", ""]) {
      const answer = await send(PUBLISH, { headers: type ? { "content-type": type } : {}, body });
      assert.equal(answer.status, 415, type);
    }
    assert.equal((await send(PUBLISH, { method: "GET" })).status, 405);
    const query = Buffer.from(encode("xmtp.backend.v1.QueryRequest", { queries: [{ topic: envelopes.groupTopic(group) }] }));
    const { messages } = parse((await send(QUERY, { headers: BINARY, body: frame(query) })).body);
    assert.equal(decode("xmtp.backend.v1.QueryResponse", messages[0]).envelopes.length, 0);
  });

  // API-285
  test("a browser of any origin may call, and may read the status headers", async () => {
    const preflight = await send(PUBLISH, {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,x-grpc-web,conclave-expected-router-instance",
      },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.body.length, 0);
    assert.equal(preflight.headers["access-control-allow-origin"], "*");
    assert.match(preflight.headers["access-control-allow-headers"], /conclave-expected-router-instance/);
    const answer = await send(PUBLISH, {
      headers: { ...BINARY, origin: "https://app.example" },
      body: frame(publishRequest({})),
    });
    const exposed = answer.headers["access-control-expose-headers"].toLowerCase().split(/\s*,\s*/);
    for (const name of ["grpc-status", "grpc-message", "grpc-status-details-bin", "x-request-id", "conclave-router-instance"]) {
      assert.ok(exposed.includes(name), name);
    }
  });

  test("a deadline is honoured, and a malformed one refused", async () => {
    const body = frame(Buffer.alloc(0));
    assert.equal(grpcStatus((await send(QUERY, { headers: { ...BINARY, "grpc-timeout": "10S" }, body })).body), 0);
    for (const over of ["0m", "0S", "1n"]) {
      const late = await send(QUERY, { headers: { ...BINARY, "grpc-timeout": over }, body });
      assert.equal(grpcStatus(late.body), 4, `${over} is DEADLINE_EXCEEDED`);
    }
    const malformed = await send(QUERY, { headers: { ...BINARY, "grpc-timeout": "soon" }, body });
    assert.ok(grpcStatus(malformed.body) > 0);
  });

  test("the site is served at the root", async () => {
    const page = await send("/", { method: "GET" });
    assert.equal(page.status, 200);
    assert.match(page.headers["content-type"], /^text\/html/);
    assert.equal((await send("/no/such/page", { method: "GET" })).status, 404);
  });
});
