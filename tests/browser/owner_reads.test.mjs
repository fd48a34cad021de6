// What an owner reads of its own store: conversations, pages, proofs, and an export that anybody can verify.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import path from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { verify } = await import(pathToFileURL(path.join(root, "target/client-package/dist/verify.js")));

const TEXTS = ["zero", "one", "two", "three", "four"];

describe("owner reads", () => {
  const suite = inBrowser();
  let pages;

  /** A tab with the agent's endpoint in `window.endpoint`: the store's owner if it is the first of its context. */
  const tab = async (context, name) => {
    const page = await context.newPage();
    await page.goto(`${suite.deployment.url}/favicon.svg`);
    await page.goto(`${suite.deployment.url}/`);
    await page.evaluate(async (agent) => {
      const { Endpoint } = await import("/client/index.js");
      window.endpoint = await Endpoint.open({ url: location.origin, name: agent, storageName: `store of ${agent}` });
    }, name);
    return page;
  };

  before(async () => {
    pages = [];
    for (const name of ["reader", "writer"]) pages.push(await tab(await suite.browser.newContext(), name));
    // Members of objects whose names look like numbers are ordered differently by JavaScript and by canonical JSON.
    await pages[0].evaluate(async (texts) => {
      for (const text of texts) {
        const content = [{ type: "text", text }, { type: "data", value: { 9: 1, 10: { recordCore: text, recordHash: null } } }];
        await window.endpoint.send("agent:writer", content);
      }
    }, TEXTS);
  });

  test("conversations are listed with their members and the number of their posts", async () => {
    let conversation;
    let others;
    // The author's last post may be certified there before it is here.
    await until("every post to be certified here too", async () => {
      [conversation, ...others] = await pages[1].evaluate(() => window.endpoint.conversations());
      return conversation.posts >= TEXTS.length;
    });
    assert.deepEqual(others, []);
    assert.equal(conversation.address, "agent:reader");
    assert.deepEqual([...conversation.members].sort(), ["agent:reader", "agent:writer"]);
    assert.equal(conversation.posts, TEXTS.length);
  });

  test("pages are of one snapshot while posts arrive, and the next reading sees these", async () => {
    const seen = await pages[1].evaluate(async () => {
      const texts = (page) => page.entries.map(({ content }) => content[0].text);
      const first = await window.endpoint.history("agent:reader", { limit: 2 });
      await window.endpoint.send("agent:reader", "late");
      const second = await window.endpoint.history("agent:reader", { continuation: first.next, limit: 2 });
      const again = await window.endpoint.history("agent:reader", { continuation: first.next, limit: 1 });
      const last = await window.endpoint.history("agent:reader", { continuation: second.next });
      const every = [];
      for await (const { content } of window.endpoint.history("agent:reader", { limit: 4 })) every.push(content[0].text);
      return {
        pages: [first, second, again, last].map(texts),
        totals: [first, second, again, last].map(({ total }) => total),
        ends: last.next === undefined,
        positions: second.entries.map(({ position }) => position),
        every,
      };
    });
    assert.deepEqual(seen.pages, [["zero", "one"], ["two", "three"], ["two"], ["four"]]);
    assert.deepEqual(seen.totals, [5, 5, 5, 5]);
    assert.deepEqual(seen.positions, [2, 3]);
    assert.ok(seen.ends);
    assert.deepEqual(seen.every, [...TEXTS, "late"]);
  });

  test("a reading begins after a record or a number of posts; what cannot be meant is a typed error", async () => {
    const { after: rest, codes } = await pages[1].evaluate(async () => {
      const { endpoint } = window;
      const read = (options, address = "agent:reader") => endpoint.history(address, options);
      const code = (attempt) => Promise.resolve(attempt).then(() => "taken", (error) => error.code);
      const { entries, next } = await read({ limit: 3 });
      const hashes = async (options) => (await read(options)).entries.map(({ recordHash }) => recordHash);
      const last = entries.at(-1).recordHash;
      const [byHash, byCount] = [await hashes({ after: last }), await hashes({ after: 3 })];
      endpoint.releaseHistory(next);
      const foreign = (await read({ limit: 1 })).next;
      return {
        after: { byHash, byCount, behind: await hashes({ after: 99 }) },
        codes: {
          released: await code(read({ continuation: next })),
          foreign: await code(read({ continuation: foreign }, "agent:nobody")),
          invented: await code(read({ continuation: `${foreign}.x` })) + (await code(read({ continuation: "x.1.0" }))),
          unknownRecord: await code(read({ after: last.replace(/.$/, last.endsWith("A") ? "E" : "A") })),
          nobody: await code(read({}, "agent:nobody")),
          address: await code(read({}, "nobody")),
          refused: await Promise.all(
            [{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { after: -1 }, { after: {} }, { after: 1, continuation: next }].map((options) =>
              code(read(options))),
          ),
          aborted: await Promise.resolve(read({ signal: AbortSignal.abort("enough") })).catch((reason) => reason),
        },
      };
    });
    assert.equal(rest.byHash.length, 3);
    assert.deepEqual(rest.byCount, rest.byHash);
    assert.deepEqual(rest.behind, []);
    assert.equal(codes.released, "invalid-continuation");
    assert.equal(codes.foreign, "invalid-continuation");
    assert.match(codes.invented, /invalid-continuation$/);
    assert.equal(codes.unknownRecord, "not-found");
    assert.equal(codes.nobody, "not-found");
    assert.equal(codes.address, "invalid-address");
    assert.deepEqual([...new Set(codes.refused)], ["invalid-options"]);
    assert.equal(codes.aborted, "enough");
  });

  test("snapshots are bounded: of more, the one unused for longest is released", async () => {
    const codes = await pages[1].evaluate(async () => {
      const { HISTORY_SNAPSHOTS_MAX } = await import("/client/index.js");
      const read = (options) => window.endpoint.history("agent:reader", { limit: 1, ...options });
      const code = (continuation) => read({ continuation }).then(() => "read", (error) => error.code);
      const nexts = [];
      for (let made = 0; made < HISTORY_SNAPSHOTS_MAX; made += 1) nexts.push((await read({})).next);
      const used = await code(nexts[0]);
      nexts.push((await read({})).next);
      return [used, await code(nexts[0]), await code(nexts[1]), await code(nexts[2]), await code(nexts.at(-1))];
    });
    assert.deepEqual(codes, ["read", "read", "invalid-continuation", "read", "read"]);
  });

  test("a proof holds the exact bytes that were signed, each signature, and a file that verifies elsewhere", async () => {
    const [proof, key, code] = await pages[1].evaluate(async () => {
      const { endpoint } = window;
      const { entries } = await endpoint.history("agent:reader", { after: 2, limit: 1 });
      const [{ postId, author }] = entries;
      const proof = await endpoint.proof("agent:reader", postId, { author });
      // A signature by hand, as a stranger would check it.
      const [{ message, signature, statement }] = proof.signatures.values();
      const { members } = JSON.parse(proof.membership);
      const cards = members.map(({ payload }) => JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))));
      const { publicKey } = cards.find(({ agentId }) => agentId === statement.signerAgentId);
      const imported = await crypto.subtle.importKey("jwk", publicKey, "Ed25519", false, ["verify"]).catch(() => undefined);
      const signed = new TextEncoder().encode(`${message.signatures[0].protected}.${message.payload}`);
      const holds = imported === undefined ? true : await crypto.subtle.verify("Ed25519", imported, signature, signed);
      const missing = endpoint.proof("agent:reader", postId, { author: "agent:writer" });
      return [
        {
          ...proof,
          entry: entries[0],
          holds,
          signatures: [...proof.signatures.values()].map((each) => ({ ...each, signature: each.signature.length })),
          votes: [...proof.votes.values()].map((each) => ({ ...each, signature: each.signature.length })),
        },
        await endpoint.registryKey(),
        await missing.catch((error) => error.code),
      ];
    });
    assert.equal(code, "not-found");
    assert.ok(proof.holds);
    const preimage = Buffer.from(`org.social-harness/client/v2/record\0${proof.recordCore}`);
    assert.equal(proof.recordHash, `rch_${createHash("sha256").update(preimage).digest("base64url")}`);
    for (const [statements, kind, subject] of [
      [proof.signatures, "action_signature", { actionHash: proof.actionHash }],
      [proof.votes, "durability_vote", { recordHash: proof.recordHash }],
    ]) {
      assert.deepEqual(statements.map(({ agent }) => agent).sort(), ["agent:reader", "agent:writer"]);
      for (const { statement, signature, agentId } of statements) {
        assert.deepEqual([statement.kind, statement.signerAgentId, signature], [kind, agentId, 64]);
        for (const [name, value] of Object.entries(subject)) assert.equal(statement[name], value);
      }
    }
    const result = await verify(proof.file, key, { excerpt: true });
    assert.equal(result.verified, true);
    assert.deepEqual(result.posts, [{ ...proof.entry, position: 0 }]);
    assert.equal((await verify(proof.file, key)).verified, false);
  });

  test("an export is downloaded, verifies in the page and in Node, and shows what each member holds", async () => {
    const download = await Promise.all([
      pages[0].waitForEvent("download"),
      pages[0].evaluate(async () => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(await window.endpoint.export("agent:writer"));
        link.download = "history.jsonl";
        link.click();
      }),
    ]).then(([started]) => started);
    const key = await pages[0].evaluate(() => window.endpoint.registryKey());
    const chunks = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    const file = Buffer.concat(chunks);
    const inNode = await verify(file, key);
    assert.equal(inNode.verified, true, inNode.reason);
    const inPage = await pages[1].evaluate(async ([text, registryKey]) => {
      const { verify } = await import("/client/verify.js");
      return await verify(new Blob([text]), registryKey);
    }, [file.toString(), key]);
    assert.deepEqual(JSON.parse(JSON.stringify(inNode)), inPage);
    assert.deepEqual(inPage.posts.map(({ content }) => content[0].text), [...TEXTS, "late"]);
    for (const [at, page] of pages.entries()) {
      const address = ["agent:writer", "agent:reader"][at];
      const held = await page.evaluate(async (from) => (await window.endpoint.history(from)).entries, address);
      // Members may keep different signatures of one record.
      const core = ({ actionSigners, durabilitySigners, ...rest }) => rest;
      assert.deepEqual(held.map(core), inPage.posts.map(core));
    }
    const lines = file.toString().split("\n");
    const tampered = [lines[0], lines[1], lines[2].replace('"text":"one"', '"text":"ten"'), ...lines.slice(3)].join("\n");
    const refused = await verify(tampered, key);
    assert.deepEqual([refused.verified, refused.line, refused.posts.length], [false, 3, 1]);
  });

  // CONV-G11, CONV-G12
  test("a read that reaches a bad row fails and names it; one that does not is not disturbed", async () => {
    const seen = await pages[0].evaluate(async () => {
      const { endpoint } = window;
      const database = await new Promise((resolve, reject) => {
        const opening = indexedDB.open("store of reader");
        opening.onsuccess = () => resolve(opening.result);
        opening.onerror = () => reject(opening.error);
      });
      const ended = (request) =>
        new Promise((resolve, reject) => {
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
      const [, { recordHash }] = (await endpoint.history("agent:writer")).entries;
      const table = () => database.transaction("protocol_evidence", "readwrite").objectStore("protocol_evidence");
      const keys = await ended(table().getAllKeys());
      const key = keys.find((parts) => parts.includes("durability") && parts.includes(recordHash));
      const kept = await ended(table().get(key));
      const row = JSON.parse(new TextDecoder().decode(kept));
      const filed = { ...row, canonical_evidence: row.canonical_evidence.replace(/(?<="signature":")./, (first) => (first === "_" ? "A" : "_")) };
      await ended(table().put(new TextEncoder().encode(JSON.stringify(filed)), key));
      const failure = async (attempt) => {
        try {
          await attempt;
          return "read";
        } catch (error) {
          return `${error.code}: ${error.message}`;
        }
      };
      const { postId } = (await endpoint.history("agent:writer", { after: 2 })).entries[0];
      const outcomes = {
        whole: await failure(endpoint.history("agent:writer")),
        exported: await failure(endpoint.export("agent:writer")),
        before: await failure(endpoint.history("agent:writer", { limit: 1 })),
        after: await failure(endpoint.proof("agent:writer", postId)),
      };
      await ended(table().put(kept, key));
      outcomes.mended = await failure(endpoint.history("agent:writer"));
      database.close();
      return { outcomes, key: key.join() };
    });
    for (const failed of [seen.outcomes.whole, seen.outcomes.exported]) {
      assert.match(failed, /^corrupt: .*protocol_evidence/);
      assert.ok(failed.includes(seen.key.split(",").at(-1)), `${failed} names ${seen.key}`);
    }
    assert.deepEqual([seen.outcomes.before, seen.outcomes.after, seen.outcomes.mended], ["read", "read", "read"]);
  });

  test("an attached tab reads the same, and goes on in its snapshot when the owner is gone", async () => {
    const owner = pages[1];
    const other = await tab(owner.context(), "writer");
    const exported = (page) => page.evaluate(async () => (await window.endpoint.export("agent:reader")).text());
    assert.equal(await exported(other), await exported(owner));
    const first = await other.evaluate(async () => {
      window.page = await window.endpoint.history("agent:reader", { limit: 2 });
      const { postId } = window.page.entries[0];
      const { recordHash, file } = await window.endpoint.proof("agent:reader", postId);
      return [window.page.entries.length, recordHash === window.page.entries[0].recordHash, file.split("\n").length];
    });
    assert.deepEqual(first, [2, true, 3]);
    await owner.evaluate(() => window.endpoint.send("agent:reader", "last of the owner"));
    await owner.close();
    const rest = await other.evaluate(async () => {
      const { entries, total, next } = await window.endpoint.history("agent:reader", { continuation: window.page.next });
      return [entries.map(({ content }) => content[0].text), total, next === undefined];
    });
    assert.deepEqual(rest, [[...TEXTS.slice(2), "late"], 6, true]);
  });
});
