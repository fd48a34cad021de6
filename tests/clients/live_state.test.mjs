// What a reader of an endpoint's events is told first, without a browser.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../../target/client-package/dist/", import.meta.url));
const { BEGIN, LiveState } = await import(`${dist}live_state.js`);
const { StorageUse } = await import(`${dist}storage_use.js`);
const { SendError, StoreError } = await import(`${dist}errors.js`);

const ADDRESS = "agent:bob";
const online = { kind: "connection", state: "online", since: 1, detail: null, nextAttemptAt: null };
const recovery = { kind: "recovery", address: ADDRESS, waits: { phase: "catch-up", missing: [ADDRESS] } };
const stall = { kind: "stall", address: ADDRESS, waits: { for: "votes", missing: [ADDRESS] } };
const unavailable = { kind: "conversation", address: ADDRESS, state: "unavailable", detail: "because" };
const post = (stage) => ({ kind: "post", address: ADDRESS, author: "agent:alice", postId: "pst_1", stage });

describe("the present of an endpoint", () => {
  test("is the latest event of each subject, and nothing of what is at rest", () => {
    const live = new LiveState();
    for (const event of [online, unavailable, recovery, stall, post("recorded"), post("stored")]) {
      assert.deepEqual(live.take(event), [event]);
    }
    assert.deepEqual(live.current(), [online, unavailable, recovery, stall, post("stored")]);
    assert.deepEqual(live.state(), {
      connection: online,
      role: "waiting",
      storage: undefined,
      conversations: [unavailable],
      recoveries: [recovery],
      stalls: [stall],
      posts: [post("stored")],
    });
    live.take(post("certified"));
    live.take({ ...unavailable, state: "ready", detail: null });
    live.take({ ...recovery, waits: null });
    live.take({ ...stall, waits: null });
    assert.deepEqual(live.current(), [online]);
  });

  test("begins anew with the endpoint of another tab, and what the one before waited for has ended", () => {
    const live = new LiveState();
    for (const event of [online, unavailable, recovery, stall, post("stored")]) live.take(event);
    assert.deepEqual(live.take(BEGIN), [{ ...recovery, waits: null }, { ...stall, waits: null }]);
    assert.deepEqual(live.current(), []);
    assert.equal(live.state().connection.state, "connecting");
  });
});

describe("the use of the storage", () => {
  test("is full when a write was refused, or one behind another failure was", () => {
    const told = [];
    const use = new StorageUse(({ pressure }) => told.push(pressure));
    const refused = new StoreError("quota-exceeded", "no room");
    use.failed(new StoreError("closed", "gone"));
    use.failed(refused);
    use.failed(new SendError("persistence-failed", "not stored", { cause: refused }));
    assert.deepEqual(told, ["full", "full"]);
  });
});
