/**
 * When a connection may be gone, or may be there again, without anything having been heard: the browser goes offline or online,
 * or a page is shown again. (One that was frozen opens its endpoint again: `tabs/tab_seat.ts`.)
 */

/** Calls `wake` then. Returns how to stop. */
export function watchForWaking(wake: () => void): () => void {
  const controller = new AbortController();
  const listen = (target: EventTarget | undefined, type: string, listener: () => void): void =>
    target?.addEventListener?.(type, listener, { signal: controller.signal });
  // Workers have no document, and programs outside of browsers nothing of this.
  const page = globalThis.document as Document | undefined;
  const context = globalThis as Partial<typeof globalThis> as EventTarget;
  for (const type of ["online", "offline"]) listen(context, type, wake);
  listen(page, "visibilitychange", () => page?.visibilityState === "visible" && wake());
  return () => controller.abort();
}
