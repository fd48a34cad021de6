import type { Core, Subscription } from "./conclave_web_client.js";
import { fromCore } from "./errors.js";
import type { Delivery, Message } from "./types.js";

/** Iterates deliveries: the backlog in the order it was certified here, then live ones, without gap or repetition. */
export class Messages implements AsyncIterableIterator<Delivery, undefined> {
  readonly #core: Core;
  #subscription: Subscription | undefined;
  #ended = false;

  constructor(core: Core, signal: AbortSignal | undefined) {
    this.#core = core;
    if (signal?.aborted === true) this.#ended = true;
    else signal?.addEventListener("abort", () => void this.return(), { once: true });
  }

  async next(): Promise<IteratorResult<Delivery, undefined>> {
    if (this.#ended) return { done: true, value: undefined };
    try {
      // The subscription is taken at the first read, so that an iterator nobody reads does not hold it.
      this.#subscription ??= this.#core.subscribe();
      const json = await this.#subscription.next();
      if (json === undefined) {
        this.#ended = true;
        return { done: true, value: undefined };
      }
      return { done: false, value: this.#delivery(json) };
    } catch (thrown) {
      this.#ended = true;
      throw fromCore(thrown);
    }
  }

  return(): Promise<IteratorResult<Delivery, undefined>> {
    this.#ended = true;
    this.#subscription?.cancel();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #delivery(json: string): Delivery {
    const { token, message } = JSON.parse(json) as { token: string; message: Message };
    const core = this.#core;
    return {
      message,
      acknowledge: async () => {
        try {
          await core.acknowledge(token);
        } catch (thrown) {
          throw fromCore(thrown);
        }
      },
    };
  }
}
