/**
 * The readers that iterate over what happens, until all of it ends. A reader that falls more than {@link BACKLOG_MAX} values
 * behind loses its oldest ones: what travels here are complete pictures, so the newest is enough.
 */
export class Broadcast<T> {
  readonly #readers = new Set<Reader<T>>();
  #ended = false;

  /** Ends every reader once it has read what it has. */
  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end();
    this.#readers.clear();
  }

  /** A reader of what `attach` gives to its argument, until the reader returns; `attach` says how to stop. */
  subscribe(signal: AbortSignal | undefined, attach: (push: (value: T) => void) => () => void): AsyncIterableIterator<T, undefined> {
    let detach = (): void => undefined;
    const stop = (): void => void reader.return();
    const reader = new Reader<T>(() => {
      signal?.removeEventListener("abort", stop);
      detach();
      this.#readers.delete(reader);
    });
    if (this.#ended || signal?.aborted === true) reader.end();
    else {
      this.#readers.add(reader);
      detach = attach((value) => reader.push(value));
      signal?.addEventListener("abort", stop);
    }
    return reader;
  }
}

/** The most values kept for a reader that does not read. */
const BACKLOG_MAX = 1024;

class Reader<T> implements AsyncIterableIterator<T, undefined> {
  readonly #values: T[] = [];
  readonly #waiting: ((result: IteratorResult<T, undefined>) => void)[] = [];
  readonly #detach: () => void;
  #ended = false;

  constructor(detach: () => void) {
    this.#detach = detach;
  }

  push(value: T): void {
    if (this.#ended) return;
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting({ done: false, value });
      return;
    }
    this.#values.push(value);
    if (this.#values.length > BACKLOG_MAX) this.#values.shift();
  }

  end(): void {
    this.#ended = true;
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined });
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const value = this.#values.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#values.length = 0;
    this.#detach();
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
