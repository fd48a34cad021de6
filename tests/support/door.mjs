// What lies between the package and a deployment in a test: it sees each call, and may answer in the deployment's place.

import { frame } from "./raw.mjs";
import { decode, encode } from "./wire.mjs";

/** A gRPC-Web response of frames. */
const answer = (...frames) => new Response(Buffer.concat(frames), { headers: { "content-type": "application/grpc-web+proto" } });

/** The response with a status alone. */
export function refusal(status, message = "") {
  return answer(frame(Buffer.from(`grpc-status:${status}\r\ngrpc-message:${encodeURIComponent(message)}\r\n`), 0x80));
}

/** The response with one message. */
export function answered(name, fields) {
  return answer(frame(Buffer.from(encode(name, fields))), frame(Buffer.from("grpc-status:0\r\n"), 0x80));
}

/** The message of a response that succeeded, by its fields. */
export async function messageOf(response, name) {
  const body = Buffer.from(await response.arrayBuffer());
  return decode(name, body.subarray(5, 5 + body.readUInt32BE(1)));
}

/** Watches every `fetch` until it is closed. */
export class Door {
  #fetch = globalThis.fetch;
  /** The calls, in their order: path and body. */
  calls = [];
  /** Answers a call instead of the deployment; `pass` sends it on. Without a response the call goes through. */
  inPlace = undefined;

  constructor() {
    globalThis.fetch = async (url, init) => {
      const path = new URL(url).pathname;
      this.calls.push({ path, method: path.split("/").at(-1), body: Buffer.from(init.body), headers: new Headers(init.headers) });
      const pass = () => this.#fetch(url, init);
      return (await this.inPlace?.(this.calls.at(-1), pass)) ?? pass();
    };
  }

  /** Forgets the calls and lets everything through. */
  reset() {
    this.calls = [];
    this.inPlace = undefined;
  }

  close() {
    globalThis.fetch = this.#fetch;
  }
}
