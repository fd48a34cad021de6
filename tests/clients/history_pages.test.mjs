// Reading a history page by page, over a store that a test answers for.

import assert from "node:assert/strict";
import fs from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { exportHistory, History, Snapshots } = await import(`${root}target/client-package/dist/history.js`);
const { HistoryError } = await import(`${root}target/client-package/dist/errors.js`);

const file = fs.readFileSync(`${root}crates/conversation/tests/export/history.jsonl`, "utf8");
const [descriptor, ...items] = file.trimEnd().split("\n");
/** A place before which so many items of the file stand. */
const place = (at) => {
  const before = items.slice(0, at).map((item) => JSON.parse(item).kind);
  return [before.filter((kind) => kind === "certified_record").length, before.filter((kind) => kind !== "certified_record").length];
};
const end = place(items.length);

/** A seat at a store that gives `sizes` items a page, one page after another. */
const seatOf = (...sizes) => {
  let at = 0;
  return {
    request: async () => {
      const from = at;
      at += sizes.shift();
      const head = { end, head: null, from: place(from), next: place(at) };
      return [JSON.stringify(head), descriptor, ...items.slice(from, at)].join("\n");
    },
  };
};
const read = (seat) => new History(seat, new Snapshots(), "agent:bob", {});

describe("pages of a history", () => {
  test("an export has everything, however many items a page has", async () => {
    for (const sizes of [[items.length], [1, items.length - 1], items.map(() => 1)]) {
      assert.equal(await (await exportHistory(seatOf(...sizes), "agent:bob", undefined)).text(), file);
      assert.equal((await read(seatOf(...sizes))).entries.length, end[0]);
    }
  });

  test("a page that is empty before the end fails the reading: what is missing is not passed over in silence", async () => {
    for (const sizes of [[0], [1, 0]]) {
      for (const reading of [() => exportHistory(seatOf(...sizes), "agent:bob", undefined), () => read(seatOf(...sizes))]) {
        await assert.rejects(async () => await reading(), (error) => error instanceof HistoryError && error.code === "corrupt");
      }
    }
  });
});
