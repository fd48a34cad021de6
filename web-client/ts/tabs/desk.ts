/** The owner's side of the lines: carries out what tabs ask, this one among them. */
import { ListenError, toCore } from "../errors.js";
import type { Running } from "../seat.js";
import type { Post } from "./line.js";
import { IN_FLIGHT_MAX, type TabMessage } from "./protocol.js";
import { crowded } from "./requests.js";

/** A tab at the desk. */
export interface Attendance {
  take(message: TabMessage): void;
  /** The tab is gone: what it asked for ends, and its subscription is free. */
  leave(): void;
}

export class Desk {
  readonly #running: Running;
  readonly #epoch: string;
  /** Resolves when tabs that died until now are known to be gone. */
  readonly #reckon: () => Promise<unknown>;

  constructor(running: Running, epoch: string, reckon: () => Promise<unknown>) {
    this.#running = running;
    this.#epoch = epoch;
    this.#reckon = reckon;
  }

  /** Takes a tab that hears through `post`. */
  attend(post: Post): Attendance {
    const open = new Map<number, AbortController>();
    let isGone = false;
    let subscription: string | undefined;
    const epoch = this.#epoch;
    // A tab has one subscription, and its latest. One that it gave back while it was taken is not in the way of the next.
    const take = async (): Promise<string> => {
      if (subscription !== undefined) this.#unsubscribe(subscription);
      subscription = undefined;
      return (subscription = await this.#subscribe());
    };
    let taking: Promise<string> | undefined;
    const say: Post = (message) => {
      if (!isGone) post(message);
    };
    const carryOut = async ({ number, operation, argumentsJson }: TabMessage & { kind: "ask" }): Promise<void> => {
      if (isGone || open.has(number)) return;
      // What a tab has given up counts until it has ended here.
      if (open.size >= IN_FLIGHT_MAX) return say({ kind: "failure", epoch, number, failure: crowded(operation) });
      const controller = new AbortController();
      const { signal } = controller;
      open.set(number, controller);
      try {
        if (operation === "watch") {
          const stop = this.#running.watch((events) => say({ kind: "events", epoch, number, events }));
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          stop();
        } else if (operation === "subscribe") {
          const mine = (taking = taking?.then(take, take) ?? take());
          const json = await mine.finally(() => {
            if (taking === mine) taking = undefined;
          });
          if (isGone) this.#unsubscribe(json);
          say({ kind: "answer", epoch, number, json });
        } else {
          const json = await this.#running.request(operation, argumentsJson, signal);
          say({ kind: "answer", epoch, number, json });
        }
      } catch (thrown) {
        say({ kind: "failure", epoch, number, failure: toCore(thrown) });
      } finally {
        open.delete(number);
      }
    };
    return {
      take: (message) => {
        if (message.kind === "abort") open.get(message.number)?.abort();
        else if (message.kind === "ask") void carryOut(message);
      },
      leave: () => {
        isGone = true;
        for (const controller of open.values()) controller.abort();
        if (subscription !== undefined) this.#unsubscribe(subscription);
      },
    };
  }

  async #subscribe(): Promise<string> {
    try {
      return await this.#running.request("subscribe", "{}");
    } catch (thrown) {
      if (!(thrown instanceof ListenError)) throw thrown;
      // The subscriber may be a tab that died just now.
      await this.#reckon();
      return this.#running.request("subscribe", "{}");
    }
  }

  #unsubscribe(subscription: string): void {
    // An endpoint that ended has no subscription either.
    this.#running.request("unsubscribe", `{"subscription":${subscription}}`).catch(() => undefined);
  }
}
