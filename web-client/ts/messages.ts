import type { Seat, Subscription } from "./seat.js";
import type { Delivery, Message } from "./types.js";

/** Iterates deliveries: the backlog in the order it was certified here, then live ones, without gap or repetition. */
export class Messages implements AsyncIterableIterator<Delivery, undefined> {
  readonly #seat: Seat;
  #subscription: Subscription | undefined;
  #ended = false;
  /** Stops to listen to the signal. */
  readonly #deafen: () => void;

  constructor(seat: Seat, signal: AbortSignal | undefined) {
    this.#seat = seat;
    // What has failed or has ended has no subscription to give back.
    const stop = (): void => void this.return().catch(() => undefined);
    this.#deafen = () => signal?.removeEventListener("abort", stop);
    if (signal?.aborted === true) this.#ended = true;
    else signal?.addEventListener("abort", stop);
  }

  async next(): Promise<IteratorResult<Delivery, undefined>> {
    if (this.#ended) return { done: true, value: undefined };
    try {
      // The subscription is taken at the first read, so that an iterator nobody reads does not hold it.
      this.#subscription ??= this.#seat.subscribe();
      const json = await this.#subscription.next();
      if (json === undefined) {
        this.#end();
        return { done: true, value: undefined };
      }
      return { done: false, value: this.#delivery(json) };
    } catch (thrown) {
      this.#end();
      // Whoever reads on after the failure does so by another iteration.
      this.#subscription?.cancel().catch(() => undefined);
      throw thrown;
    }
  }

  async return(): Promise<IteratorResult<Delivery, undefined>> {
    this.#end();
    await this.#subscription?.cancel();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    this.#ended = true;
    this.#deafen();
  }

  #delivery(json: string): Delivery {
    const { token, message } = JSON.parse(json) as { token: string; message: Message };
    return {
      message,
      acknowledge: async () => void (await this.#seat.request("acknowledge", JSON.stringify({ token }))),
    };
  }
}
