/** Web Locks, which outlive no tab: a lock that is granted says that its last holder is gone, however it went. */
import { StoreError } from "../errors.js";

/** Resolves with how to let go, once the lock is held. Rejects with the signal's reason when that aborts first. */
export function hold(name: string, signal: AbortSignal): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const { locks } = navigator;
    // Not there in a context that is not secure, whatever its type says.
    if (!(locks as LockManager | undefined)) throw unavailable(undefined);
    locks
      .request(name, { signal }, () => new Promise<void>((release) => resolve(release)))
      .catch((cause: unknown) => reject(signal.aborted ? (signal.reason as unknown) : unavailable(cause)));
  });
}

/** Carries out an action while the lock is held, and gives its outcome; `undefined`, without it, when another holds the lock. */
export async function ifFree<T>(name: string, action: () => Promise<T>): Promise<{ value: T } | undefined> {
  const { locks } = navigator;
  if (!(locks as LockManager | undefined)) throw unavailable(undefined);
  return (await locks.request(name, { ifAvailable: true }, async (lock) =>
    lock === null ? undefined : { value: await action() })) as { value: T } | undefined;
}

/** Resolves when every lock that was let go until now is. */
export function settled(): Promise<unknown> {
  return navigator.locks.query();
}

/** The lock and the channel of a store. */
export const lockOf = (store: string): string => `conclave/${store}`;

/** The lock that a worker of a page holds while it lives. */
export const lifeOf = (page: string): string => `${page}/worker`;

/** Another context holds a store's lock. */
export function locked(how = "another page or worker has this agent's store open"): StoreError {
  return new StoreError("store-locked", how, { retryable: true });
}

function unavailable(cause: unknown): StoreError {
  return new StoreError("locks-unavailable", "this browser offers no Web Locks here (they need a secure context, and a frame that may store)", { cause });
}
