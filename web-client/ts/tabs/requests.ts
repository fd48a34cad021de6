/** The requests of one tab that wait for their answers. Pure. */
import { IN_FLIGHT_MAX } from "./protocol.js";

interface Waiting {
  readonly resolve: (json: string) => void;
  readonly reject: (reason: unknown) => void;
}

/** No two requests of a context have one number: what is left over from an earlier line answers none of a later one. */
let numbers = 0;

export class RequestTable {
  readonly #waiting = new Map<number, Waiting>();

  /** Whether no other request may be opened now. */
  get isFull(): boolean {
    return this.#waiting.size >= IN_FLIGHT_MAX;
  }

  /** Opens a request under a number of its own. */
  open(): { readonly number: number; readonly answered: Promise<string> } {
    numbers += 1;
    const number = numbers;
    const answered = new Promise<string>((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
    return { number, answered };
  }

  /** Answers a request; nothing happens when it does not wait. */
  answer(number: number, json: string): void {
    this.#take(number)?.resolve(json);
  }

  /** Fails a request; nothing happens when it does not wait. */
  fail(number: number, reason: unknown): void {
    this.#take(number)?.reject(reason);
  }

  /** Fails every request that waits. */
  failAll(reason: unknown): void {
    for (const number of [...this.#waiting.keys()]) this.fail(number, reason);
  }

  #take(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    return waiting;
  }
}

/** Why a tab's request is not taken that is one too many, in the form in which failures cross. */
export function crowded(operation: string): object {
  const [kind, code] =
    operation === "send" ? ["send", "certification-unavailable"]
    : operation === "acknowledge" ? ["acknowledge", "persistence-failed"]
    : ["subscribe", "next"].includes(operation) ? ["listen", "transport-failed"]
    : ["history", "persistence-failed"];
  return { operation: kind, code, message: `this tab has ${IN_FLIGHT_MAX} requests open, as many as it may`, retryable: true };
}
