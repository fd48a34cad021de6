/** Doing long work without holding anything else up. Depends on nothing. */

/** Lets the page paint and answer its user, and comes back. Not a timer: those are slowed down in hidden pages. */
export function pause(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
  if (scheduler?.yield !== undefined) return scheduler.yield();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
