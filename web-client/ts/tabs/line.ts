/** A tab's line to the owner of the store, be that another tab or this one. */
import { type ConclaveError, fromCore } from "../errors.js";
import type { TabMessage } from "./protocol.js";
import { crowded, RequestTable } from "./requests.js";

/** Carries a message to the other end. */
export type Post = (message: TabMessage) => void;

/** Why a request has no answer: the owner is gone. To be asked again at the next one. */
export const LOST = Symbol("the owner is gone");

/** Why there is no line any more: the endpoint has ended for this tab. */
export class Ended {
  readonly failure: ConclaveError | undefined;

  constructor(failure: ConclaveError | undefined) {
    this.failure = failure;
  }
}

export class Line {
  /** Names the owner's time of ownership. */
  readonly epoch: string;
  readonly #post: Post;
  readonly #requests = new RequestTable();
  readonly #watches = new Map<number, (events: string) => void>();
  #isLost = false;
  #tellLost: () => void = () => undefined;
  /** Resolves when the line is lost. */
  readonly lost = new Promise<void>((resolve) => {
    this.#tellLost = resolve;
  });

  constructor(epoch: string, post: Post) {
    this.epoch = epoch;
    this.#post = post;
  }

  /** Asks the owner. Rejects with {@link LOST} when it goes before it has answered. */
  request(operation: string, argumentsJson: string, signal?: AbortSignal): Promise<string> {
    if (this.#isLost) return Promise.reject(LOST);
    if (this.#requests.isFull) return Promise.reject(fromCore(crowded(operation)));
    const { epoch } = this;
    const { number, answered } = this.#requests.open();
    const abort = (): void => {
      if (!this.#isLost) this.#post({ kind: "abort", epoch, number });
      this.#requests.fail(number, signal?.reason);
    };
    this.#post({ kind: "ask", epoch, number, operation, argumentsJson });
    if (signal === undefined) return answered;
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    return answered.finally(() => signal.removeEventListener("abort", abort));
  }

  /** Tells `listener` the current state, then every event, until what it returns is called. */
  watch(listener: (events: string) => void): () => void {
    const { epoch } = this;
    const { number, answered } = this.#requests.open();
    this.#watches.set(number, listener);
    // It is never answered, and to be lost is no news to it.
    answered.catch(() => undefined);
    if (!this.#isLost) this.#post({ kind: "ask", epoch, number, operation: "watch", argumentsJson: "" });
    return () => {
      this.#watches.delete(number);
      this.#requests.answer(number, "");
      if (!this.#isLost) this.#post({ kind: "abort", epoch, number });
    };
  }

  /** Takes what the owner says. */
  take(message: TabMessage): void {
    if (message.kind === "answer") this.#requests.answer(message.number, message.json);
    else if (message.kind === "failure") this.#requests.fail(message.number, fromCore(message.failure));
    else if (message.kind === "events") this.#watches.get(message.number)?.(message.events);
  }

  /** The owner is gone, or this tab leaves it. */
  lose(): void {
    this.#isLost = true;
    this.#watches.clear();
    this.#requests.failAll(LOST);
    this.#tellLost();
  }
}
