// One call of any kind, as the script of tests/clients/four_clients.test.mjs sees it, whoever makes it.
//
// A caller is `{ name, isBidirectional, begin(path, { timeoutMs, headers }, listener) }`; what `begin` returns takes
// `send(bytes)`, `halfClose()` and `cancel()`. The listener is told `headers`, `message` and `end`,
// and `fail` when the caller itself does.

import { until } from "../until.mjs";

export class Call {
  /** The response's headers, once they are here. */
  headers;
  /** `{ code, text, details }`, once the call has ended. */
  ended;
  #failure;
  #messages = [];
  #handle;

  constructor(caller, path, options = {}) {
    this.#handle = caller.begin(path, options, {
      headers: (headers) => { this.headers = headers; },
      message: (bytes) => this.#messages.push(bytes),
      end: (end) => { this.ended ??= end; },
      fail: (error) => { this.#failure = error; },
    });
  }

  send(bytes) {
    this.#handle.send(bytes);
  }

  halfClose() {
    this.#handle.halfClose();
  }

  cancel() {
    this.#handle.cancel();
  }

  /** The next message; fails if the call ends without one. */
  async next() {
    await this.#until("a message", () => this.#messages.length > 0 || this.ended);
    if (this.#messages.length === 0) throw new Error(`the call ended: ${JSON.stringify(this.ended)}`);
    return this.#messages.shift();
  }

  /** How the call ended; what messages there were before are forgotten. */
  async end() {
    await this.#until("the end of the call", () => this.ended);
    return this.ended;
  }

  async #until(what, probe) {
    await until(what, () => probe() || this.#failure);
    if (this.#failure) throw this.#failure;
  }

  /** The only message of a unary call, or how it failed. */
  async unary() {
    const end = await this.end();
    if (end.code === 0 && this.#messages.length !== 1) throw new Error(`${this.#messages.length} messages`);
    return { ...end, message: this.#messages[0], headers: this.headers };
  }
}
