import type { Seat, Subscription } from "./seat.js";
import type { Delivery, Message } from "./types.js";

/** Iterates deliveries: the backlog in the order it was certified here, then live ones, without gap or repetition. */
export class Messages implements AsyncIterableIterator<Delivery, undefined> {
  readonly #seat: Seat;
  #taken: Promise<Subscription> | undefined;
  #subscription: Subscription | undefined;
  #ended = false;

  constructor(seat: Seat, signal: AbortSignal | undefined) {
    this.#seat = seat;
    if (signal?.aborted === true) this.#ended = true;
    else signal?.addEventListener("abort", () => void this.return(), { once: true });
  }

  async next(): Promise<IteratorResult<Delivery, undefined>> {
    if (this.#ended) return { done: true, value: undefined };
    try {
      // The subscription is taken at the first read, so that an iterator nobody reads does not hold it.
      this.#taken ??= this.#seat.subscribe();
      this.#subscription = await this.#taken;
      // It may have been given back before it was there.
      if (this.#ended) await this.#subscription.cancel();
      const json = await this.#subscription.next();
      if (json === undefined) {
        this.#ended = true;
        return { done: true, value: undefined };
      }
      return { done: false, value: this.#delivery(json) };
    } catch (thrown) {
      this.#ended = true;
      throw thrown;
    }
  }

  async return(): Promise<IteratorResult<Delivery, undefined>> {
    this.#ended = true;
    await this.#subscription?.cancel();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #delivery(json: string): Delivery {
    const { token, message } = JSON.parse(json) as { token: string; message: Message };
    return {
      message,
      acknowledge: async () => void (await this.#seat.request("acknowledge", JSON.stringify({ token }))),
    };
  }
}
