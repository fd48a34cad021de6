/**
 * What the tabs of one store say to each other. Pure: no browser object.
 *
 * On the store's channel everyone hears `hello` (a tab looks for the owner) and `owner` (who holds the store, and how far it
 * is). Each tab has a line of its own to the owner: there `welcome` opens it, `ask`, `abort` and `bye` go to the owner, and
 * `answer`, `failure` and `events` come back. A line's messages carry its epoch, which names one time of ownership: what
 * is left over from an earlier one is told by it.
 */

/** Which protocol this release speaks. Another number is another release, and neither guesses what the other means. */
export const PROTOCOL = 1;

/** The most requests one tab has open, watches among them. */
export const IN_FLIGHT_MAX = 1024;

/** The most tabs one owner serves. */
export const TABS_MAX = 256;

/** The fields of every message, by its kind. */
const FIELDS = {
  hello: { tab: "string" },
  owner: { epoch: "string", state: "string" },
  welcome: { epoch: "string", terms: "string" },
  ask: { epoch: "string", number: "number", operation: "string", argumentsJson: "string" },
  abort: { epoch: "string", number: "number" },
  bye: { epoch: "string" },
  answer: { epoch: "string", number: "number", json: "string" },
  failure: { epoch: "string", number: "number", failure: "object" },
  events: { epoch: "string", number: "number", events: "string" },
} as const;

interface Types {
  readonly string: string;
  readonly number: number;
  readonly object: object;
}

type Fields = typeof FIELDS;

/** A message of this protocol. */
export type TabMessage = {
  [Kind in keyof Fields]: { readonly kind: Kind } & {
    readonly [Name in keyof Fields[Kind]]: Fields[Kind][Name] extends keyof Types ? Types[Fields[Kind][Name]] : never;
  };
}[keyof Fields];

/** How far the owner of the announced epoch is. */
export type OwnerState = "opening" | "open" | "leaving";

/** A message as it travels. */
export function sealed(message: TabMessage): object {
  return { protocol: PROTOCOL, ...message };
}

/**
 * What arrived, whoever sent it: a message of ours, `"foreign"` for one of another protocol that speaks as an owner,
 * nothing for anything else.
 */
export function parse(data: unknown): TabMessage | "foreign" | undefined {
  if (typeof data !== "object" || data === null) return undefined;
  const message = data as Record<string, unknown>;
  const { protocol, kind, state } = message;
  if (typeof kind !== "string" || !Object.hasOwn(FIELDS, kind)) return undefined;
  // The form of these two is for all protocols.
  if (protocol !== PROTOCOL) return typeof protocol === "number" && (kind === "welcome" || (kind === "owner" && state !== "leaving")) ? "foreign" : undefined;
  for (const [name, type] of Object.entries(FIELDS[kind as keyof Fields])) {
    if (typeof message[name] !== type || message[name] === null) return undefined;
  }
  return message as unknown as TabMessage;
}
