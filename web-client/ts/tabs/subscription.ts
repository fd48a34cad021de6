/** The subscription of one tab, over every owner there is meanwhile: nothing is lost and nothing given out twice. */
import { abortable } from "../abort.js";
import { ListenError } from "../errors.js";
import type { Subscription } from "../seat.js";
import { Ended, type Line, LOST } from "./line.js";

export class TabSubscription implements Subscription {
  readonly #nextLine: () => Promise<Line>;
  readonly #free: () => void;
  readonly #cancelled = new AbortController();
  /** It is taken for the first time. */
  #begun: Promise<void> | undefined;
  /** The line the subscription was taken at, and what it is called there. */
  #taken: { readonly line: Line; readonly argumentsJson: string } | undefined;
  /** Tokens that were given out and are not acknowledged: a new owner delivers them again. */
  readonly #given = new Set<string>();

  /** `nextLine` gives the line there is, or the next one; `free` is called when the subscription has ended. */
  constructor(nextLine: () => Promise<Line>, free: () => void) {
    this.#nextLine = nextLine;
    this.#free = free;
  }

  /** Takes the subscription at the owner there is; nothing is taken when the endpoint has ended or it is cancelled. */
  async #take(): Promise<void> {
    this.#taken = undefined;
    try {
      while (this.#taken === undefined) {
        const line = await abortable(this.#nextLine(), this.#cancelled.signal);
        const number = await line.request("subscribe", "{}").catch(lost);
        if (number !== undefined) this.#taken = { line, argumentsJson: `{"subscription":${number}}` };
      }
      // It was given back while it was taken.
      if (this.#cancelled.signal.aborted) await this.cancel();
    } catch (thrown) {
      this.#free();
      if (thrown instanceof Ended && thrown.failure !== undefined) {
        throw new ListenError("transport-failed", "the endpoint failed while messages were read", { cause: thrown.failure });
      }
      if (!(thrown instanceof Ended) && thrown !== LOST) throw thrown;
    }
  }

  async next(): Promise<string | undefined> {
    const { signal } = this.#cancelled;
    await (this.#begun ??= this.#take());
    while (!signal.aborted && this.#taken !== undefined) {
      const { line, argumentsJson } = this.#taken;
      const json = await line.request("next", argumentsJson).catch(lost);
      if (json) {
        const token = tokenOf(json);
        if (!this.#given.has(token)) {
          this.#given.add(token);
          return json;
        }
      } else if (!signal.aborted) {
        // The endpoint ended there. It goes on at the next owner, unless it has ended for this tab.
        await line.lost;
        await this.#take();
      }
    }
    return undefined;
  }

  async cancel(): Promise<void> {
    this.#cancelled.abort(LOST);
    this.#free();
    if (this.#taken !== undefined) await this.#taken.line.request("unsubscribe", this.#taken.argumentsJson).catch(lost);
  }

  /** An acknowledgment with these arguments is stored. */
  forget(argumentsJson: string): void {
    this.#given.delete(tokenOf(argumentsJson));
  }
}

/** The token in a JSON object whose first member it is. */
function tokenOf(json: string): string {
  return json.slice(0, json.indexOf('"', TOKEN_AT));
}

/** Where the token begins in `{"token":"…`. */
const TOKEN_AT = '{"token":"'.length;

function lost(thrown: unknown): undefined {
  if (thrown !== LOST) throw thrown;
}
