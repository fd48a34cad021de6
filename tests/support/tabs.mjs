// Tabs of one agent: pages of one browser context, each with the agent open.

import assert from "node:assert/strict";
import { watch } from "./browser.mjs";
import { until } from "./until.mjs";

/** What tests of many tabs do with pages of a suite (`inBrowser`). */
export function tabsOf(suite) {
  const contexts = [];

  /** Closes every tab there is. */
  const end = () => Promise.all(contexts.splice(0).map((context) => context.close()));

  /** A page of `context`, at an address that runs no script of its own. */
  const tab = async (context) => {
    const page = await context.newPage();
    page.said = watch(page, "tab");
    await page.goto(`${suite.deployment.url}/favicon.svg`);
    return page;
  };

  /** Opens the agent in a page and keeps it in `window.endpoint`; the code of the failure, if any. */
  const open = (page, name, options = {}) =>
    page.evaluate(async ([agent, more]) => {
      const { Endpoint, ConclaveError } = await import("/client/index.js");
      try {
        window.endpoint = await Endpoint.open({ url: location.origin, name: agent, ...more });
        return undefined;
      } catch (error) {
        return error instanceof ConclaveError ? `${error.name} ${error.code}` : String(error);
      }
    }, [name, options]);

  /** So many tabs with this agent open, the owner first. */
  const tabs = async (count, name, options) => {
    const context = await suite.browser.newContext();
    contexts.push(context);
    const pages = [];
    for (let at = 0; at < count; at += 1) {
      pages.push(await tab(context));
      assert.equal(await open(pages[at], name, options), undefined);
    }
    return pages;
  };

  /** An agent in a browser of its own that acknowledges what it gets. */
  const peer = async (name) => {
    const [page] = await tabs(1, name);
    await page.evaluate(() => {
      void (async () => {
        for await (const delivery of window.endpoint.messages()) await delivery.acknowledge();
      })();
    });
    return page;
  };

  /** Keeps every text the page is given in `window.texts`, and acknowledges what `acknowledges` says. */
  const listen = (page, every = 1) =>
    page.evaluate((step) => {
      window.texts = [];
      void (async () => {
        for await (const { message, acknowledge } of window.endpoint.messages()) {
          window.texts.push(message.content[0].text);
          if (window.texts.length % step === 0) await acknowledge();
        }
      })().catch((error) => window.texts.push(String(error)));
    }, every);

  const texts = (page) => page.evaluate(() => window.texts);

  /** Resolves when the page has been given exactly these texts. */
  const holds = async (page, expected) => {
    let last;
    await until(`the tab to hold ${expected.length} texts`, async () => {
      last = await texts(page);
      return last.length >= expected.length;
    }).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(last)} ${page.said.join("\n")}`);
    });
    assert.deepEqual(await texts(page), expected);
  };

  const send = (page, to, ...bodies) =>
    page.evaluate(async ([address, all]) => {
      for (const text of all) await window.endpoint.send(address, text);
    }, [to, bodies]);

  /** The texts of the posts at an address, as the page reads them. */
  const history = (page, address) =>
    page.evaluate(async (at) => (await window.endpoint.history(at)).entries.map((entry) => entry.content[0].text), address);

  /** Begins sends that nobody waits for here; `outcomes` has what became of them. */
  const beginSends = (page, to, bodies) =>
    page.evaluate(([address, all]) => {
      window.outcomes = Promise.all(
        all.map((text) => window.endpoint.send(address, text).then(({ postId }) => postId, (error) => `${error.name} ${error.code}`)),
      );
    }, [to, bodies]);

  const outcomes = (page) => page.evaluate(() => window.outcomes);

  /** Ends a page as a crash of its process does. */
  const crash = async (page) => {
    const session = await page.context().newCDPSession(page);
    const crashed = page.waitForEvent("crash");
    session.send("Page.crash").catch(() => undefined);
    await crashed;
  };

  return { end, tab, open, tabs, peer, listen, holds, send, history, beginSends, outcomes, crash };
}
