// `cargo xtask bench query`: what it takes to read pages, beside a bare object that answers the same bytes.

import { Deployment } from "../tests/support/deployment.mjs";
import * as envelopes from "../tests/support/envelopes.mjs";
import { MEASURES, compare } from "./support/figures.mjs";
import { startFloor } from "./support/floor.mjs";
import { Connection } from "./support/http.mjs";
import { addressOf } from "./support/load.mjs";
import * as requests from "./support/requests.mjs";

const BODY_BYTES = 1024;
const PAGE = 1000;
const IN_FLIGHT = 4;
const TOPICS = 100;

const text = requests.payload(BODY_BYTES);

/** Publishes a page's worth, spread over the groups. */
async function fill(port, groups) {
  const connection = await Connection.open(port);
  const share = PAGE / groups.length;
  for (const group of groups) {
    const list = Array.from({ length: share }, () => envelopes.groupMessage(group, text));
    requests.expectSuccess(await connection.send(requests.publish(list).take()));
  }
  connection.close();
}

/** The bytes of one answer. */
async function lengthOf(port, request) {
  const connection = await Connection.open(port);
  const { body } = await connection.send(request);
  connection.close();
  return body.reduce((sum, piece) => sum + piece.length, 0);
}

const floor = await startFloor();
try {
  for (const shards of [1, 16]) {
    const deployment = await Deployment.start({ shards, direct: true });
    const { port, pid } = addressOf(deployment);
    const where = shards === 1 ? "one shard" : `${shards} shards`;
    try {
      const one = requests.groups(1);
      const many = requests.groups(TOPICS);
      await fill(port, one);
      await fill(port, many);
      const page = (groups) => requests.query(groups.map((group) => [envelopes.groupTopic(group), 0n]), PAGE);
      for (const [groups, goal] of shards === 1 ? [[one, 0.8]] : [[one, 0.8], [many, null]]) {
        const request = page(groups);
        // The floor answers as many rows of as many bytes: the backend's page, cut into equal pieces.
        const length = await lengthOf(port, request);
        const object = `page-${shards}-${groups.length}`;
        await fillFloor(object, Math.floor(length / PAGE));
        const sides = (method, aim) => ({
          measure: MEASURES.bytes,
          goal: aim,
          floor: {
            port: floor.port, pid: floor.pid, inFlight: IN_FLIGHT, next: constant(floor.request(object, `${method}/${PAGE}`)),
            expect: requests.expectStatusOk,
          },
          backend: { port, pid, inFlight: IN_FLIGHT, next: constant(request), expect: requests.expectSuccess },
        });
        const what = `page of ${PAGE} envelopes of 1 KiB of ${groups.length} topic(s), ${where}`;
        await compare(`${what}, against reading the rows`, sides("rows", goal));
        if (shards === 1) await compare(`${what}, against bytes kept in memory`, sides("memory", null));
      }
      await compare(`page of one envelope of ${TOPICS} topics, ${where}`, {
        measure: MEASURES.latency,
        floor: {
          port: floor.port, pid: floor.pid, inFlight: 1, next: constant(floor.request(`page-${shards}-1`, "rows/1")),
          expect: requests.expectStatusOk,
        },
        backend: {
          port, pid, inFlight: 1, expect: requests.expectSuccess,
          next: constant(requests.query(many.map((group) => [envelopes.groupTopic(group), 0n]), 1)),
        },
      });
    } finally {
      await deployment.stop();
    }
  }
} finally {
  await floor.stop();
}

function constant(bytes) {
  return () => bytes;
}

/** Gives an object of the floor a page's worth of rows. */
async function fillFloor(object, bytes) {
  const connection = await Connection.open(floor.port);
  const fresh = new requests.Fresh(floor.request(object, "store", Buffer.from(requests.payload(bytes))));
  for (let row = 0; row < PAGE; row += 1) requests.expectStatusOk(await connection.send(fresh.take()));
  connection.close();
}
