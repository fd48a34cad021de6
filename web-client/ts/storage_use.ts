/** How much of what the browser gives for storing is used. Asked at the opening, then every so many writes. */
import type { ConclaveError } from "./errors.js";
import type { StorageUseEvent } from "./events.js";

/** From this part of the quota on the pressure is high. */
const PRESSURE_HIGH = 0.8;

/** Transitions the endpoint stores before the browser is asked again. A post takes about ten of them, of some KiB. */
const TRANSITIONS_BETWEEN = 2_048;

export class StorageUse {
  readonly #tell: (event: StorageUseEvent) => void;
  #latest: StorageUseEvent = { kind: "storage", persisted: null, usage: null, quota: null, pressure: "none" };
  #transitions = 0;
  #isAsking = false;

  constructor(tell: (event: StorageUseEvent) => void) {
    this.#tell = tell;
  }

  /** So many transitions were stored. */
  stored(transitions: number): void {
    this.#transitions += transitions;
    if (this.#transitions >= TRANSITIONS_BETWEEN) void this.ask();
  }

  /** Asks the browser, unless it is being asked, and tells what it says. It may refuse to say. */
  async ask(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#transitions = 0;
    try {
      const storage = globalThis.navigator.storage as StorageManager | undefined;
      const [estimate, persisted] = await Promise.all([storage?.estimate?.(), storage?.persisted?.()]);
      const [usage, quota] = [estimate?.usage ?? null, estimate?.quota ?? null];
      const isHigh = usage !== null && quota !== null && usage >= PRESSURE_HIGH * quota;
      this.#say({ kind: "storage", persisted: persisted ?? null, usage, quota, pressure: isHigh ? "high" : "none" });
    } catch {
      // An origin without storage of its own has nothing to say.
    } finally {
      this.#isAsking = false;
    }
  }

  /** Something failed: if a write that was refused for want of room is behind it, the storage is full. */
  failed(error: ConclaveError): void {
    const codes = [error, error.cause].map((failure) => (failure as { readonly code?: unknown } | undefined)?.code);
    if (codes.includes("quota-exceeded")) this.#say({ ...this.#latest, pressure: "full" });
  }

  #say(event: StorageUseEvent): void {
    this.#latest = event;
    this.#tell(event);
  }
}
