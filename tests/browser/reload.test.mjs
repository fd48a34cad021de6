// A page that ends right after any of its durable commits, and is opened again.
//
// Each post is made by as many pairs of agents as it takes commits: the first pair's store stops after one more commit, the
// second's after two, and so on, at the author and, in other pairs, at the other member. Then their pages are loaded anew.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Deployment, temporaryFolder } from "../support/deployment.mjs";
import { EndpointPage } from "../support/endpoints.mjs";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/**
 * Pairs for each side. A post takes about 13 commits of each member, and a recovery with a post 25; a few more when messages come
 * one by one.
 */
const PAIRS = 14;

/** In how many places a side must have ended at least, so that a test says something. */
const PLACES_MIN = 10;

/** Agents of one page. */
const AGENTS_A_PAGE = 14;

/** Milliseconds within which all pairs have gone on. They share one machine. */
const ALL_SOON_MS = 90_000;

describe("a page that ends after a commit", () => {
  const state = temporaryFolder();
  const pages = [];
  /** `author` posts, `other` receives; the store of the one that `ending` names stops. */
  const pairs = [];
  const suite = inBrowser({ state: state.path });

  before(async () => {
    for (const ending of ["author", "other"]) {
      const group = Array.from({ length: PAIRS }, (_, number) => ({
        ending,
        commits: number + 1,
        author: `a-${ending}-${number}`,
        other: `b-${ending}-${number}`,
        posts: 0,
        given: [],
      }));
      pairs.push(...group);
      // A page takes all of its agents along: those that end are on pages of their own.
      for (const side of ["author", "other"]) {
        for (let first = 0; first < PAIRS; first += AGENTS_A_PAGE) {
          pages.push({ names: group.slice(first, first + AGENTS_A_PAGE).map((pair) => pair[side]), ends: side === ending });
        }
      }
    }
    await Promise.all(pages.map(async (opened) => {
      opened.page = await EndpointPage.open(suite.browser, suite.deployment.url);
      await opened.page.join(...opened.names);
    }));
  });
  after(() => state.remove());

  const pageOf = (name) => pages.find(({ names }) => names.includes(name)).page;
  const post = ({ author, other }, text) => pageOf(author).send(author, `agent:${other}`, text);
  /** Whether the other member was given every post, and the store knows that it took those of this page. */
  const isTaken = ({ posts, given }, { taken }) =>
    new Set([...given, ...taken].map(({ postId }) => postId)).size === posts && taken.every(({ isAcknowledged }) => isAcknowledged);

  /** Resolves when every pair is as `is` says, from what there is to see of its author and its other member. */
  const everyPair = async (what, is) => {
    let waiting;
    await until(`every pair to ${what}`, async () => {
      const seen = Object.assign({}, ...(await Promise.all(pages.map(({ page }) => page.pictures()))));
      waiting = pairs.filter((pair) => !is(pair, seen[pair.author], seen[pair.other])).map((pair) => [pair, seen[pair.author], seen[pair.other]]);
      return waiting.length === 0;
    }, ALL_SOON_MS).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(waiting)}`);
    });
  };

  /** Loads the pages of those that end anew, and opens their agents. */
  const end = () =>
    Promise.all(pages.filter(({ ends }) => ends).map(async ({ page, names }) => {
      const taken = await page.leave();
      for (const pair of pairs) {
        if (names.includes(pair.other)) pair.given.push(...taken[pair.other]);
        // What was not recorded when the page ended was never begun.
        if (names.includes(pair.author)) pair.isRecorded = (await page.recorded(pair.author)) === pair.posts;
      }
      await page.join(...names);
    }));

  /** Both hold the posts that were made and no other; the other member is given each, and none that it took before. */
  const agree = async () => {
    await everyPair("hold its posts and take what it is given", (pair, author, other) =>
      author.posts === pair.posts && other.posts === pair.posts && isTaken(pair, other));
    await Promise.all(pairs.map(async ({ author, other, posts, given }) => {
      const [own, theirs, { taken, ended }] = await Promise.all([
        pageOf(author).history(author, `agent:${other}`),
        pageOf(other).history(other, `agent:${author}`),
        pageOf(other).agent(other),
      ]);
      assert.equal(own.length, posts);
      assert.deepEqual(own, theirs, `${author} and ${other} hold one history`);
      assert.equal(ended, undefined);
      const again = taken.map(({ postId }) => postId);
      assert.equal(new Set(again).size, again.length, `${other} is given nothing twice by one page`);
      for (const { postId, isAcknowledged } of given) {
        assert.ok(!isAcknowledged || !again.includes(postId), `${other} is given again what it took`);
      }
    }));
  };

  /** Every pair makes a post, during which its store stops. Returns how many stopped, by side. */
  const round = async (text, meanwhile = () => undefined) => {
    await Promise.all(pages.filter(({ ends }) => ends).map(({ page, names }) =>
      page.stop(pairs.filter((pair) => names.includes(pair[pair.ending])).map((pair) => [pair[pair.ending], pair.commits]))));
    await meanwhile();
    await Promise.all(pairs.map((pair) => {
      pair.posts += 1;
      pair.isRecorded = true;
      return post(pair, text);
    }));
    const stopped = { author: 0, other: 0 };
    await everyPair("end or be done", (pair, author, other) => {
      pair.hasStopped = { author, other }[pair.ending].hasStopped;
      return pair.hasStopped || (author.sent.at(-1) === "sent" && isTaken(pair, other));
    });
    for (const { ending, hasStopped } of pairs) stopped[ending] += hasStopped;
    await end();
    await Promise.all(pairs.filter(({ isRecorded }) => !isRecorded).map((pair) => post(pair, text)));
    await agree();
    return stopped;
  };

  // CONV-N01, CONV-G17, CONV-M04, CONV-D11
  test("a first post is certified and delivered once, whichever commit its author or the other member ended after", async () => {
    const stopped = await round("begin");
    assert.ok(stopped.author >= PLACES_MIN && stopped.other >= PLACES_MIN, JSON.stringify(stopped));
  });

  // CONV-N01, CONV-G17, CONV-M04, CONV-D11
  test("so is a post after it, its acknowledgment included", async () => {
    const stopped = await round("go on");
    assert.ok(stopped.author >= PLACES_MIN && stopped.other >= PLACES_MIN, JSON.stringify(stopped));
  });

  // CONV-N01, CONV-G17, CONV-J01, CONV-J06
  test("so is one after the Router has become another instance, whichever commit of the recovery a member ended after", async () => {
    const { port } = new URL(suite.deployment.url);
    const stopped = await round("under another instance", async () => {
      await suite.deployment.stop();
      suite.deployment = await Deployment.start({ state: state.path, port, variables: { CONCLAVE_RESTORED: "once" } });
    });
    assert.ok(stopped.author >= PLACES_MIN && stopped.other >= PLACES_MIN, JSON.stringify(stopped));
  });
});
