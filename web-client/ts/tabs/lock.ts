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

/** Resolves when every lock that was let go until now is. */
export function settled(): Promise<unknown> {
  return navigator.locks.query();
}

function unavailable(cause: unknown): StoreError {
  return new StoreError("locks-unavailable", "this browser offers no Web Locks here (they need a secure context, and a frame that may store)", { cause });
}
