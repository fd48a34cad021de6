// The Registry by connect-es, with keys and proofs made by Node's own cryptography.

import assert from "node:assert/strict";
import { createHash, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Code, connect, failure } from "../support/clients.mjs";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import { until } from "../support/until.mjs";

const DOMAIN = "org.social-harness/edge/v1/register\0";
const DEFAULT_PRINCIPAL = "prn_AAAAAAAAAAAAAAAAAAAAAA";
const NAME_TAKEN = 1;
const KEY_ALREADY_REGISTERED = 2;
const IDEMPOTENCY_CONFLICT = 3;

/** RFC 8785 for values whose member names are ASCII and whose values are strings or such objects. */
function canonical(value) {
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

function agent() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const { crv, kty, x } = publicKey.export({ format: "jwk" });
  return { jwk: { crv, kty, x }, privateKey };
}

function operation() {
  return `opn_${randomBytes(16).toString("base64url")}`;
}

function registration({ jwk, privateKey }, agentName, operationId = operation()) {
  const value = { agentName, operationId, principalId: DEFAULT_PRINCIPAL, publicKey: jwk };
  const proof = sign(null, Buffer.from(DOMAIN + canonical(value)), privateKey);
  return { operationId, agentName, publicJwk: Buffer.from(canonical(jwk)), proof };
}

function payloadOf(card) {
  return JSON.parse(Buffer.from(JSON.parse(Buffer.from(card).toString()).payload, "base64url").toString());
}

describe("the Registry", () => {
  let deployment;
  let client;
  const state = temporaryFolder();

  before(async () => {
    deployment = await Deployment.start({ state: state.path });
    client = connect(deployment.url).registry;
  });
  after(async () => {
    await deployment?.stop();
    state.remove();
  });

  test("a registered agent has a card that the pinned signer signed", async () => {
    const signer = await client.getSigner({});
    const jwk = JSON.parse(Buffer.from(signer.publicJwk).toString());
    const thumbprint = createHash("sha256").update(canonical(jwk)).digest("base64url");
    assert.equal(signer.thumbprintUri, `urn:ietf:params:oauth:jwk-thumbprint:sha-256:${thumbprint}`);

    const alice = agent();
    const { result } = await client.register(registration(alice, "alice-of-cards"));
    assert.equal(result.case, "agentCard");
    const card = JSON.parse(Buffer.from(result.value).toString());
    const [{ protected: header, signature }] = card.signatures;
    const key = createPublicKey({ key: jwk, format: "jwk" });
    assert.ok(verify(null, Buffer.from(`${header}.${card.payload}`), key, Buffer.from(signature, "base64url")));
    const payload = payloadOf(result.value);
    assert.equal(payload.agentName, "alice-of-cards");
    assert.deepEqual(payload.publicKey, alice.jwk);

    const byName = await client.lookup({ by: { case: "agentName", value: "alice-of-cards" } });
    const byId = await client.lookup({ by: { case: "agentId", value: payload.agentId } });
    assert.deepEqual(byName.agentCard, result.value);
    assert.deepEqual(byId.agentCard, result.value);
  });

  test("the same operation again is the same card; another request under it conflicts", async () => {
    const bob = agent();
    const request = registration(bob, "bob-of-operations");
    const first = await client.register(request);
    const again = await client.register(request);
    assert.deepEqual(again.result, first.result);
    const changed = await client.register(registration(bob, "bob-renamed", request.operationId));
    assert.deepEqual(changed.result, { case: "refusal", value: IDEMPOTENCY_CONFLICT });
  });

  test("a taken name and a registered key are refused, and the refusal is replayed", async () => {
    const carol = agent();
    await client.register(registration(carol, "carol-first"));
    const thief = registration(agent(), "carol-first");
    assert.deepEqual((await client.register(thief)).result, { case: "refusal", value: NAME_TAKEN });
    assert.deepEqual((await client.register(thief)).result, { case: "refusal", value: NAME_TAKEN });
    const second = await client.register(registration(carol, "carol-second"));
    assert.deepEqual(second.result, { case: "refusal", value: KEY_ALREADY_REGISTERED });
  });

  test("one name raced by many has one owner", async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => client.register(registration(agent(), "raced-name"))));
    assert.equal(answers.filter(({ result }) => result.case === "agentCard").length, 1);
  });

  test("a registration without the key's proof is refused and stores nothing", async () => {
    const request = registration(agent(), "forged-name");
    request.proof = Buffer.alloc(64, 1);
    const error = await failure(() => client.register(request));
    assert.ok([Code.Unauthenticated, Code.InvalidArgument, Code.PermissionDenied].includes(error.code));
    assert.equal((await client.lookup({ by: { case: "agentName", value: "forged-name" } })).agentCard, undefined);
  });

  test("malformed names, keys and operation ids are refused", async () => {
    const good = registration(agent(), "good-name");
    for (const change of [{ agentName: "No" }, { publicJwk: Buffer.from("{}") }, { operationId: "opn_x" }]) {
      assert.equal((await failure(() => client.register({ ...good, ...change }))).code, Code.InvalidArgument);
    }
    assert.equal((await failure(() => client.lookup({}))).code, Code.InvalidArgument);
  });

  test("cards are listed in the order of their decoded ids, page by page", async () => {
    for (let number = 0; number < 3; number += 1) await client.register(registration(agent(), `listed-${number}`));
    const ids = [];
    let afterAgentId;
    for (;;) {
      const page = await client.list({ afterAgentId });
      ids.push(...page.agentCards.map((card) => payloadOf(card).agentId));
      if (!page.hasMore) break;
      afterAgentId = ids.at(-1);
    }
    const decoded = ids.map((id) => Buffer.from(id.slice(4), "base64url"));
    assert.ok(decoded.length >= 3);
    assert.deepEqual(decoded, [...decoded].sort(Buffer.compare));
  });

  test("cards and signer survive a restart of the runtime", async () => {
    const before = await client.getSigner({});
    const { result } = await client.register(registration(agent(), "survivor"));
    await deployment.killRuntime();
    // The first call may still take the connection that the kill cut.
    const after = await until("an answer", () => client.lookup({ by: { case: "agentName", value: "survivor" } }));
    assert.deepEqual(after.agentCard, result.value);
    assert.deepEqual((await client.getSigner({})).publicJwk, before.publicJwk);
  });
});
