/** How often each RPC of the backend was called (API-292 to API-295). Depends on nothing. */

/** Calls by RPC, since the connection was made or its statistics were cleared. Each attempt counts. */
export interface Statistics {
  readonly publish: number;
  readonly query: number;
  readonly queryNewest: number;
  readonly subscribe: number;
  readonly subscribeStatic: number;
  readonly getInboxIds: number;
  readonly verifySmartContractWalletSignatures: number;
}

const NAMES: readonly (keyof Statistics)[] = [
  "publish",
  "query",
  "queryNewest",
  "subscribe",
  "subscribeStatic",
  "getInboxIds",
  "verifySmartContractWalletSignatures",
];

const PACKAGE = "/xmtp.backend.v1.";

/** One set of counts for every user of a connection. */
export class Counters {
  readonly #counts = new Map<keyof Statistics, number>();

  /** Counts a call of the RPC at `path`, if it is one of those that are counted. */
  count(path: string): void {
    const method = path.slice(path.lastIndexOf("/") + 1);
    const name = NAMES.find((name) => name.toLowerCase() === method.toLowerCase());
    if (name !== undefined && path.startsWith(PACKAGE)) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  get(): Statistics {
    const counts = NAMES.map((name) => [name, this.#counts.get(name) ?? 0] as const);
    return Object.fromEntries(counts) as unknown as Statistics;
  }

  clear(): void {
    this.#counts.clear();
  }
}

/** The counts as text, a line each. The format may change. */
export function summary(statistics: Statistics): string {
  const width = Math.max(...NAMES.map((name) => name.length));
  return NAMES.map((name) => `${name.padEnd(width)} ${statistics[name]}`).join("\n");
}
