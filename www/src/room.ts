import { type Address, type Conversation, type Endpoint, type EndpointEvent, ListenError } from "@conclave/client";

import { addressOf, titleOf } from "./addresses.js";
import { clearFailure, showFailure } from "./alert.js";
import { ConversationView } from "./conversation.js";
import { element, setText } from "./dom.js";
import { conversationOfWindow, setConversationOfWindow } from "./remembered.js";

/** The page of an open agent: its conversations, and the one that is shown. */
export class Room {
  readonly element: HTMLElement;
  readonly status = element("span", { class: "connection", role: "status", "data-testid": "connection" }, "connecting");
  readonly #endpoint: Endpoint;
  readonly #items = element("ul", { "data-testid": "conversations" });
  readonly #main = element("div");
  readonly #unread = new Map<string, number>();
  #conversations: readonly Conversation[] = [];
  #shown: ConversationView | undefined;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    this.#main.append(
      element("p", { class: "quiet" }, "Choose a conversation, or begin one by naming who it is with."),
    );
    this.element = element(
      "div",
      { class: "room" },
      element(
        "nav",
        { "aria-label": "Conversations" },
        element("h2", {}, "Conversations"),
        this.#items,
        this.#beginForm(),
      ),
      this.#main,
    );
  }

  /** Shows what there is and follows what comes, until the endpoint ends. */
  async run(): Promise<void> {
    await this.#reload();
    const address = conversationOfWindow() as Address | undefined;
    if (address !== undefined) this.#show(address);
    for await (const event of this.#endpoint.events()) this.#take(event);
  }

  #take(event: EndpointEvent): void {
    switch (event.kind) {
      case "connection":
        this.status.dataset["state"] = event.state;
        setText(this.status, event.state);
        this.status.title = event.detail ?? "";
        break;
      case "role":
        // The window that was given the messages may be the one that is gone.
        if (event.role !== "waiting") void this.#takeMessages();
        break;
      case "conversation":
        void this.#reload();
        break;
      case "recovery":
      case "stall":
        this.#draw();
        break;
      case "post":
        if (this.#shown?.address === event.address) this.#shown.advance(event);
        if (event.stage === "certified") void this.#reload();
        break;
    }
  }

  /** A message is taken once it is on the page or counted as unread: both are read from the store again on a reload. */
  async #takeMessages(): Promise<void> {
    try {
      for await (const { message, acknowledge } of this.#endpoint.messages()) {
        if (this.#shown?.address === message.address) {
          await this.#shown.refresh();
        } else {
          this.#unread.set(message.address, (this.#unread.get(message.address) ?? 0) + 1);
        }
        await this.#reload();
        await acknowledge();
      }
    } catch (failure) {
      if (!(failure instanceof ListenError)) showFailure(failure);
    }
  }

  async #reload(): Promise<void> {
    try {
      this.#conversations = await this.#endpoint.conversations();
    } catch {
      // The endpoint has ended; its page goes with it.
      return;
    }
    this.#draw();
  }

  #draw(): void {
    const addresses: Address[] = this.#conversations.map((conversation) => conversation.address);
    const shown = this.#shown?.address;
    if (shown !== undefined && !addresses.includes(shown)) addresses.unshift(shown);
    const focused = document.activeElement?.getAttribute("data-address");
    this.#items.replaceChildren(...addresses.map((address) => this.#item(address, address === shown)));
    if (focused !== null && focused !== undefined) {
      this.#items.querySelector<HTMLElement>(`[data-address="${CSS.escape(focused)}"]`)?.focus();
    }
    this.#shown?.setNote(shown === undefined ? [] : this.#notesOf(shown));
  }

  /** Why a conversation does not go on, if it does not, and whom it waits for. */
  #notesOf(shown: Address): string[] {
    const { recoveries, stalls } = this.#endpoint.state;
    const conversation = this.#conversations.find(({ address }) => address === shown);
    const waits = [...recoveries, ...stalls].find(({ address }) => address === shown)?.waits;
    const whom = waits?.missing.map((address) => titleOf(address, this.#endpoint.name)).join(", ");
    return [conversation?.detail, whom && `it waits for ${whom}`].filter((note) => typeof note === "string");
  }

  #item(address: Address, isShown: boolean): HTMLElement {
    const unread = this.#unread.get(address) ?? 0;
    const badge = unread === 0 ? null : element("span", { class: "badge", "aria-label": `${unread} unread` }, String(unread));
    const button = element(
      "button",
      {
        type: "button",
        "data-testid": "conversation-item",
        "data-address": address,
        "aria-current": isShown ? "true" : undefined,
      },
      titleOf(address, this.#endpoint.name),
      badge,
    );
    button.addEventListener("click", () => this.#show(address));
    return element("li", {}, button);
  }

  #show(address: Address): void {
    if (this.#shown?.address !== address) {
      this.#shown = new ConversationView(this.#endpoint, address);
      this.#main.replaceChildren(this.#shown.element);
      setConversationOfWindow(address);
      void this.#showOpenPosts(this.#shown);
    }
    this.#unread.delete(address);
    this.#draw();
    this.#shown.focus();
  }

  /** Posts that were under way before the conversation was shown. */
  async #showOpenPosts(view: ConversationView): Promise<void> {
    await view.refresh();
    for (const post of this.#endpoint.state.posts) {
      if (post.address === view.address) view.advance(post);
    }
  }

  #beginForm(): HTMLElement {
    const input = element("input", {
      id: "members",
      required: true,
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      "aria-describedby": "members-hint",
      "data-testid": "members-input",
    });
    const form = element(
      "form",
      { "data-testid": "members-form" },
      element("label", { for: "members" }, "Talk to"),
      element("div", { class: "row" }, input, element("button", { "data-testid": "members-submit" }, "Begin")),
      element("p", { id: "members-hint", class: "hint" }, "One name, or several with commas between them."),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearFailure();
      const address = addressOf(input.value, this.#endpoint.name);
      if (address === undefined) {
        showFailure(new Error("Name somebody other than yourself."));
        return;
      }
      input.value = "";
      this.#show(address);
    });
    return form;
  }
}
