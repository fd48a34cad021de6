// Agents talk through the demo in real windows, across reloads and restarts.

import assert from "node:assert/strict";
import { after, afterEach, beforeEach, describe, test } from "node:test";
import { AgentWindow } from "../support/browser.mjs";
import { temporaryFolder } from "../support/deployment.mjs";
import { inBrowser } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

let sequence = 0;
/** A name nobody has taken yet. */
const named = (name) => `${name}-${(sequence += 1)}`;

describe("the demo", () => {
  const state = temporaryFolder();
  const suite = inBrowser({ state: state.path });
  let contexts;
  after(() => state.remove());
  beforeEach(() => {
    contexts = [];
  });
  afterEach(() => Promise.all(contexts.map((context) => context.close())));

  /** A profile of its own, as another person's browser would be. */
  const profile = async () => {
    const context = await suite.browser.newContext();
    contexts.push(context);
    return context;
  };
  const agent = async (name) => AgentWindow.open(await profile(), suite.deployment.url, named(name));

  /** Two agents that hold one certified post. */
  const pair = async () => {
    const [alice, bob] = [await agent("alice"), await agent("bob")];
    await alice.talkTo(bob.name);
    await alice.say("first");
    await bob.join(`agent:${alice.name}`);
    await alice.holds(["first"]);
    await bob.holds(["first"]);
    return [alice, bob];
  };

  // CONV-E13, CONV-M06
  test("two windows talk, and both hold the same certified posts in the same order", async () => {
    const [alice, bob] = await pair();
    await bob.say("second");
    await alice.holds(["first", "second"]);
    await alice.say("third");
    await bob.holds(["first", "second", "third"]);
    await alice.holds(["first", "second", "third"]);
    assert.deepEqual(alice.said, []);
    assert.deepEqual(bob.said, []);
  });

  test("an open post shows its hashes and signers, and verifies in the browser", async () => {
    const [alice, bob] = await pair();
    const post = bob.page.getByTestId("post").first();
    await post.getByTestId("proof-summary").click();
    assert.match(await post.getByTestId("record-hash").textContent(), /^rch_[A-Za-z0-9_-]{43}$/);
    assert.equal(await post.getByTestId("action-signers").locator("dt").count(), 2);
    assert.equal(await post.getByTestId("durability-signers").locator("dt").count(), 2);
    await post.getByTestId("verify").click();
    await post.getByTestId("verdict").waitFor();
    assert.equal(await post.getByTestId("verdict").getAttribute("data-valid"), "true");
    const own = alice.page.getByTestId("post").first();
    await own.getByTestId("proof-summary").click();
    assert.equal(
      await own.getByTestId("record-hash").textContent(),
      await post.getByTestId("record-hash").textContent(),
    );
  });

  // CONV-N01, CONV-D11, CONV-M04
  test("a reload of both windows in the middle of a post loses and repeats nothing", async () => {
    const [alice, bob] = await pair();
    for (let round = 0; round < 3; round += 1) {
      const texts = ["first", ...Array.from({ length: round + 1 }, (_, number) => `round ${number}`)];
      await alice.say(`round ${round}`);
      await alice.sees(`round ${round}`);
      await Promise.all([alice.page.reload(), bob.page.reload()]);
      await Promise.all([alice.isOpen(), bob.isOpen()]);
      await alice.holds(texts);
      await bob.holds(texts);
    }
  });

  // CONV-D11
  test("a post written while the other window is closed is certified when it opens again", async () => {
    const [alice, bob] = await pair();
    const url = bob.page.url();
    await bob.page.close();
    await alice.say("are you there?");
    await alice.sees("are you there?");
    await alice.reload();
    assert.deepEqual((await alice.posts()).map(({ stage }) => stage === "certified"), [true, false]);
    const again = new AgentWindow(await contexts[1].newPage(), bob.name);
    await again.page.goto(url);
    await again.isOpen();
    await alice.holds(["first", "are you there?"]);
    await again.holds(["first", "are you there?"]);
  });

  // CONV-H12, API-224
  test("a runtime killed in the middle of posts loses and repeats nothing", async () => {
    const [alice, bob] = await pair();
    const texts = ["first"];
    for (let round = 0; round < 3; round += 1) {
      const text = `before kill ${round}`;
      await alice.say(text);
      await alice.sees(text);
      await suite.deployment.killRuntime();
      texts.push(text);
      await alice.holds(texts);
      await bob.holds(texts);
    }
    await bob.say("after the kills");
    await alice.holds([...texts, "after the kills"]);
  });

  // CONV-N01, CONV-H12
  test("a kill of the runtime and a reload of both pages at once lose and repeat nothing", async () => {
    const [alice, bob] = await pair();
    await alice.say("through everything");
    await alice.sees("through everything");
    const killed = suite.deployment.killRuntime();
    await Promise.all([alice, bob].map((window) => window.reloadWhile(killed)));
    await alice.holds(["first", "through everything"]);
    await bob.holds(["first", "through everything"]);
  });

  // CONV-A01, CONV-A08, CONV-E13
  test("a group of four talks, and every member holds the same history", async () => {
    const members = [];
    for (const name of ["ann", "ben", "cem", "dee"]) members.push(await agent(name));
    const names = members.map(({ name }) => name).sort();
    const address = `group:${names.join(",")}`;
    const [ann, ben, cem, dee] = members;
    await ann.talkTo(cem.name, dee.name, ben.name);
    await ann.say("hello, all");
    for (const member of [ben, cem, dee]) await member.join(address);
    const texts = ["hello, all"];
    for (const member of members) await member.holds(texts);
    for (const member of [dee, cem, ben]) {
      await member.say(`from ${member.name}`);
      texts.push(`from ${member.name}`);
      for (const other of members) await other.holds(texts);
    }
  });

  // CONV-D01, CONV-D05
  test("posts written by both at once are all certified, in one order", async () => {
    const [alice, bob] = await pair();
    await Promise.all([alice.say("from alice"), bob.say("from bob")]);
    const order = await until("three certified posts", async () => {
      const posts = await alice.posts();
      return posts.length === 3 && posts.every(({ stage }) => stage === "certified") && posts.map(({ text }) => text);
    });
    assert.deepEqual([...order].sort(), ["first", "from alice", "from bob"]);
    await bob.holds(order);
  });

  test("what is refused says why: a name that breaks the grammar, a taken one, an agent nobody knows", async () => {
    const context = await profile();
    const page = await context.newPage();
    const window = new AgentWindow(page, "unnamed");
    await page.goto(suite.deployment.url);
    await page.getByTestId("name-input").fill("Not A Name");
    await page.getByTestId("name-submit").click();
    assert.match(await window.alert(), /name/i);

    const alice = await agent("alice");
    await page.getByTestId("name-input").fill(alice.name);
    await page.getByTestId("name-submit").click();
    await page.getByRole("alert").filter({ hasText: /taken|belongs/i }).waitFor();

    await alice.talkTo("nobody-of-this-name");
    await alice.say("hello?");
    await alice.page.getByRole("alert").filter({ hasText: "nobody-of-this-name" }).waitFor();
    assert.equal(await alice.page.getByTestId("post-input").inputValue(), "hello?");
    assert.deepEqual(await alice.posts(), []);
  });

  test("who reads further up is left there, who is at the end stays there, and a failure is in view", async () => {
    const [alice, bob] = await pair();
    const texts = ["first"];
    for (let number = 0; number < 8; number += 1) {
      await alice.say(`post ${number}`);
      texts.push(`post ${number}`);
    }
    await bob.holds(texts);
    await alice.holds(texts);
    await alice.page.evaluate(() => window.scrollTo(0, 0));
    await bob.say("while alice reads");
    await alice.holds([...texts, "while alice reads"]);
    assert.equal(await alice.page.evaluate(() => window.scrollY), 0);
    await bob.holds([...texts, "while alice reads"]);
    const isInView = (element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top >= 0 && bottom <= window.innerHeight;
    };
    assert.equal(await bob.page.getByTestId("post-submit").evaluate(isInView), true);
    await bob.say("x".repeat(32_769));
    await bob.alert();
    assert.equal(await bob.page.getByRole("alert").evaluate(isInView), true);
  });

  test("a link that is cut in the middle of a character opens the agent all the same", async () => {
    const alice = await agent("alice");
    await alice.page.goto("about:blank");
    await alice.page.goto(`${suite.deployment.url}/?agent=${alice.name}#agent:%E0%A4%A`);
    await alice.isOpen();
    assert.equal(await alice.page.getByTestId("dismiss").count(), 0);
  });

  test("a second click on an agent's name opens it once", async () => {
    const alice = await agent("alice");
    await alice.page.getByTestId("leave").click();
    await alice.page.getByTestId("remembered-agent").dblclick();
    await alice.isOpen();
    assert.equal(await alice.page.evaluate(() => document.activeElement.id), "members");
    assert.equal(await alice.page.getByTestId("dismiss").count(), 0);
  });

  test("more agents than a browser has connections to a server talk in one browser", async () => {
    const context = await profile();
    const windows = [];
    for (let number = 0; number < 7; number += 1) {
      windows.push(await AgentWindow.open(context, suite.deployment.url, named("many")));
    }
    const [one] = windows;
    const last = windows.at(-1);
    await one.talkTo(last.name);
    await one.say("there is room to speak");
    await last.join(`agent:${one.name}`);
    await last.holds(["there is room to speak"]);
    await one.holds(["there is room to speak"]);
  });

  // CONV-G18
  // CONV-G18
  test("the same agent in a second window of one browser works through the first, and goes on when that is closed", async () => {
    const [alice, bob] = await pair();
    const second = await AgentWindow.open(alice.page.context(), suite.deployment.url, alice.name);
    await second.talkTo(bob.name);
    await second.say("from the second window");
    for (const window of [alice, second, bob]) await window.holds(["first", "from the second window"]);
    await alice.page.close();
    await second.say("after the first was closed");
    for (const window of [second, bob]) await window.holds(["first", "from the second window", "after the first was closed"]);
  });
});
