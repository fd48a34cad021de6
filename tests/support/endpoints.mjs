// Agents of the package in pages, several to a page, without the demo.

import { watch } from "./browser.mjs";
import { SOON_MS, until } from "./until.mjs";

/**
 * Runs in a page before its scripts. Keeps the endpoints and what they received in `window.agents`, and counts the durable
 * commits of each store; when a store has made as many as `stops` names, its page never learns of the last one, so that
 * everything it would have done after it is not done: what is in the store is what a kill of the page leaves.
 */
function prepare() {
  window.agents = {};
  window.commits = {};
  window.stops = {};
  window.waiting = {};
  const begin = IDBDatabase.prototype.transaction;
  IDBDatabase.prototype.transaction = function transaction(stores, mode, options) {
    const { name } = this;
    const begun = begin.call(this, stores, mode, options);
    if (mode === "readwrite" && options?.durability === "strict") {
      begun.addEventListener("complete", (event) => {
        window.commits[name] = (window.commits[name] ?? 0) + 1;
        if (window.commits[name] < (window.stops[name] ?? Infinity)) return;
        event.stopImmediatePropagation();
        for (const tell of window.waiting[name] ?? []) tell([]);
      });
    }
    return begun;
  };
}

/** One page and its agents. Their stores are named after them. */
export class EndpointPage {
  /** Opens a page in a profile of its own. */
  static async open(browser, url, { before } = {}) {
    const context = await browser.newContext();
    await context.addInitScript(prepare);
    const page = await context.newPage();
    page.setDefaultTimeout(2 * SOON_MS);
    const opened = new EndpointPage(context, page, url);
    await before?.(opened);
    await opened.load();
    return opened;
  }

  constructor(context, page, url) {
    this.context = context;
    this.page = page;
    this.url = url;
    this.said = watch(page, "page");
  }

  /** A page of the deployment's origin that runs nothing by itself. */
  load() {
    return this.page.goto(`${this.url}/favicon.svg`);
  }

  evaluate(work, argument) {
    return this.page.evaluate(work, argument);
  }

  /** Opens agents, takes and acknowledges whatever they are delivered, and keeps what they tell. */
  join(...names) {
    return this.page.evaluate(async (all) => {
      const { Endpoint } = await import("/client/index.js");
      await Promise.all(all.map(async (name) => {
        const endpoint = await Endpoint.open({ url: location.origin, name, storageName: name });
        const agent = { endpoint, taken: [], events: [], sent: [], ended: undefined };
        window.agents[name] = agent;
        void endpoint.closed.then((failure) => (agent.ended = failure?.code ?? "closed"));
        void (async () => {
          for await (const { message, acknowledge } of endpoint.messages()) {
            // What is given after the page was left is given to nobody.
            if (window.isLeft) return;
            const taken = { postId: message.postId, isAcknowledged: false };
            agent.taken.push(taken);
            await acknowledge();
            taken.isAcknowledged = true;
          }
        })().catch(() => undefined);
        void (async () => {
          for await (const event of endpoint.events()) agent.events.push(event);
        })();
      }));
    }, names);
  }

  /** Ends every script of the page. Returns what each agent had been delivered. */
  async leave() {
    const taken = await this.page.evaluate(() => {
      window.isLeft = true;
      return Object.fromEntries(Object.entries(window.agents).map(([name, agent]) => [name, agent.taken]));
    });
    await this.load();
    return taken;
  }

  /** Lets stores stop after so many more commits: `[name, commits]`. */
  stop(stores) {
    return this.page.evaluate((all) => {
      for (const [name, commits] of all) window.stops[name] = (window.commits[name] ?? 0) + commits;
    }, stores);
  }

  /** What there is to see of every agent: whether its store has stopped, what it sent and was given, how many posts it holds. */
  pictures() {
    return this.page.evaluate(async () => {
      const pictures = await Promise.all(Object.entries(window.agents).map(async ([name, { endpoint, sent, taken, ended }]) => {
        const hasStopped = () => (window.commits[name] ?? 0) >= (window.stops[name] ?? Infinity);
        // One that stops meanwhile answers nothing.
        const stops = new Promise((resolve) => (window.waiting[name] = [resolve]));
        const asks = hasStopped() || ended !== undefined ? [] : endpoint.conversations();
        const conversations = await Promise.race([asks, stops]);
        const posts = conversations.reduce((sum, conversation) => sum + conversation.posts, 0);
        return [name, { hasStopped: hasStopped(), sent, taken, ended, posts }];
      }));
      return Object.fromEntries(pictures);
    });
  }

  /** How many posts of its own a store has recorded. No endpoint may hold it. */
  recorded(name) {
    return this.page.evaluate((of) => new Promise((resolve, reject) => {
      const opening = indexedDB.open(of);
      opening.onerror = () => reject(opening.error);
      opening.onsuccess = () => {
        const database = opening.result;
        const counting = database.transaction("post_intents").objectStore("post_intents").count();
        counting.onerror = () => reject(counting.error);
        counting.onsuccess = () => {
          database.close();
          resolve(counting.result);
        };
      };
    }), name);
  }

  /** Hands a text in, and does not wait for it. */
  send(name, to, text) {
    return this.page.evaluate(([from, address, content]) => {
      const { endpoint, sent } = window.agents[from];
      const place = sent.push("under way") - 1;
      void endpoint.send(address, content).then(
        () => (sent[place] = "sent"),
        (error) => (sent[place] = error.code),
      );
    }, [name, to, text]);
  }

  /** The record hashes of a conversation as an agent holds it. */
  history(name, address) {
    return this.page.evaluate(async ([agent, of]) => {
      try {
        const { entries } = await window.agents[agent].endpoint.history(of, { limit: 1_000 });
        return entries.map(({ recordHash }) => recordHash);
      } catch (error) {
        // Nothing of it is known here yet.
        return [];
      }
    }, [name, address]);
  }

  /** What an agent received and how its sends ended. */
  agent(name) {
    return this.page.evaluate((of) => {
      const { taken, sent, ended } = window.agents[of];
      return { taken, sent, ended };
    }, name);
  }

  /** The first event an agent told, since it told `after` of them, that passes `passes(event, argument)`. */
  event(name, what, passes, argument) {
    return until(`${name} to tell ${what}`, () =>
      this.page.evaluate(([of, source, given]) => {
        const test = new Function(`return (${source})`)();
        return window.agents[of].events.find((event) => test(event, given));
      }, [name, passes.toString(), argument]));
  }

  /** Forgets the events an agent told so far. */
  forget(name) {
    return this.page.evaluate((of) => void (window.agents[of].events.length = 0), name);
  }

  close() {
    return this.context.close();
  }
}
