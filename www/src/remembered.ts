/** The names of the agents this browser has opened. Only names: keys and history are in each agent's own store. */

const KEY = "conclave-agents";

/** Latest first. */
export function rememberedAgents(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter((name) => typeof name === "string") : [];
  } catch {
    // A list that can not be read is only a convenience lost.
    return [];
  }
}

export function remember(name: string): void {
  const names = [name, ...rememberedAgents().filter((other) => other !== name)];
  try {
    localStorage.setItem(KEY, JSON.stringify(names.slice(0, 12)));
  } catch {
    // As above.
  }
}

/** The agent this window is for: two windows of one browser can hold two agents. */
export function agentOfWindow(): string | undefined {
  return new URL(location.href).searchParams.get("agent") ?? undefined;
}

export function setAgentOfWindow(name: string | undefined): void {
  const url = new URL(location.href);
  if (name === undefined) url.searchParams.delete("agent");
  else url.searchParams.set("agent", name);
  if (name === undefined) url.hash = "";
  history.replaceState(null, "", url);
}

/** The conversation this window shows, kept over reloads. */
export function conversationOfWindow(): string | undefined {
  let hash: string;
  try {
    hash = decodeURIComponent(location.hash.slice(1));
  } catch {
    // A link that was cut or typed wrong shows no conversation.
    return undefined;
  }
  return /^(agent|group):[a-z0-9,-]+$/.test(hash) ? hash : undefined;
}

export function setConversationOfWindow(address: string): void {
  const url = new URL(location.href);
  url.hash = address;
  history.replaceState(null, "", url);
}
