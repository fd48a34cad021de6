// `cargo xtask bench growth`: what a publish and a poll cost when a topic is long, and when there are many topics. The
// floor is the same request on the same shard when it held the fewest rows; what a bare object does for the same, measured
// beside both, takes out what else the machine did meanwhile.

import { Deployment } from "../tests/support/deployment.mjs";
import * as envelopes from "../tests/support/envelopes.mjs";
import { isQuick, report } from "./support/figures.mjs";
import { startFloor } from "./support/floor.mjs";
import { Connection } from "./support/http.mjs";
import { Side, addressOf, median } from "./support/load.mjs";
import * as requests from "./support/requests.mjs";

const STEPS = isQuick ? [100, 10_000] : [100, 10_000, 1_000_000];
const TURNS = isQuick ? 3 : 9;
const TURN_MS = 700;
const LOAD_BATCH = 1_000;
/** Envelopes that a poll answers. */
const POLL = 10;
/** Short bodies: growth is about rows. */
const text = requests.payload(64);

/** Publishes `count` envelopes, a thousand at a time, to the groups that `groupOf` names. */
async function load(port, count, groupOf) {
  const connections = await Promise.all(Array.from({ length: 4 }, () => Connection.open(port)));
  let left = count;
  await Promise.all(connections.map(async (connection) => {
    while (left > 0) {
      const list = Array.from({ length: Math.min(LOAD_BATCH, left) }, () => envelopes.groupMessage(groupOf(), text));
      left -= list.length;
      requests.expectSuccess(await connection.send(requests.publish(list).take()));
    }
    connection.close();
  }));
}

const floor = await startFloor();
const bareStore = new requests.Fresh(floor.request("one", "store", Buffer.from(text)));
const bareRead = floor.request("one", `rows/${POLL}`);
const BARE = { publish: () => bareStore.take(), poll: () => bareRead };

/** The median latency of a request in the median latencies of what a bare object does for the same, beside it. */
async function cost(address, name, next) {
  const sides = [
    await Side.open({ ...floor, inFlight: 1, next: BARE[name], expect: requests.expectStatusOk }),
    await Side.open({ ...address, inFlight: 1, next, expect: requests.expectSuccess }),
  ];
  const ratios = [];
  for (let turn = -1; turn < TURNS; turn += 1) {
    const [a, b] = [await sides[0].run(TURN_MS), await sides[1].run(TURN_MS)];
    if (turn >= 0) ratios.push(b.latencyMs / a.latencyMs);
  }
  for (const side of sides) side.close();
  return median(ratios);
}

try {
  for (const what of ["envelopes on one topic", "topics of one envelope"]) {
    const deployment = await Deployment.start({ shards: 1, direct: true });
    try {
      const address = addressOf(deployment);
      const [hot] = requests.groups(1);
      const groupOf = () => (what === "topics of one envelope" ? envelopes.groupId() : hot);
      const publish = requests.publish([envelopes.groupMessage(hot, text)]);
      const first = {};
      let held = 0;
      for (const rows of STEPS) {
        await load(address.port, rows - held, groupOf);
        held = rows;
        const connection = await Connection.open(address.port);
        const newest = await connection.send(publish.take());
        connection.close();
        const poll = requests.query([[envelopes.groupTopic(hot), requests.sequenceIdOf(newest) - 1n]], POLL);
        for (const [name, next] of [["publish", () => publish.take()], ["poll", () => poll]]) {
          const now = await cost(address, name, next);
          first[name] ??= now;
          report({
            what: `${name}, ${rows} ${what}`, unit: "times a bare object, p50", floor: first[name], backend: now, digits: 2,
            ratio: now / first[name], goal: rows === STEPS[0] ? null : 1.25, isMoreBetter: false,
          });
        }
      }
    } finally {
      await deployment.stop();
    }
  }
} finally {
  await floor.stop();
}
