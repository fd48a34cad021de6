/**
 * How many agents a browser can hold at once. A browser opens at most six connections to a server that speaks HTTP/1.1,
 * as the local one does, over all of its windows. Each open agent keeps one for what it hears, and one more must be free
 * for what all of them say: with a sixth agent every one of them would fall silent.
 */
const AGENTS_MAX = 5;

/** Held by each window that has an agent open, with the agent's name behind it. */
const LOCK_PREFIX = "conclave-demo/";

/** Whether the agents that are open already leave no connection for this one. */
export async function isCrowded(name: string): Promise<boolean> {
  if (!isHttp1() || !("locks" in navigator)) return false;
  const { held = [] } = await navigator.locks.query();
  // A page that reloads may find its own lock still held.
  const others = held.filter((lock) => lock.name?.startsWith(LOCK_PREFIX) === true && lock.name !== LOCK_PREFIX + name);
  return others.length >= AGENTS_MAX;
}

/** Counts this window's agent until `ended` settles. */
export function occupy(name: string, ended: Promise<unknown>): void {
  void navigator.locks.request(LOCK_PREFIX + name, { mode: "shared" }, () => ended);
}

function isHttp1(): boolean {
  const [navigation] = performance.getEntriesByType("navigation");
  return navigation instanceof PerformanceNavigationTiming && navigation.nextHopProtocol.startsWith("http/1");
}
