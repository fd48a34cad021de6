// connect-es as a caller: native gRPC over HTTP/2, or gRPC-Web, by the transport it is given.

import { ConnectError } from "@connectrpc/connect";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import * as wire from "../wire.mjs";

export class ConnectCaller {
  isBidirectional = true;

  constructor(name, transport) {
    this.name = name;
    this.transport = transport;
  }

  begin(path, { timeoutMs, headers } = {}, listener) {
    const [, service, name] = path.split("/");
    const method = wire.service(service).methods.find((candidate) => candidate.name === name);
    const requests = new Requests();
    const controller = new AbortController();
    this.#follow(method, controller.signal, timeoutMs, headers, requests, listener).then(
      () => listener.end({ code: 0, text: "", details: new Uint8Array() }),
      (cause) => {
        const error = ConnectError.from(cause);
        const details = error.metadata.get("grpc-status-details-bin") ?? "";
        listener.end({
          code: error.code,
          text: error.rawMessage,
          details: new Uint8Array(Buffer.from(details, "base64")),
        });
      },
    );
    return {
      send: (bytes) => requests.push(fromBinary(method.input, bytes)),
      halfClose: () => requests.close(),
      cancel: () => controller.abort(),
    };
  }

  async #follow(method, signal, timeoutMs, headers, requests, listener) {
    const isUnary = method.methodKind === "unary";
    const call = isUnary
      ? this.transport.unary(method, signal, timeoutMs, headers, (await requests[Symbol.asyncIterator]().next()).value)
      : this.transport.stream(method, signal, timeoutMs, headers, requests);
    const response = await call;
    listener.headers(Object.fromEntries(response.header));
    const tell = (message) => listener.message(toBinary(method.output, message));
    if (isUnary) return tell(response.message);
    for await (const message of response.message) tell(message);
  }
}

/** What is sent, until it is closed. */
class Requests {
  #waiting = [];
  #isClosed = false;
  #wake = () => {};

  push(message) {
    this.#waiting.push(message);
    this.#wake();
  }

  close() {
    this.#isClosed = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      if (this.#waiting.length > 0) yield this.#waiting.shift();
      else if (this.#isClosed) return;
      else await new Promise((resolve) => { this.#wake = resolve; });
    }
  }
}
