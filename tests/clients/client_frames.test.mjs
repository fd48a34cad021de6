// The package's reader of gRPC-Web frames: the same for every way to cut a body, and total.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { draws } from "../support/draws.mjs";
import { frame } from "../support/raw.mjs";

const { FrameReader, frame: framed, MESSAGE_BYTES_MAX } = await import("../../target/client-package/dist/transport/frames.js");
const { endOf } = await import("../../target/client-package/dist/transport/status.js");

const text = (value) => Buffer.from(value);

/** What a reader makes of pieces: the messages, and the end. */
function read(pieces) {
  const reader = new FrameReader();
  const arrivals = pieces.flatMap((piece) => reader.push(new Uint8Array(piece)));
  const ends = arrivals.filter((arrival) => "end" in arrival);
  assert.ok(ends.length <= 1 && (ends.length === 0 || "end" in arrivals.at(-1)), "nothing comes after an end");
  const messages = arrivals.flatMap((arrival) => ("message" in arrival ? [Buffer.from(arrival.message).toString()] : []));
  return { messages, end: reader.finish() };
}

describe("frames of a response", () => {
  const trailers = "grpc-status:3\r\ngrpc-message:a%20%C3%A9\r\ngrpc-status-details-bin:AQI\r\n";
  const body = Buffer.concat([frame(text("one")), frame(text("")), frame(text("three")), frame(text(trailers), 0x80)]);
  const whole = { messages: ["one", "", "three"], end: { code: "invalid-argument", message: "a é", details: new Uint8Array([1, 2]), isStated: true } };

  test("a body is read the same however it is cut in two or three", () => {
    for (let first = 0; first <= body.length; first += 1) {
      for (let second = first; second <= body.length; second += 1) {
        const pieces = [body.subarray(0, first), body.subarray(first, second), body.subarray(second)];
        assert.deepEqual(read(pieces), whole, `${first} ${second}`);
      }
    }
  });

  test("a body is read the same byte by byte", () => {
    assert.deepEqual(read([...body].map((byte) => [byte])), whole);
  });

  test("a body that ends before its trailers is of unknown outcome", () => {
    for (let length = 0; length < body.length; length += 1) {
      const { end } = read([body.subarray(0, length)]);
      assert.deepEqual([end.code, end.isStated], ["unavailable", false], `${length}`);
    }
  });

  test("what comes after the trailers is not read", () => {
    assert.deepEqual(read([body, frame(text("late"))]), whole);
  });

  test("any bytes are read or refused, the same however they are cut", () => {
    const draw = draws(7);
    for (let round = 0; round < 2_000; round += 1) {
      const garbage = Array.from({ length: draw(40) }, () => [0, 0, 0, 1, 0x80, draw(256)][draw(6)]);
      const cut = draw(garbage.length + 1);
      assert.deepEqual(read([garbage.slice(0, cut), garbage.slice(cut)]), read([garbage]), garbage.join());
    }
  });

  test("a frame that is too long, compressed or of an unknown flag ends the call, and not by the server's word", () => {
    const tooLong = Buffer.alloc(5);
    tooLong.writeUInt32BE(MESSAGE_BYTES_MAX + 1, 1);
    for (const bytes of [tooLong, frame(text("x"), 1), frame(text("x"), 0x81), frame(text("x"), 2), frame(Buffer.alloc(70_000), 0x80)]) {
      const { messages, end } = read([bytes]);
      assert.deepEqual([messages, end.code, end.isStated], [[], "internal", false]);
    }
  });

  test("a written frame is one that is read", () => {
    assert.deepEqual(Buffer.from(framed(text("hello"))), frame(text("hello")));
  });
});

describe("a status", () => {
  const status = (fields) => endOf((name) => fields[name]);

  test("is what the header says, and a code that is none is unknown", () => {
    assert.equal(status({}), undefined);
    assert.equal(status({ "grpc-status": "0" }).code, "ok");
    assert.equal(status({ "grpc-status": " 14 " }).code, "unavailable");
    for (const none of ["", "x", "17", "-1", "+0", "0x0", "1e1"]) assert.equal(status({ "grpc-status": none }).code, "unknown", none);
  });

  test("keeps escapes that are none, and details with padding or without", () => {
    assert.equal(status({ "grpc-status": "2", "grpc-message": "100% %zz %4" }).message, "100% %zz %4");
    for (const details of ["AQ==", "AQ"]) {
      assert.deepEqual(status({ "grpc-status": "2", "grpc-status-details-bin": details }).details, new Uint8Array([1]));
    }
    assert.equal(status({ "grpc-status": "2", "grpc-status-details-bin": "ä!" }).details.length, 0);
  });

  test("a trailer whose name is none becomes no status", () => {
    const reader = new FrameReader();
    reader.push(new Uint8Array(frame(text("grpc- status:0\r\n:0\r\ngrpc-status:5\r\n"), 0x80)));
    assert.equal(reader.finish().code, "not-found");
  });
});
