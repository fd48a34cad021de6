import type { Address } from "@conclave/client";

/** The name in `agent:<name>`. */
export function nameOf(address: string): string {
  return address.replace(/^agent:/, "");
}

/** What people call a conversation: the other members. */
export function titleOf(address: Address, own: string): string {
  const names = address.replace(/^(agent|group):/, "").split(",");
  return names.filter((name) => name !== own).join(", ");
}

/** The canonical address of a conversation with these agents, or `undefined` when there are none. */
export function addressOf(text: string, own: string): Address | undefined {
  const names = text.split(/[\s,]+/).map((name) => name.replace(/^(agent|group):/, "")).filter((name) => name !== "");
  const others = [...new Set(names)].filter((name) => name !== own);
  const [first] = others;
  if (first === undefined) return undefined;
  if (others.length === 1) return `agent:${first}`;
  // Names are ASCII, for which the default order is the canonical one.
  return `group:${[...others, own].sort().join(",")}`;
}
