// Google's grpc-web as a caller, in text mode, the one it streams in. It sends one message a call: what is sent first
// begins the call.

import grpcWeb from "grpc-web";
import { XmlHttpRequest } from "./xml_http_request.mjs";
import * as wire from "../wire.mjs";

globalThis.XMLHttpRequest ??= XmlHttpRequest;

const asIs = (bytes) => bytes;
const SERVER_STREAMING = "server_streaming";
const UNARY = "unary";

export class GoogleCaller {
  name = "Google's grpc-web";
  isBidirectional = false;
  #client = new grpcWeb.GrpcWebClientBase({ format: "text" });
  #origin;

  constructor(origin) {
    this.#origin = origin;
  }

  begin(path, { timeoutMs, headers } = {}, listener) {
    const [, service, name] = path.split("/");
    const kind = wire.service(service).methods.find((method) => method.name === name).methodKind;
    const type = kind === "unary" ? UNARY : SERVER_STREAMING;
    const descriptor = new grpcWeb.MethodDescriptor(path, type, Uint8Array, Uint8Array, asIs, asIs);
    const metadata = { ...headers };
    if (timeoutMs !== undefined) metadata.deadline = String(Date.now() + timeoutMs);
    let stream;
    const end = ({ code, message, details, metadata: trailers }) => {
      const encoded = trailers?.["grpc-status-details-bin"] ?? "";
      listener.end({ code, text: message ?? details ?? "", details: new Uint8Array(Buffer.from(encoded, "base64")) });
    };
    return {
      send: (bytes) => {
        stream = this.#client.serverStreaming(this.#origin + path, bytes, metadata, descriptor);
        stream.on("metadata", (found) => listener.headers({ ...found }));
        stream.on("data", (message) => listener.message(new Uint8Array(message)));
        stream.on("error", end);
        stream.on("status", end);
      },
      halfClose: () => {},
      cancel: () => {
        stream.cancel();
        // It says nothing of a call that its own user cancelled.
        listener.end({ code: grpcWeb.StatusCode.CANCELLED, text: "", details: new Uint8Array() });
      },
    };
  }
}
