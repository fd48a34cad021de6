// The Worker's end of a message stream to an object, against an object that is played here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Connecting } from "../../edge/js/platform.js";

const LONG_MS = 3_600_000;

/** An object that opens its end of a message stream when it is told to. */
class Opened extends EventTarget {
  closedWith = [];
  #answer = Promise.withResolvers();

  getByName() {
    return { fetch: () => this.#answer.promise };
  }

  /** Opens it, and resolves once whoever waits for it has seen that. */
  async open() {
    this.#answer.resolve({ status: 101, webSocket: this });
    await new Promise(setImmediate);
  }

  accept() {}

  close(code) {
    this.closedWith.push(code);
  }
}

test("a stream that opens after it was given up is closed", async () => {
  const object = new Opened();
  const connecting = new Connecting(object, "shard-0", LONG_MS);
  connecting.giveUp();
  await object.open();
  assert.deepEqual(object.closedWith, [1000]);
});

test("a stream that opened and was not taken is closed", async () => {
  const object = new Opened();
  const connecting = new Connecting(object, "shard-0", LONG_MS);
  await object.open();
  connecting.giveUp();
  assert.deepEqual(object.closedWith, [1000]);
});

test("a stream that opens after its deadline is closed once nobody waits for it", async () => {
  const object = new Opened();
  const connecting = new Connecting(object, "shard-0", 1);
  assert.equal(await connecting.opened, undefined);
  connecting.giveUp();
  await object.open();
  assert.deepEqual(object.closedWith, [1000]);
});

test("a stream that is taken stays open", async () => {
  const object = new Opened();
  const connecting = new Connecting(object, "shard-0", LONG_MS);
  await object.open();
  await (await connecting.opened).take();
  assert.deepEqual(object.closedWith, []);
});
