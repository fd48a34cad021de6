import { type Address, type Endpoint, type HistoryEntry, type PostEvent, SendError, verify } from "@conclave/client";

import { titleOf } from "./addresses.js";
import { clearFailure, showFailure } from "./alert.js";
import { element, setText } from "./dom.js";
import { keyOf, ofEntry, ofEvent, type PostState, PostView } from "./post.js";

/** One conversation: its posts, those under way at the end, and the form that adds to them. */
export class ConversationView {
  readonly element: HTMLElement;
  readonly address: Address;
  readonly #endpoint: Endpoint;
  readonly #views = new Map<string, PostView>();
  readonly #list = element("ol", { class: "posts", "data-testid": "posts" });
  readonly #empty = element("p", { class: "quiet" }, "No posts yet. Say something.");
  readonly #note = element("p", { class: "note", hidden: true, "data-testid": "conversation-note" });
  readonly #download = element(
    "button",
    { type: "button", hidden: true, "data-testid": "export" },
    "Download the history",
  );
  readonly #input: HTMLTextAreaElement;
  readonly #form: HTMLFormElement;
  #reading = false;
  #stale = false;

  constructor(endpoint: Endpoint, address: Address) {
    this.#endpoint = endpoint;
    this.address = address;
    this.#input = element("textarea", {
      id: "post",
      rows: "2",
      required: true,
      dir: "auto",
      "aria-describedby": "post-hint",
      "data-testid": "post-input",
    });
    this.#form = element(
      "form",
      { class: "composer", "data-testid": "post-form" },
      element("label", { for: "post" }, "Your post"),
      element("div", { class: "row" }, this.#input, element("button", { class: "main", "data-testid": "post-submit" }, "Send")),
      element("p", { id: "post-hint", class: "hint" }, "Enter sends, Shift and Enter begin a new line."),
    );
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#send();
      }
    });
    this.#download.addEventListener("click", () => void this.#save().catch(showFailure));
    this.element = element(
      "section",
      { class: "conversation", "aria-labelledby": "conversation-title", "data-testid": "conversation", "data-address": address },
      element("h2", { id: "conversation-title" }, titleOf(address, endpoint.name)),
      this.#note,
      this.#empty,
      // New posts are read out, the steps of their travel are not.
      element("div", { role: "log", "aria-label": "Posts", "aria-relevant": "additions" }, this.#list),
      this.#form,
      this.#download,
    );
  }

  focus(): void {
    this.#input.focus();
  }

  /** Says why the conversation does not go on; nothing when it does. */
  setNote(notes: readonly string[]): void {
    this.#note.hidden = notes.length === 0;
    setText(this.#note, notes.join("; "));
  }

  /** Reads the certified history again. Calls while a reading is under way are one reading after it. */
  async refresh(): Promise<void> {
    this.#stale = true;
    if (this.#reading) return;
    this.#reading = true;
    try {
      while (this.#stale) {
        this.#stale = false;
        const known = (await this.#endpoint.conversations()).some(({ address }) => address === this.address);
        const posts: PostState[] = [];
        if (known) for await (const entry of this.#endpoint.history(this.address)) posts.push(ofEntry(entry));
        this.#download.hidden = posts.length === 0;
        for (const post of posts) this.#show(post);
        posts.forEach((post, place) => this.#put(post, place));
      }
    } catch (failure) {
      showFailure(failure);
    } finally {
      this.#reading = false;
    }
  }

  /** A post of this conversation went on. */
  advance(event: PostEvent): void {
    this.#show(ofEvent(event));
    if (event.stage === "certified") void this.refresh();
  }

  #show(post: PostState): void {
    // Whoever has the end in view stays there; whoever reads further up is left where they are.
    const isAtEnd = this.#form.getBoundingClientRect().top < window.innerHeight;
    this.#place(post);
    if (isAtEnd) this.#form.scrollIntoView({ block: "nearest" });
  }

  #place(post: PostState): void {
    const shown = this.#views.get(keyOf(post));
    if (shown !== undefined) {
      // What is certified stays so, whatever late news of its travel says.
      if (post.entry !== undefined || shown.element.dataset["stage"] !== "certified") shown.update(post);
      return;
    }
    const view = new PostView(post, this.#endpoint.name, (entry) => this.#prove(entry));
    this.#views.set(keyOf(post), view);
    this.#empty.hidden = true;
    this.#list.append(view.element);
  }

  /** Certified posts stand in their certified order, those under way below them. One in its place is not touched. */
  #put(post: PostState, place: number): void {
    const node = this.#views.get(keyOf(post))?.element;
    const there = this.#list.children[place];
    if (node !== undefined && there !== node) this.#list.insertBefore(node, there ?? null);
  }

  /** The post's proof alone, verified as whoever is given it would verify it. */
  async #prove({ postId, author }: HistoryEntry) {
    const { file } = await this.#endpoint.proof(this.address, postId, { author });
    return verify(file, await this.#endpoint.registryKey(), { excerpt: true });
  }

  async #save(): Promise<void> {
    const address = URL.createObjectURL(await this.#endpoint.export(this.address));
    element("a", { href: address, download: `${titleOf(this.address, this.#endpoint.name)}.jsonl` }).click();
    // The download has its own hold on the file.
    URL.revokeObjectURL(address);
  }

  #send(): void {
    const text = this.#input.value;
    if (text.trim() === "") return;
    this.#input.value = "";
    clearFailure();
    this.#endpoint.send(this.address, text).catch((failure: unknown) => {
      // The post is recorded and shown as open: nothing was refused.
      if (failure instanceof SendError && failure.code === "delivery-pending") return;
      // A text that was not taken goes back, unless another has been begun.
      if (this.#input.value === "") this.#input.value = text;
      showFailure(failure);
    });
  }
}
