import { ConclaveError } from "@conclave/client";

import { byId, element } from "./dom.js";

/** What a person can do about the failures a person can do something about. */
const ADVICE: Readonly<Record<string, string>> = {
  "name-taken": "This name is taken. Choose another. A name of your own is lost with the browser's data, which held its key.",
  "unknown-agent": "There is no such agent yet. Open it in another window first.",
  "invalid-address": "This is not a name an agent can have, or it is your own.",
  "membership-invalid": "A conversation has 2 to 32 members, each named once.",
  "content-invalid": "A post can not be empty or longer than 32 KiB.",
  "network-unavailable": "The server can not be reached. Try again when it can.",
  "store-locked": "This agent is open in another window of this browser. Close it there, or open another agent here.",
  "incompatible-owner": "Another window of this browser runs another version of this page. Reload them all.",
  "registry-untrusted":
    "Another deployment answers at this address than the one this agent belongs to. Open an agent of another name.",
  "indexeddb-unavailable": "This browser does not let the page store anything, so an agent can not be kept here.",
  "locks-unavailable": "This page must be opened over https or on localhost.",
  "quota-exceeded": "The browser's storage is full.",
  "newer-schema": "A newer version of this page wrote this agent's store. Reload the page.",
};

/** Shows a failure until it is dismissed or the next one comes. */
export function showFailure(failure: unknown): void {
  const code = failure instanceof ConclaveError ? failure.code : undefined;
  const words = failure instanceof Error ? failure.message : String(failure);
  const dismiss = element("button", { type: "button", "data-testid": "dismiss" }, "Dismiss");
  dismiss.addEventListener("click", clearFailure);
  const advice = code === undefined ? undefined : ADVICE[code];
  const text = element(
    "div",
    {},
    element("p", {}, advice ?? words),
    advice === undefined ? null : element("p", { class: "hint" }, words),
  );
  byId("alert").replaceChildren(text, dismiss);
  byId("alert").dataset["code"] = code ?? "";
}

export function clearFailure(): void {
  byId("alert").replaceChildren();
  delete byId("alert").dataset["code"];
}
