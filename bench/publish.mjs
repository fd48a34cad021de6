// `cargo xtask bench publish`: what it takes to store an envelope, beside a bare object that stores a row.

import { Deployment } from "../tests/support/deployment.mjs";
import * as envelopes from "../tests/support/envelopes.mjs";
import { MEASURES, compare } from "./support/figures.mjs";
import { startFloor } from "./support/floor.mjs";
import { addressOf } from "./support/load.mjs";
import * as requests from "./support/requests.mjs";

const BODY_BYTES = 1024;
const BATCH = 100;
const WELCOMES = 8;
/** Topics that publishes are spread over: many more than shards. */
const GROUPS = 256;

const text = requests.payload(BODY_BYTES);
const choose = (list) => list[Math.floor(Math.random() * list.length)];

/** One group message of 1 KiB a request. */
function messages() {
  const ready = requests.groups(GROUPS).map((group) => requests.publish([envelopes.groupMessage(group, text)]));
  return () => choose(ready).take();
}

/** 100 group messages of 1 KiB a request, all of one group. */
function batches() {
  const list = (group) => Array.from({ length: BATCH }, () => envelopes.groupMessage(group, text));
  const ready = requests.groups(GROUPS / 16).map((group) => requests.publish(list(group)));
  return () => choose(ready).take();
}

/** A commit and the Welcomes of those it adds. */
function commits() {
  const make = (group) => {
    const added = Array.from({ length: WELCOMES }, () => envelopes.welcome(envelopes.installationKey(), text));
    return requests.publish([envelopes.commit(group, text), ...added]);
  };
  const ready = requests.groups(GROUPS).map(make);
  return () => choose(ready).take();
}

const floor = await startFloor();
try {
  const row = Buffer.from(text);
  const rows = Buffer.concat(Array.from({ length: BATCH }, () => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(row.length);
    return Buffer.concat([length, row]);
  }));
  const bare = (name, method, body) => {
    const fresh = new requests.Fresh(floor.request(name, method, body));
    return { port: floor.port, pid: floor.pid, next: () => fresh.take(), expect: requests.expectStatusOk };
  };
  for (const shards of [1, 16]) {
    const deployment = await Deployment.start({ shards, direct: true });
    const on = (next) => ({ ...addressOf(deployment), next, expect: requests.expectSuccess });
    const where = shards === 1 ? "one shard" : `${shards} shards`;
    const goals = shards === 1 ? { 1: 0.6, 64: 1.2 } : { 1: null, 64: 0.8 };
    try {
      for (const inFlight of [1, 64]) {
        await compare(`publish of one 1 KiB envelope, ${inFlight} in flight, ${where}`, {
          measure: MEASURES.requests,
          goal: goals[inFlight],
          floor: { ...bare("one", "store", row), inFlight },
          backend: { ...on(messages()), inFlight },
        });
      }
      await compare(`publish of ${BATCH} envelopes of 1 KiB, 8 in flight, ${where}`, {
        measure: MEASURES.rows(BATCH),
        goal: shards === 1 ? 0.8 : null,
        floor: { ...bare("one", "store-batch", rows), inFlight: 8 },
        backend: { ...on(batches()), inFlight: 8 },
      });
      if (shards === 1) {
        // The last envelope is malformed: all are decoded, encoded, hashed and admitted, and no shard is called.
        const refused = requests.publish([
          ...Array.from({ length: BATCH }, () => envelopes.groupMessage(envelopes.groupId(), text)), {},
        ]);
        const hashed = floor.request("hash", `x/${2 * BATCH}`, row);
        await compare("the Worker's part of a publish, against SHA-256 twice", {
          measure: MEASURES.cpu(BATCH),
          goal: 10,
          floor: { ...bare("hash", "x", row), next: () => hashed, inFlight: 4 },
          backend: { ...on(() => refused.take()), expect: requests.expectRefusal, inFlight: 4 },
        });
      }
      if (shards > 1) {
        await compare(`publish of a commit and ${WELCOMES} Welcomes over ${where}`, {
          measure: MEASURES.latency,
          goal: 3,
          floor: { ...bare("two", "pair", row), inFlight: 1 },
          backend: { ...on(commits()), inFlight: 1 },
        });
      }
    } finally {
      await deployment.stop();
    }
  }
} finally {
  await floor.stop();
}
