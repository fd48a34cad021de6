// The package's client of the backend, in Node, against a deployment.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { Deployment } from "../support/deployment.mjs";
import { answered, Door, messageOf, refusal } from "../support/door.mjs";
import * as envelopes from "../support/envelopes.mjs";
import { account, create, identityUpdate, inboxId, installation, keyPackage } from "../support/identities.mjs";
import { until } from "../support/until.mjs";
import { encode } from "../support/wire.mjs";

const dist = new URL("../../target/client-package/dist/", import.meta.url);
const { Backend, BackendError, PublishError, topics } = await import(new URL("backend/index.js", dist));
const { clientEnvelope } = await import(new URL("backend/tables.js", dist));
const { decode } = await import(new URL("backend/wire.js", dist));

const CALLS_NONE = {
  publish: 0,
  query: 0,
  queryNewest: 0,
  subscribe: 0,
  subscribeStatic: 0,
  getInboxIds: 0,
  verifySmartContractWalletSignatures: 0,
};
const CODE = { unavailable: 14, deadline: 4, exhausted: 8, aborted: 10, invalid: 3, range: 11, unimplemented: 12, internal: 13 };

/** An envelope of the tests' making as the package has it. */
const ours = (envelope) => decode(clientEnvelope, encode("xmtp.backend.v1.ClientEnvelope", envelope));
const post = (group, text) => ours(envelopes.groupMessage(group, text));
const textOf = ({ envelope }) => envelopes.textOf({ envelope: { payload: { value: envelope } } });

/** Everything an iterable gives. */
async function all(iterable) {
  const values = [];
  for await (const value of iterable) values.push(value);
  return values;
}

/** The next texts of a subscription. */
async function texts(subscription, count) {
  const read = [];
  while (read.length < count) read.push(textOf((await subscription.next()).value));
  return read;
}

/** The error that a call must fail with. */
async function failure(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error("the call succeeded");
}

describe("the backend's client", () => {
  let deployment;
  let backend;
  let door;
  before(async () => {
    deployment = await Deployment.start({
      shards: 4,
      variables: {
        CONCLAVE_MAX_QUERY_TOPICS: "3",
        CONCLAVE_MAX_QUERY_LIMIT: "5",
        CONCLAVE_DEFAULT_QUERY_LIMIT: "5",
        CONCLAVE_MAX_NEWEST_FULL_TOPICS: "2",
        CONCLAVE_MAX_NEWEST_METADATA_TOPICS: "3",
        CONCLAVE_MAX_LOOKUP_IDENTIFIERS: "2",
        CONCLAVE_MAX_SCW_SIGNATURES: "2",
        CONCLAVE_MAX_ENVELOPE_BYTES: "2000",
        CONCLAVE_MAX_REQUEST_BYTES: "6000",
        CONCLAVE_MAX_PUBLISH_TOPICS: "4",
      },
    });
    door = new Door();
    backend = await Backend.connect({ url: `${deployment.url}/` });
  });
  afterEach(() => door.reset());
  after(async () => {
    door?.close();
    backend?.close();
    await deployment?.stop();
  });

  const published = async (group, ...words) => {
    const metas = [];
    for (const word of words) metas.push(...(await backend.publish([post(group, word)])));
    return metas;
  };

  test("connecting reads the configuration once, without a credential", async () => {
    door.reset();
    const another = await Backend.connect({ url: deployment.url, credential: "a-token" });
    assert.deepEqual(door.calls.map(({ method, headers }) => [method, headers.get("authorization")]), [["GetConfiguration", null]]);
    assert.equal(another.configuration.limits.maxQueryTopics, 3);
    assert.equal(another.configuration.retention.welcomeSeconds, 7_776_000);
    assert.equal(another.configuration.attachments, undefined);
    await backend.newest(topics.groupMessages(envelopes.groupId()));
    await another.newest(topics.groupMessages(envelopes.groupId()));
    assert.deepEqual(door.calls.slice(1).map(({ headers }) => headers.get("authorization")), [null, "Bearer a-token"]);
  });

  test("what is no deployment, or no address, is a typed error", async () => {
    for (const url of ["nowhere", "ftp://x", ""]) {
      assert.equal((await failure(() => Backend.connect({ url }))).code, "invalid-argument");
    }
    for (const timeoutMs of [0, 1.5, Number.POSITIVE_INFINITY]) {
      assert.equal((await failure(() => Backend.connect({ url: deployment.url, timeoutMs }))).code, "invalid-argument");
    }
    door.inPlace = () => new Response("<html>", { headers: { "content-type": "text/html" } });
    const error = await failure(() => Backend.connect({ url: deployment.url }));
    assert.ok(error instanceof BackendError && error.code === "unknown", String(error));
    assert.match(error.message, /Check the address/);
  });

  test("envelopes of every kind are published together, and each comes back as it was, on the topic its helper names", async () => {
    const group = envelopes.groupId();
    const key = envelopes.installationKey();
    const mine = account();
    const inbox = inboxId(mine);
    const device = installation();
    const sent = [
      post(group, "hello"),
      ours(envelopes.welcome(key, "welcome")),
      { kind: "welcome-pointer", installationKey: key, welcomePointer: new Uint8Array([1, 2]) },
      ours(envelopes.commitLogEntry(group, 7n)),
    ];
    const metas = await backend.publish(sent);
    const expected = [topics.groupMessages(group), topics.welcomes(key), topics.welcomes(key), topics.commitLog(group)];
    assert.deepEqual(metas.map(({ topic }) => topic), expected);
    assert.deepEqual(sent.map((envelope) => topics.of(envelope)), expected);
    assert.ok(metas.every(({ sequenceId, serverNs }) => typeof sequenceId === "bigint" && serverNs === metas[0].serverNs));
    const [stored] = await all(backend.query(topics.groupMessages(group)));
    assert.deepEqual([stored.envelope, stored.meta], [sent[0], metas[0]]);
    const welcomes = await all(backend.query(topics.welcomes(key)));
    assert.deepEqual(welcomes.map(({ envelope }) => envelope.kind), ["welcome", "welcome-pointer"]);
    assert.deepEqual(welcomes[1].envelope.welcomePointer, new Uint8Array([1, 2]));

    const update = ours(await identityUpdate(inbox, [create(mine)]));
    const [meta] = await backend.publish([update]);
    assert.equal(meta.topic, topics.identityUpdates(inbox));
    const [history] = await all(backend.query(topics.identityUpdates(inbox)));
    assert.deepEqual(history.envelope, update);
    const package_ = ours(keyPackage(device, inbox));
    assert.equal((await backend.publish([package_]))[0].topic, topics.of(package_));
    assert.deepEqual(await backend.getInboxIds([{ identifier: mine.text, kind: "ethereum" }]), [inbox]);
  });

  test("a publish that is refused says why and which envelope, and stored nothing", async () => {
    const group = envelopes.groupId();
    const bad = { kind: "group-message", data: new Uint8Array([9]) };
    const error = await failure(() => backend.publish([post(group, "good"), bad]));
    assert.ok(error instanceof PublishError && error instanceof BackendError);
    assert.deepEqual([error.code, error.reason, error.index, error.isRefused, error.retryable], ["invalid-argument", "malformed-payload", 1, true, false]);
    assert.deepEqual(await all(backend.query(topics.groupMessages(group))), []);
  });

  test("a publish beyond the limits is refused before it is sent, and not split", async () => {
    const group = envelopes.groupId();
    const kilobytes = (bytes) => post(group, "x".repeat(bytes));
    const cases = [
      [[kilobytes(10), kilobytes(3000)], 1],
      [[kilobytes(1500), kilobytes(1600), kilobytes(1700), kilobytes(1800)], undefined],
      [Array.from({ length: 5 }, () => post(envelopes.groupId(), "topic")), undefined],
    ];
    for (const [list, index] of cases) {
      const error = await failure(() => backend.publish(list));
      assert.deepEqual([error.code, error.reason, error.index, error.isRefused], ["invalid-argument", "too-large", index, true]);
      assert.match(error.message, /not split/);
    }
    const untyped = await failure(() => backend.publish([{ kind: "picture" }]));
    assert.deepEqual([untyped.code, untyped.reason, untyped.index], ["invalid-argument", "malformed-payload", 0]);
    assert.equal(door.calls.length, 0);
  });

  test("a query gives every envelope of any number of topics once, in requests that the deployment takes", async () => {
    const groups = Array.from({ length: 7 }, envelopes.groupId);
    for (const group of groups) await published(group, "a", "b", "c");
    door.reset();
    const found = await all(backend.query(groups.map((group) => topics.groupMessages(group))));
    assert.equal(found.length, 21);
    for (const group of groups) {
      const own = found.filter(({ meta }) => meta.topic === topics.groupMessages(group));
      assert.deepEqual(own.map(textOf), ["a", "b", "c"]);
      assert.ok(own.every(({ meta }, at) => at === 0 || meta.sequenceId > own[at - 1].meta.sequenceId));
    }
    assert.equal(door.calls.length, 2 + 2 + 1, "three topics a request and five envelopes a page");

    const topic = topics.groupMessages(groups[0]);
    const [first] = await all(backend.query(topic, { limit: 1 }));
    assert.deepEqual((await all(backend.query({ topic, after: first.meta.sequenceId }))).map(textOf), ["b", "c"]);
    assert.deepEqual((await all(backend.query([topic, { topic, after: first.meta.sequenceId }]))).length, 3, "the lowest cursor");
    for (const wrong of [0, -1, 1.5, Number.NaN]) {
      assert.throws(() => backend.query(topic, { limit: wrong }), BackendError);
      assert.throws(() => backend.query(topic, { pageSize: wrong }), BackendError);
    }
    const pages = await all(backend.query(topic, { pageSize: 2 }).pages());
    assert.deepEqual(pages.map((page) => page.map(textOf)), [["a", "b"], ["c"]]);
  });

  test("a page that is too long is asked for again as a smaller one", async () => {
    const group = envelopes.groupId();
    await published(group, "a", "b", "c");
    const asked = [];
    door.inPlace = ({ method, body }) => {
      if (method !== "Query") return undefined;
      asked.push(body.toString("hex"));
      return asked.length === 1 ? refusal(CODE.range, "the answer is too long") : undefined;
    };
    assert.deepEqual((await all(backend.query(topics.groupMessages(group)))).map(textOf), ["a", "b", "c"]);
    assert.equal(new Set(asked).size, asked.length, "no request is sent twice");
  });

  // API-245
  test("the newest of each topic is found by its topic, whatever order the answer has and whatever is missing in it", async () => {
    const groups = Array.from({ length: 5 }, envelopes.groupId);
    for (const [at, group] of groups.entries()) if (at !== 1) await published(group, `old ${at}`, `new ${at}`);
    const named = groups.map((group) => topics.groupMessages(group));
    const check = async (options) => {
      const newest = await backend.newest(named, options);
      assert.equal(newest.size, 4);
      assert.equal(newest.get(named[1]), undefined);
      for (const [at, topic] of named.entries()) if (at !== 1) assert.equal(newest.get(topic).meta.topic, topic);
      return newest;
    };
    await check();
    const name = "xmtp.backend.v1.QueryNewestResponse";
    door.inPlace = async ({ method }, pass) => {
      if (method !== "QueryNewest") return undefined;
      const { results } = await messageOf(await pass(), name);
      return answered(name, { results: results.reverse() });
    };
    const shuffled = await check();
    assert.deepEqual(named.map((topic) => shuffled.get(topic) && textOf(shuffled.get(topic))), ["new 0", undefined, "new 2", "new 3", "new 4"]);
    door.reset();
    const bare = await check({ metadataOnly: true });
    assert.equal(bare.get(named[0]).envelope, undefined);
    assert.equal(door.calls.length, 2, "three topics a request");
  });

  test("identifiers and wallet signatures are asked for in requests that the deployment takes, and answered in order", async () => {
    const unknown = (at) => ({ identifier: `0x${String(at).padStart(40, "0")}`, kind: "ethereum" });
    assert.deepEqual(await backend.getInboxIds([1, 2, 3, 4, 5].map(unknown)), Array(5).fill(undefined));
    assert.equal(door.calls.filter(({ method }) => method === "GetInboxIds").length, 3);
    door.reset();
    let block = 0n;
    door.inPlace = () => {
      const [first, second] = [{ isValid: true, blockNumber: ++block }, { isValid: false, blockNumber: ++block }];
      const responses = door.calls.length < 3 ? [first, second] : [first];
      return answered("xmtp.backend.v1.VerifySmartContractWalletSignaturesResponse", { responses });
    };
    const signature = { accountId: "eip155:1:0x0000000000000000000000000000000000000001", hash: new Uint8Array(32), signature: new Uint8Array(1) };
    const verdicts = await backend.verifySmartContractWalletSignatures([signature, signature, signature, signature, signature]);
    assert.deepEqual(verdicts.map(({ isValid }) => isValid), [true, false, true, false, true]);
    assert.deepEqual(verdicts.map(({ blockNumber }) => blockNumber), [1n, 2n, 3n, 4n, 5n]);
    assert.equal(door.calls.length, 3);
  });

  test("an argument of a wrong form is a typed error that names it, and nothing is sent", async () => {
    const identifier = { identifier: "0x0000000000000000000000000000000000000001", kind: "ethereum" };
    const signature = { accountId: "eip155:1:0x01", hash: new Uint8Array(32), signature: new Uint8Array(1) };
    const topic = topics.groupMessages(envelopes.groupId());
    const cases = [];
    for (const nothing of [undefined, null, 7, "text", {}]) {
      cases.push([() => backend.getInboxIds(nothing), /`identifiers` is not an array/]);
      cases.push([() => backend.verifySmartContractWalletSignatures(nothing), /`signatures` is not an array/]);
      cases.push([() => backend.publish(nothing), /`envelopes` is not an array/], [() => backend.settle(nothing), /`envelopes` is not an array/]);
    }
    for (const bad of [undefined, null, 7, {}, { kind: "ethereum" }, { identifier: 7, kind: "ethereum" }, { ...identifier, kind: "name" }]) {
      cases.push([() => backend.getInboxIds([identifier, bad]), /`identifiers\[1\]`/]);
    }
    for (const bad of [undefined, {}, { ...signature, hash: "00" }, { ...signature, signature: undefined }, { ...signature, blockNumber: "x" }]) {
      cases.push([() => backend.verifySmartContractWalletSignatures([signature, bad]), /`signatures\[1\]`/]);
    }
    for (const bad of [undefined, null, 7, {}, { kind: "picture" }, { kind: "group-message", data: "text" }]) {
      cases.push([() => backend.publish([post(envelopes.groupId(), "good"), bad]), /`envelopes\[1\]`/]);
    }
    for (const nothing of [undefined, null, 7, {}]) {
      cases.push([async () => backend.query(nothing), /`topics` is neither/], [() => backend.newest(nothing), /`topics` is neither/]);
      cases.push([async () => backend.query([topic, nothing]), /is not a topic/]);
    }
    for (const nothing of [undefined, null]) {
      cases.push([() => Backend.connect(nothing), /`url` is not/], [async () => topics.welcomes(nothing), /is not a topic/]);
    }
    for (const credential of [null, 7, {}]) cases.push([() => Backend.connect({ url: deployment.url, credential }), /`credential` is neither/]);
    for (const [call, named] of cases) {
      const error = await failure(call);
      assert.ok(error instanceof BackendError && error.code === "invalid-argument" && !error.retryable, `${named} ${error.stack}`);
      assert.match(error.message, named);
    }
    assert.equal(door.calls.length, 0);
    const subscription = backend.subscribe();
    for (const use of [(input) => subscription.add(input), (input) => subscription.remove(input)]) {
      for (const bad of [undefined, null, 7, {}, [undefined]]) assert.throws(() => use(bad), BackendError);
    }
    await subscription.return();
  });

  // API-284
  test("a request that is refused for good is not sent again, and one that failed for a while is, with the same bytes", async () => {
    const topic = topics.groupMessages(envelopes.groupId());
    const reads = {
      query: () => all(backend.query(topic, { pageSize: 1 })),
      newest: () => backend.newest(topic),
      ids: () => backend.getInboxIds([{ identifier: "0x0000000000000000000000000000000000000001", kind: "ethereum" }]),
      publish: () => backend.publish([post(envelopes.groupId(), "retried")]),
    };
    for (const [name, call] of Object.entries(reads)) {
      for (const status of [CODE.invalid, CODE.range, CODE.unimplemented, CODE.internal, 5, 7, 9]) {
        door.reset();
        door.inPlace = () => refusal(status, "no");
        const error = await failure(call);
        assert.ok(error instanceof BackendError && !error.retryable, `${name} ${status}`);
        assert.equal(door.calls.length, 1, `${name} ${status}`);
      }
      for (const status of [CODE.unavailable, CODE.deadline, CODE.exhausted]) {
        door.reset();
        door.inPlace = () => (door.calls.length === 1 ? refusal(status, "later") : undefined);
        await call();
        assert.equal(door.calls.length, 2, `${name} ${status}`);
        assert.deepEqual(door.calls[0].body, door.calls[1].body, `${name} ${status}`);
      }
    }
  });

  // API-284
  test("a stale identity update is given back to be built anew, and is not sent again", async () => {
    door.inPlace = () => refusal(CODE.aborted, "the history moved");
    const error = await failure(() => backend.publish([post(envelopes.groupId(), "stale")]));
    assert.deepEqual([error.code, error.isRefused, error.retryable, door.calls.length], ["aborted", true, false, 1]);
    assert.match(error.message, /read the inbox's identity topic/);
  });

  // API-224
  test("a publish whose answer was lost is sent again as it was, and stored once", async () => {
    const group = envelopes.groupId();
    door.inPlace = async ({ method }, pass) => {
      if (method !== "Publish" || door.calls.length > 2) return undefined;
      await (await pass()).arrayBuffer();
      throw new TypeError("the connection was lost");
    };
    const [meta] = await backend.publish([post(group, "once")]);
    assert.equal(door.calls.length, 3);
    assert.ok(door.calls.every(({ body }) => body.equals(door.calls[0].body)));
    door.reset();
    const stored = await all(backend.query(topics.groupMessages(group)));
    assert.deepEqual(stored.map((found) => found.meta), [meta]);
  });

  // API-224, API-290
  test("a publish without an outcome says so, and a read of its topics settles every envelope of it", async () => {
    const [group, other] = [envelopes.groupId(), envelopes.groupId()];
    const [before] = await published(group, "before");
    const sent = [post(group, "one"), post(other, "two")];
    let stored;
    door.reset();
    door.inPlace = async (_, pass) => {
      const { envelopeMetas } = await messageOf(await pass(), "xmtp.backend.v1.PublishResponse");
      stored = envelopeMetas.map(({ cursor }) => cursor.sequenceId);
      return refusal(CODE.range, "the answer is too long");
    };
    const error = await failure(() => backend.publish(sent));
    assert.deepEqual([error.code, error.isRefused, error.retryable, door.calls.length], ["out-of-range", false, false, 1]);
    assert.match(error.message, /settle/);
    door.reset();
    const never = post(group, "never published");
    const settled = await backend.settle([...sent, never], { after: before.sequenceId });
    assert.deepEqual(settled.map(({ outcome }) => outcome), ["stored", "stored", "not-stored"]);
    assert.deepEqual(settled.slice(0, 2).map(({ meta }) => meta.sequenceId), stored);
    const absent = ours(keyPackage(installation(), inboxId(account())));
    assert.deepEqual(await backend.settle([absent]), [{ outcome: "unknown" }]);
  });

  test("a call ends with its signal's reason", async () => {
    const reason = new Error("enough");
    assert.equal(await failure(() => backend.newest(topics.groupMessages(envelopes.groupId()), { signal: AbortSignal.abort(reason) })), reason);
    const controller = new AbortController();
    door.inPlace = () => {
      controller.abort(reason);
      return refusal(CODE.unavailable);
    };
    assert.equal(await failure(() => backend.publish([post(envelopes.groupId(), "x")], { signal: controller.signal })), reason);
    assert.equal(door.calls.length, 1);
  });

  // API-292, API-293, API-294, API-295
  test("every user of a connection sees one set of counts, as numbers and as text, and clears it for all", async () => {
    const topic = topics.groupMessages(envelopes.groupId());
    backend.clearStatistics();
    assert.deepEqual(backend.statistics(), CALLS_NONE);
    await backend.publish([post(envelopes.groupId(), "counted")]);
    await all(backend.query(topic));
    await all(backend.query(topic));
    await backend.newest([topic]);
    await backend.getInboxIds([{ identifier: "0x0000000000000000000000000000000000000001", kind: "ethereum" }]);
    door.inPlace = ({ method }) =>
      method.startsWith("Verify") ? answered("xmtp.backend.v1.VerifySmartContractWalletSignaturesResponse", { responses: [{ isValid: true }] }) : undefined;
    await backend.verifySmartContractWalletSignatures([{ accountId: "eip155:1:0x01", hash: new Uint8Array(32), signature: new Uint8Array() }]);
    const subscription = backend.subscribe(topic);
    await subscription.caughtUp();
    const counted = { publish: 1, query: 2, queryNewest: 1, subscribe: 1, subscribeStatic: 0, getInboxIds: 1, verifySmartContractWalletSignatures: 1 };
    assert.deepEqual(backend.statistics(), counted);
    const summary = backend.statisticsSummary();
    for (const [name, count] of Object.entries(counted)) assert.match(summary, new RegExp(`^${name} +${count}$`, "m"));
    backend.clearStatistics();
    assert.deepEqual(backend.statistics(), CALLS_NONE);
    await subscription.return();
    const { WebSocket } = globalThis;
    delete globalThis.WebSocket;
    try {
      const other = backend.subscribe(topic);
      await other.caughtUp();
      assert.deepEqual(backend.statistics(), { ...CALLS_NONE, subscribeStatic: 1 });
      await other.return();
    } finally {
      globalThis.WebSocket = WebSocket;
    }
  });
});

/** The ways a subscription may travel. */
const WAYS = {
  "over a WebSocket": () => () => undefined,
  "over a body, where no WebSocket gets through": () => {
    const { WebSocket } = globalThis;
    globalThis.WebSocket = class extends EventTarget {
      static OPEN = 1;
      static CONNECTING = 0;
      readyState = 0;
      constructor() {
        super();
        setImmediate(() => this.dispatchEvent(Object.assign(new Event("close"), { code: 1006 })));
      }
      close() {}
    };
    return () => {
      globalThis.WebSocket = WebSocket;
    };
  },
};

for (const [way, take] of Object.entries(WAYS)) {
  describe(`a subscription ${way}`, () => {
    let deployment;
    let backend;
    let restore;
    before(async () => {
      deployment = await Deployment.start({ shards: 4 });
      restore = take();
      backend = await Backend.connect({ url: deployment.url });
    });
    after(async () => {
      restore?.();
      backend?.close();
      await deployment?.stop();
    });
    const publish = (group, text) => backend.publish([post(group, text)]);

    test("gives what is stored, then what is published, and says when it has caught up", async () => {
      const group = envelopes.groupId();
      for (const text of ["one", "two"]) await publish(group, text);
      const subscription = backend.subscribe([topics.groupMessages(group), topics.commitLog(group)]);
      let isCaughtUp = false;
      const caughtUp = subscription.caughtUp().then(() => {
        isCaughtUp = true;
      });
      assert.deepEqual(await texts(subscription, 1), ["one"]);
      assert.equal(isCaughtUp, false);
      assert.deepEqual(await texts(subscription, 1), ["two"]);
      await caughtUp;
      const waiting = [subscription.next(), subscription.next()];
      await publish(group, "three");
      await publish(group, "four");
      assert.deepEqual((await Promise.all(waiting)).map(({ value }) => textOf(value)), ["three", "four"]);
      await subscription.return();
      assert.equal((await subscription.next()).done, true);
    });

    test("topics come and go, and one that is read again gives from its new cursor on, each envelope once", async () => {
      const [first, second] = [envelopes.groupId(), envelopes.groupId()];
      const [a, b] = [topics.groupMessages(first), topics.groupMessages(second)];
      const subscription = backend.subscribe();
      const [stored] = await publish(first, "a1");
      await publish(first, "a2");
      subscription.add(a);
      assert.deepEqual(await texts(subscription, 2), ["a1", "a2"]);
      subscription.add([a, { topic: b }]);
      await publish(second, "b1");
      assert.deepEqual(await texts(subscription, 1), ["b1"]);
      subscription.remove(a);
      subscription.add({ topic: a, after: stored.sequenceId });
      assert.deepEqual(await texts(subscription, 1), ["a2"]);
      subscription.remove(topics.bytes(b));
      await publish(second, "b2");
      await publish(first, "a3");
      assert.deepEqual(await texts(subscription, 1), ["a3"]);
      assert.deepEqual([...subscription.cursors().keys()], [a]);
      await subscription.return();
    });

    test("goes on after the deployment was away, without a gap and without a repetition", async () => {
      const group = envelopes.groupId();
      const subscription = backend.subscribe(topics.groupMessages(group));
      const expected = [];
      const read = [];
      for (let round = 0; round < 3; round += 1) {
        for (let at = 0; at < 5; at += 1) {
          expected.push(`${round} ${at}`);
          await publish(group, `${round} ${at}`);
        }
        read.push(...(await texts(subscription, 3)));
        await deployment.killRuntime();
      }
      read.push(...(await texts(subscription, expected.length - read.length)));
      assert.deepEqual(read, expected);
      const resumed = backend.subscribe(Array.from(subscription.cursors(), ([topic, after]) => ({ topic, after })));
      await publish(group, "last");
      assert.deepEqual(await texts(subscription, 1), ["last"]);
      assert.deepEqual(await texts(resumed, 1), ["last"]);
      await subscription.return();
      await resumed.return();
    });

    test("is refused by a typed error, and ends with its signal", async () => {
      assert.throws(() => backend.subscribe("00ff"), BackendError);
      assert.throws(() => backend.subscribe({ topic: topics.commitLog(envelopes.groupId()), after: -1n }), BackendError);
      const controller = new AbortController();
      const subscription = backend.subscribe(topics.commitLog(envelopes.groupId()), { signal: controller.signal });
      const next = subscription.next();
      controller.abort();
      assert.equal((await next).done, true);
    });
  });
}

describe("a deployment that pings often", () => {
  let deployment;
  before(async () => {
    const variables = { CONCLAVE_KEEPALIVE_INTERVAL_MS: "100", CONCLAVE_MAX_PONG_WAIT_MS: "300" };
    deployment = await Deployment.start({ shards: 1, variables });
  });
  after(() => deployment?.stop());

  // API-256
  test("is answered each time, so that the stream it would end goes on", async () => {
    const { WebSocket } = globalThis;
    let pongs = 0;
    globalThis.WebSocket = class extends WebSocket {
      send(bytes) {
        // One frame whose message is field 3, a Pong.
        if (bytes[5] === 0x1a) pongs += 1;
        super.send(bytes);
      }
    };
    try {
      const backend = await Backend.connect({ url: deployment.url });
      const group = envelopes.groupId();
      const subscription = backend.subscribe(topics.groupMessages(group));
      await until("more Pongs than a stream lives without", () => pongs >= 8);
      await backend.publish([post(group, "still there")]);
      assert.deepEqual(await texts(subscription, 1), ["still there"]);
      assert.equal(backend.statistics().subscribe, 1);
      backend.close();
    } finally {
      globalThis.WebSocket = WebSocket;
    }
  });
});

describe("a deployment that asks for credentials", () => {
  const KEY = "an-api-key-of-32-bytes-and-more-than-that";
  let deployment;
  before(async () => {
    deployment = await Deployment.start({ shards: 1, variables: { CONCLAVE_AUTH_ENABLED: "true", CONCLAVE_AUTH_API_KEY_app: KEY } });
  });
  after(() => deployment?.stop());

  test("is shown a token on calls and on WebSockets, and another when it refuses one", async () => {
    const group = envelopes.groupId();
    let asked = 0;
    const credential = () => Promise.resolve([`${KEY}-withdrawn`, KEY][asked++]);
    for (const given of [KEY, credential]) {
      const backend = await Backend.connect({ url: deployment.url, credential: given });
      const subscription = backend.subscribe(topics.groupMessages(group));
      await backend.publish([post(group, `by ${typeof given}`)]);
      while (!(await texts(subscription, 1)).includes(`by ${typeof given}`));
      backend.close();
    }
    assert.equal(asked, 2, "calls that are refused at once make one request for another token");
  });

  test("refuses a call for good when the next token is no better", async () => {
    let asked = 0;
    const backend = await Backend.connect({ url: deployment.url, credential: () => `wrong-${asked++}` });
    const error = await failure(() => backend.newest(topics.groupMessages(envelopes.groupId())));
    assert.deepEqual([error.code, asked], ["unauthenticated", 2]);
    const subscription = backend.subscribe(topics.groupMessages(envelopes.groupId()));
    assert.equal((await failure(() => subscription.next())).code, "unauthenticated");
    assert.equal((await subscription.next()).done, true);
    backend.close();
  });
});
