// A caller that is a program of its own: told what to do, and telling what it sees, by lines of JSON.
//
// To it:    {"call": 1, "begin": {"path", "timeoutMs"?, "headers"?}, "send"?: base64, "halfClose"?: true, "cancel"?: true}
// From it:  {"call": 1, "headers": {…}} · {"call": 1, "message": base64} · {"call": 1, "end": {"code", "text", "details"}}

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const encode = (bytes) => Buffer.from(bytes).toString("base64");
const decode = (text) => new Uint8Array(Buffer.from(text, "base64"));

export class ProcessCaller {
  isBidirectional = true;
  #process;
  #listeners = new Map();
  #calls = 0;
  #failure;

  constructor(name, program, argument) {
    this.name = name;
    this.#process = spawn(program, argument, { stdio: ["pipe", "pipe", "inherit"] });
    this.#process.on("error", (error) => this.#fail(error.message));
    this.#process.on("exit", (code, signal) => this.#fail(`it ended with ${code ?? signal}`));
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      const { call, headers, message, end } = JSON.parse(line);
      const listener = this.#listeners.get(call);
      if (headers) listener?.headers(headers);
      if (message !== undefined) listener?.message(decode(message));
      if (end) listener?.end({ ...end, details: decode(end.details) });
    });
  }

  /** Every call fails with the program. */
  #fail(reason) {
    this.#failure ??= new Error(`${this.name}: ${reason}`);
    for (const listener of this.#listeners.values()) listener.fail(this.#failure);
  }

  begin(path, { timeoutMs, headers } = {}, listener) {
    if (this.#failure) throw this.#failure;
    const call = ++this.#calls;
    this.#listeners.set(call, listener);
    const tell = (command) => this.#process.stdin.write(`${JSON.stringify({ call, ...command })}\n`);
    tell({ begin: { path, timeoutMs, headers } });
    return {
      send: (bytes) => tell({ send: encode(bytes) }),
      halfClose: () => tell({ halfClose: true }),
      cancel: () => tell({ cancel: true }),
    };
  }

  async close() {
    if (this.#failure) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.stdin.end();
    await ended;
  }
}
