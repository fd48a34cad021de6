// Waiting for a condition, with a deadline. The only way a test waits.

/** Milliseconds a test waits for something that should happen soon, on a slow and busy machine. */
export const SOON_MS = 30_000;

const POLL_MS = 20;

/**
 * Calls `probe` until it returns something other than `undefined`, `null` or `false`, and returns that.
 * A probe that throws counts as "not yet"; its last error is the cause of the failure.
 */
export async function until(what, probe, deadlineMs = SOON_MS) {
  const deadline = Date.now() + deadlineMs;
  let cause;
  for (;;) {
    try {
      const found = await probe();
      if (found !== undefined && found !== null && found !== false) return found;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > deadline) throw new Error(`waited ${deadlineMs} ms for ${what}`, { cause });
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
