import type { Content, HistoryEntry, PostEvent, PostStage } from "@conclave/client";

import { nameOf } from "./addresses.js";
import { element, setAttribute, setText } from "./dom.js";
import { proof, type Verify } from "./proof.js";

/** What one post on the page shows, certified or under way. */
export interface PostState {
  readonly postId: string;
  readonly author: string;
  readonly content: Content;
  readonly stage: PostStage;
  readonly signedBy: readonly string[];
  readonly storedBy: readonly string[];
  /** How many signatures and votes certify it, while it is under way. */
  readonly needed?: { readonly signatures: number; readonly votes: number };
  /** Its proof, once it is certified. */
  readonly entry?: HistoryEntry;
}

export function ofEvent(event: PostEvent): PostState {
  const { postId, author, content, stage, signedBy, storedBy } = event;
  const needed = { signatures: event.signaturesNeeded, votes: event.votesNeeded };
  return { postId, author, content, stage, signedBy, storedBy, needed };
}

export function ofEntry(entry: HistoryEntry): PostState {
  return {
    postId: entry.postId,
    author: entry.author,
    content: entry.content,
    stage: "certified",
    signedBy: entry.actionSigners.map((signer) => signer.agent),
    storedBy: entry.durabilitySigners.map((signer) => signer.agent),
    entry,
  };
}

/** Unique on the page: post ids are unique to their author. */
export function keyOf(post: { readonly author: string; readonly postId: string }): string {
  return `${post.author} ${post.postId}`;
}

/** One post. It is updated in place, so that an open proof and the focus stay where they are. */
export class PostView {
  readonly element: HTMLLIElement;
  readonly #steps: Readonly<Record<PostStage, HTMLLIElement>>;
  readonly #proof = element("div", { class: "proof" });
  readonly #details: HTMLDetailsElement;
  readonly #verify: Verify;
  #entry: HistoryEntry | undefined;

  constructor(post: PostState, own: string, verify: Verify) {
    this.#verify = verify;
    const author = nameOf(post.author);
    const step = (stage: PostStage) => element("li", { "data-testid": `step-${stage}` });
    this.#steps = {
      recorded: step("recorded"),
      proposed: step("proposed"),
      stored: step("stored"),
      certified: step("certified"),
    };
    this.#details = element(
      "details",
      { "data-testid": "proof", hidden: true },
      element("summary", { "data-testid": "proof-summary" }, "Proof"),
      this.#proof,
    );
    this.#details.addEventListener("toggle", () => this.#showProof());
    this.element = element(
      "li",
      { class: "post", "data-testid": "post", "data-post-id": post.postId, "data-own": String(author === own) },
      element("h3", { "data-testid": "post-author" }, author === own ? `${author} (you)` : author),
      element("div", { class: "post-text", dir: "auto", "data-testid": "post-text" }, textOf(post.content)),
      element("ol", { class: "travel", "aria-label": "How far this post has come" }, ...Object.values(this.#steps)),
      this.#details,
    );
    this.update(post);
  }

  update(post: PostState): void {
    const order: readonly PostStage[] = ["recorded", "proposed", "stored", "certified"];
    const reached = order.indexOf(post.stage);
    const done = (stage: PostStage, isDone: boolean, text: string) => {
      const step = this.#steps[stage];
      setAttribute(step, "data-done", String(isDone));
      setText(step, text);
    };
    const { needed } = post;
    done("recorded", reached >= 1, "proposed");
    done(
      "proposed",
      reached >= 2 || (needed !== undefined && post.signedBy.length >= needed.signatures),
      `signed by ${people(post.signedBy, needed?.signatures)}`,
    );
    done(
      "stored",
      reached >= 3 || (needed !== undefined && post.storedBy.length >= needed.votes),
      `stored by ${people(post.storedBy, needed?.votes)}`,
    );
    done("certified", reached >= 3, reached >= 3 ? "certified" : "not certified yet");
    this.element.dataset["stage"] = post.stage;
    this.#entry = post.entry;
    this.#details.hidden = post.entry === undefined;
    if (this.#details.open) this.#showProof();
  }

  #showProof(): void {
    if (this.#entry === undefined || !this.#details.open) return;
    const isShown = this.#proof.dataset["record"] === this.#entry.recordHash;
    if (isShown) return;
    this.#proof.dataset["record"] = this.#entry.recordHash;
    this.#proof.replaceChildren(...proof(this.#entry, this.#verify));
  }
}

function people(addresses: readonly string[], needed: number | undefined): string {
  const names = addresses.length === 0 ? "nobody yet" : addresses.map(nameOf).join(", ");
  return needed === undefined || addresses.length >= needed ? names : `${names} (${addresses.length} of ${needed})`;
}

/** A post's content as text; data parts as JSON. */
function textOf(content: Content): string {
  return content.map((part) => (part.type === "text" ? part.text : JSON.stringify(part.value, null, 2))).join("\n");
}
