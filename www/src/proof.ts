import type { ExportVerification, HistoryEntry, SignerEntry } from "@conclave/client";

import { nameOf } from "./addresses.js";
import { showFailure } from "./alert.js";
import { element } from "./dom.js";

/** Takes the proof of a post from the store and verifies it as a stranger would. */
export type Verify = (entry: HistoryEntry) => Promise<ExportVerification>;

/** Everything that proves a post, and the button that computes all of it again. */
export function proof(entry: HistoryEntry, verify: Verify): readonly HTMLElement[] {
  const hashes: readonly (readonly [string, string | null, string])[] = [
    ["Record", entry.recordHash, "record-hash"],
    ["Extends", entry.previousRecordHash, "previous-record-hash"],
    ["Action", entry.actionHash, "action-hash"],
    ["Post", entry.postIntentHash, "post-intent-hash"],
    ["Anchor", entry.anchorHash, "anchor-hash"],
    ["Membership", entry.membershipHash, "membership-hash"],
    ["Conversation", entry.conversationId, "conversation-id"],
  ];
  const list = element("dl", { "data-testid": "hashes" });
  for (const [name, hash, testId] of hashes) {
    list.append(
      element("dt", {}, name),
      element("dd", { "data-testid": testId }, hash === null ? "nothing: the first post" : element("code", {}, hash)),
    );
  }
  return [
    element("p", { class: "quiet" }, `Post ${entry.position + 1} of this conversation, as this browser holds it.`),
    list,
    signers("Signed by", entry.actionSigners, "action-signers"),
    signers("Stored by", entry.durabilitySigners, "durability-signers"),
    ...verifier(entry, verify),
  ];
}

function signers(title: string, entries: readonly SignerEntry[], testId: string): HTMLElement {
  const list = element("dl", { "data-testid": testId });
  for (const signer of entries) {
    list.append(
      element("dt", {}, nameOf(signer.agent)),
      element("dd", {}, element("code", {}, signer.signature)),
    );
  }
  return element("section", {}, element("h3", {}, title), list);
}

function verifier(entry: HistoryEntry, verify: Verify): readonly HTMLElement[] {
  const button = element("button", { type: "button", "data-testid": "verify" }, "Verify in this browser");
  const outcome = element("div", { "aria-live": "polite", "data-testid": "verification" });
  button.addEventListener("click", () => {
    button.disabled = true;
    verify(entry)
      .then((verification) => outcome.replaceChildren(...verdict(verification)))
      .catch(showFailure)
      .finally(() => {
        button.disabled = false;
      });
  });
  return [button, outcome];
}

function verdict(verification: ExportVerification): readonly HTMLElement[] {
  const { verified, members, posts } = verification;
  const count = (signers: readonly SignerEntry[] = []) => `${signers.length} of ${members.length}`;
  const items = [
    `Members whose cards the Registry signed: ${members.map(({ agent }) => nameOf(agent)).join(", ")}`,
    `Valid signatures: ${count(posts[0]?.actionSigners)} members`,
    `Valid storage votes: ${count(posts[0]?.durabilitySigners)} members`,
  ];
  return [
    element(
      "p",
      { class: verified ? "passed" : "failed", "data-testid": "verdict", "data-valid": String(verified) },
      verified ? "Every hash and every signature is right." : `This post does not verify: ${verification.reason}.`,
    ),
    element("ul", { class: "checks" }, ...(verified ? items.map((item) => element("li", {}, item)) : [])),
  ];
}
