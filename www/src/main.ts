/** The demo: one agent a window, everything it does through `@conclave/client`. */
import { Endpoint, type ConclaveError } from "@conclave/client";

import { clearFailure, showFailure } from "./alert.js";
import { byId, element } from "./dom.js";
import { agentOfWindow, remember, setAgentOfWindow } from "./remembered.js";
import { Room } from "./room.js";
import { startPage } from "./start.js";

const content = byId("content");
const who = byId("who");

function showStart(suggestion: string): void {
  who.replaceChildren();
  document.title = "Conclave";
  content.replaceChildren(startPage(suggestion, open));
  content.querySelector("input")?.focus();
}

async function open(name: string): Promise<void> {
  clearFailure();
  let endpoint: Endpoint;
  try {
    endpoint = await Endpoint.open({ url: location.origin, name });
  } catch (failure) {
    showFailure(failure);
    return;
  }
  remember(name);
  setAgentOfWindow(name);
  showRoom(endpoint);
}

function showRoom(endpoint: Endpoint): void {
  const room = new Room(endpoint);
  const leave = element("button", { type: "button", "data-testid": "leave" }, "Close agent");
  leave.addEventListener("click", () => void endpoint.close());
  document.title = `${endpoint.name} · Conclave`;
  who.replaceChildren(
    element("span", {}, "You are ", element("strong", { "data-testid": "agent-name" }, endpoint.name)),
    room.status,
    leave,
  );
  content.replaceChildren(room.element);
  // What had the focus is gone with the start page. A conversation that is shown takes it further.
  content.querySelector("input")?.focus();
  room.run().catch(showFailure);
  void endpoint.closed.then((failure: ConclaveError | undefined) => {
    if (failure === undefined) setAgentOfWindow(undefined);
    clearFailure();
    showStart(endpoint.name);
    if (failure !== undefined) showFailure(failure);
  });
}

async function begin(): Promise<void> {
  const name = agentOfWindow();
  showStart(name ?? "");
  if (name !== undefined) await open(name);
}

void begin();
