// A real Chromium and the agents in its windows.

import { chromium } from "playwright-core";
import { SOON_MS, until } from "./until.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How the browser is started. */
export const LAUNCH = {
  executablePath: process.env.CONCLAVE_CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: FLAGS,
};

/** Starts the browser. Its windows are separate by storage: each context is a profile of its own. */
export function launch(...more) {
  return chromium.launch({ ...LAUNCH, args: [...FLAGS, ...more] });
}

/** What went wrong in a page, for the message of a test that fails. */
export function watch(page, name) {
  const said = [];
  page.on("pageerror", (error) => said.push(`${name}: uncaught ${error.stack ?? error}`));
  page.on("console", (line) => {
    if (line.type() === "error") said.push(`${name}: ${line.text()}`);
  });
  return said;
}

const byId = (page, id) => page.getByTestId(id);

/** One agent of the demo, in one window. */
export class AgentWindow {
  constructor(page, name) {
    this.page = page;
    this.name = name;
    page.setDefaultTimeout(SOON_MS);
    this.said = watch(page, name);
  }

  /** Opens the demo in a new window of `context` and names the agent there. */
  static async open(context, url, name) {
    const window = new AgentWindow(await context.newPage(), name);
    await window.page.goto(url);
    await byId(window.page, "name-input").fill(name);
    await byId(window.page, "name-submit").click();
    await window.isOpen();
    return window;
  }

  /**
   * Reloads the page while the deployment is gone, and resolves when the agent is open and connected. Where one of the page's own
   * files was cut off the page can not begin; it is loaded once more when the deployment is `back`, as its user would.
   */
  async reloadWhile(back) {
    const { page } = this;
    const files = ["document", "script", "stylesheet"];
    const isFile = (request) => files.includes(request.resourceType()) || request.url().endsWith(".wasm");
    let isCut = false;
    const cut = new Promise((resolve) => {
      const note = (request) => {
        if (!isFile(request)) return;
        isCut = true;
        resolve();
      };
      page.on("requestfailed", note);
      page.on("response", (response) => response.status() >= 500 && note(response.request()));
    });
    const opened = page
      .reload()
      .then(() => this.isOpen())
      .catch((error) => {
        if (!isCut) throw error;
      });
    await Promise.race([opened, cut]);
    await back;
    if (!isCut) return;
    await page.reload();
    await this.isOpen();
  }

  /** Resolves when the agent is open and connected. */
  async isOpen() {
    await byId(this.page, "agent-name").filter({ hasText: this.name }).waitFor();
    await this.page.locator('[data-testid="connection"][data-state="online"]').waitFor();
  }

  /** Shows the conversation with these agents, begun here if there is none. */
  async talkTo(...names) {
    await byId(this.page, "members-input").fill(names.join(", "));
    await byId(this.page, "members-submit").click();
    await byId(this.page, "conversation").waitFor();
  }

  /** Shows a conversation that another agent began. */
  async join(address) {
    const item = this.page.locator(`[data-testid="conversation-item"][data-address="${address}"]`);
    await item.waitFor();
    await item.click();
    await byId(this.page, "conversation").waitFor();
  }

  /** Hands a text in. It is certified later. */
  async say(text) {
    await byId(this.page, "post-input").fill(text);
    await byId(this.page, "post-submit").click();
  }

  /** The posts on the page, in their order, as text and stage. */
  posts() {
    return byId(this.page, "post").evaluateAll((posts) =>
      posts.map((post) => ({
        text: post.querySelector('[data-testid="post-text"]').textContent,
        stage: post.dataset.stage,
      })));
  }

  /** Resolves when the page shows exactly these texts, all certified, in this order. */
  async holds(texts) {
    let last;
    try {
      await until(`${this.name} to hold ${texts.length} certified posts`, async () => {
        last = await this.posts();
        return last.length === texts.length &&
          last.every(({ text, stage }, at) => stage === "certified" && text === texts[at]);
      }, 2 * SOON_MS);
    } catch (error) {
      throw new Error(`${error.message}; it holds ${JSON.stringify(last)}; it said ${this.said.join("\n")}`);
    }
  }

  /** Resolves when a post with this text is on the page, certified or not. */
  sees(text) {
    return byId(this.page, "post-text").filter({ hasText: text }).first().waitFor();
  }

  /** The text of the alert on the page. */
  async alert() {
    const alert = this.page.getByRole("alert");
    await alert.waitFor();
    return alert.textContent();
  }

  async reload() {
    await this.page.reload();
    await this.isOpen();
  }
}
