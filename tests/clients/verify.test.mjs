// The verifier of exported histories in Node: no deployment, no browser, no network.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const entry = path.join(root, "target/client-package/dist/verify.js");
const kept = path.join(root, "crates/conversation/tests/export");
const { verify, VerifyError } = await import(pathToFileURL(entry));

const file = fs.readFileSync(path.join(kept, "history.jsonl"));
const registryKey = JSON.parse(fs.readFileSync(path.join(kept, "registry.json"), "utf8"));
const lines = file.toString().trimEnd().split("\n");
const fileOf = (...places) => places.map((place) => `${lines[place]}\n`).join("");

/** The code of an attempt that fails for its arguments. */
const codeOf = (attempt) => attempt.then(() => "taken", (error) => (error instanceof VerifyError ? error.code : error));

describe("the verifier in Node", () => {
  test("a whole export verifies, and the result says by whom each post is signed", async () => {
    const result = await verify(file, registryKey);
    assert.equal(result.verified, true);
    assert.equal(result.fromFirstPost, true);
    assert.match(result.conversationId, /^cnv_/);
    assert.equal(result.members.length, 4);
    for (const { agent, agentId, publicKey } of result.members) {
      assert.match(agent, /^agent:agent-\d$/);
      assert.match(agentId, /^agt_/);
      assert.equal(publicKey.crv, "Ed25519");
    }
    assert.deepEqual(result.posts.map(({ content }) => content[0].text), ["hello", "again", "elsewhere"]);
    const [first, second, third] = result.posts;
    assert.deepEqual([first.position, second.position, third.position], [0, 1, 2]);
    assert.equal(first.previousRecordHash, null);
    assert.equal(third.previousRecordHash, second.recordHash);
    assert.equal(result.head, third.recordHash);
    const everyone = result.members.map(({ agent }) => agent);
    for (const post of result.posts) {
      assert.deepEqual(post.actionSigners.map(({ agent }) => agent), everyone);
      assert.deepEqual(post.durabilitySigners.map(({ agent }) => agent), everyone);
      assert.ok(everyone.includes(post.author));
    }
    const [genesis, later] = result.anchors;
    assert.equal(result.anchors.length, 2);
    assert.deepEqual([genesis.anchorHash, genesis.position, genesis.voters.length], [first.anchorHash, 0, 0]);
    assert.deepEqual(
      [later.anchorHash, later.position, later.selectedRecordHash, later.previousAnchorHash],
      [third.anchorHash, 2, second.recordHash, first.anchorHash],
    );
    assert.deepEqual(later.voters.map(({ agent }) => agent), everyone);
  });

  test("every form of a file gives the same result, however its bytes are cut", async () => {
    const whole = await verify(file, registryKey);
    const chunks = (length) => {
      const parts = [];
      for (let at = 0; at < file.length; at += length) parts.push(file.subarray(at, at + length));
      return parts;
    };
    const iterable = async function* (length) {
      yield* chunks(length);
    };
    const forms = [
      file.toString(),
      new Uint8Array(file).buffer,
      new Blob([file]),
      new File([file], "history.jsonl"),
      new Blob([file]).stream(),
      fs.createReadStream(path.join(kept, "history.jsonl"), { highWaterMark: 1_000 }),
      iterable(1),
      iterable(7_777),
    ];
    for (const form of forms) assert.deepEqual(await verify(form, registryKey), whole);
  });

  test("a file that was tampered with is refused at its line, and what stands before it is given", async () => {
    const [head, tail] = [fileOf(0, 1), fileOf(3, 4)];
    const forged = lines[2].replace('"kind":"certified_record"', '"kind":"certified_recorD"');
    assert.notEqual(forged, lines[2]);
    for (const [text, line] of [
      [`${head}${forged}\n${tail}`, 3],
      [fileOf(0, 1, 3, 4), 3],
      [fileOf(0, 2, 1), 2],
      [fileOf(1), 1],
      [`${head}${lines[2]}`, 3],
      [`${head}\n`, 3],
      [file.toString().replaceAll("\n", "\r\n"), 1],
      ["", 1],
      ["x".repeat(300_000), 1],
    ]) {
      const result = await verify(text, registryKey);
      assert.equal(result.verified, false);
      assert.equal(result.line, line, result.reason);
      assert.ok(result.reason.length > 0);
      assert.equal(result.posts.length, Math.max(0, line - 2));
    }
    // The posts of the verified beginning are these of the whole.
    const { posts } = await verify(file, registryKey);
    const result = await verify(`${head}${forged}\n${tail}`, registryKey);
    assert.deepEqual([result.posts, result.head], [posts.slice(0, 1), posts[0].recordHash]);
  });

  test("a line of any length is refused without a copy of it in the module, whatever form the file has", async () => {
    await verify(file, registryKey);
    const { memory } = await (await import(pathToFileURL(path.join(root, "target/client-package/dist/conclave_web_client.js")))).default();
    const before = memory.buffer.byteLength;
    const long = Buffer.concat([Buffer.from(fileOf(0)), Buffer.alloc(64 * 1024 * 1024, "x"), Buffer.from("\n")]);
    const endless = async function* () {
      for (let at = 0; ; at += 1) yield at === 0 ? Buffer.from(fileOf(0)) : long.subarray(-4 * 1024 * 1024, -1);
    };
    for (const form of [long, long.subarray(0, -1), long.toString(), new Blob([long]), endless()]) {
      const result = await verify(form, registryKey);
      assert.deepEqual([result.verified, result.line, result.members.length], [false, 2, 4]);
      assert.match(result.reason, /longer than \d+ bytes/);
    }
    assert.ok(memory.buffer.byteLength - before < 1024 * 1024, `${memory.buffer.byteLength - before} bytes more`);
  });

  test("a file that ends early between lines is a beginning, and says up to which post", async () => {
    const { posts } = await verify(file, registryKey);
    const result = await verify(fileOf(0, 1, 2), registryKey);
    assert.deepEqual([result.verified, result.posts.length, result.head], [true, 2, posts[1].recordHash]);
    const empty = await verify(fileOf(0), registryKey);
    assert.deepEqual([empty.verified, empty.posts, empty.head], [true, [], undefined]);
  });

  test("an excerpt is taken only where one is asked for", async () => {
    const excerpt = fileOf(0, 4);
    assert.equal((await verify(excerpt, registryKey)).verified, false);
    const result = await verify(excerpt, registryKey, { excerpt: true });
    assert.deepEqual([result.verified, result.fromFirstPost, result.posts.length], [true, false, 1]);
    assert.equal((await verify(file, registryKey, { excerpt: true })).fromFirstPost, true);
  });

  test("another registry's key verifies nothing", async () => {
    const { members } = await verify(file, registryKey);
    const result = await verify(file, members[0].publicKey);
    assert.deepEqual([result.verified, result.line, result.members], [false, 1, []]);
    assert.match(result.reason, /Registry/);
  });

  test("arguments that cannot be used are typed errors", async () => {
    const unusable = [undefined, null, 1, {}, { ...registryKey, x: "AA" }, { ...registryKey, crv: "P-256" }];
    unusable.push("urn:ietf:params:oauth:jwk-thumbprint:sha-256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    for (const key of unusable) assert.equal(await codeOf(verify(file, key)), "invalid-options");
    for (const other of [undefined, null, 1, {}, [lines[0]]]) {
      assert.equal(await codeOf(verify(other, registryKey)), "invalid-options");
    }
    const texts = async function* () {
      yield lines[0];
    };
    assert.equal(await codeOf(verify(texts(), registryKey)), "invalid-options");
  });

  test("a reading that fails, or that is given up, rejects with its reason and lets go of the file", async () => {
    const reason = new Error("the disk is gone");
    let closed = 0;
    const failing = async function* () {
      yield file.subarray(0, 100);
      throw reason;
    };
    assert.equal(await codeOf(verify(failing(), registryKey)), reason);
    const controller = new AbortController();
    const stuck = async function* () {
      try {
        yield file.subarray(0, 100);
        controller.abort(reason);
        yield file.subarray(100, 200);
      } finally {
        closed += 1;
      }
    };
    assert.equal(await codeOf(verify(stuck(), registryKey, { signal: controller.signal })), reason);
    assert.equal(closed, 1);
    assert.equal(await codeOf(verify(file, registryKey, { signal: AbortSignal.abort(reason) })), reason);
  });

  test("a reading that never goes on is given up all the same", async () => {
    const reason = new Error("no longer wanted");
    let cancelled;
    const stream = new ReadableStream({
      cancel() {
        cancelled = true;
      },
    });
    const iterable = (async function* () {
      await new Promise(() => undefined);
      yield file;
    })();
    for (const silent of [stream, iterable]) {
      const controller = new AbortController();
      const verifying = verify(silent, registryKey, { signal: controller.signal });
      setImmediate(() => controller.abort(reason));
      assert.equal(await codeOf(verifying), reason);
    }
    assert.equal(cancelled, true);
  });

  test("it tells how far it is", async () => {
    const seen = [];
    await verify(file, registryKey, { onProgress: (progress) => seen.push(progress) });
    assert.deepEqual(seen.at(-1), { lines: 5, posts: 3, bytes: file.length });
  });

  test("the program of its documentation verifies a file with nothing but Node and no network", () => {
    const source = fs.readFileSync(path.join(root, "web-client/ts/verify.ts"), "utf8");
    const [, example] = /@example In Node[^\n]*\n \* ```js\n(.*?) \* ```/s.exec(source);
    const program = example
      .replaceAll(/^ \* ?/gm, "")
      .replace("@conclave/client/verify", pathToFileURL(entry))
      .replace("process.argv.slice(2)", "process.argv.slice(1)");
    // Whatever would leave the machine fails.
    const offline = "globalThis.fetch = () => { throw new Error('the network was asked') };\n";
    const run = (...names) =>
      spawnSync(process.execPath, ["--input-type=module", "--eval", program.replace("\n\n", `\n\n${offline}`), ...names], {
        cwd: kept,
        encoding: "utf8",
      });
    const { stdout, stderr } = run("history.jsonl", "registry.json");
    assert.match(stdout, /^3 posts, up to rch_[A-Za-z0-9_-]{43}\n$/, stderr);
    assert.match(run("registry.json", "registry.json").stderr, /^line 1: /);
  });
});
