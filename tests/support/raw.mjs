// Raw HTTP against a deployment, for what no well-behaved client would send.

import http from "node:http";
import { decode } from "./wire.mjs";

const TRAILER = 0x80;

/** One gRPC-Web frame: flags, length, payload. */
export function frame(payload, flags = 0) {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

/**
 * Sends one request over a connection of its own, and resolves with status, headers and the whole body. A kept connection would
 * be one that the runtime may have closed while a test computed.
 */
export function request(url, path, { method = "POST", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const outgoing = http.request(new URL(path, url), { method, headers, agent: false }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Takes a gRPC-Web body apart: its messages, and the trailers of its last frame. */
export function parse(body) {
  const messages = [];
  let trailers;
  for (let at = 0; at < body.length; ) {
    const flags = body.readUInt8(at);
    const length = body.readUInt32BE(at + 1);
    const payload = body.subarray(at + 5, at + 5 + length);
    if (payload.length !== length) throw new Error("a frame is cut short");
    if (flags & TRAILER) trailers = payload.toString("latin1");
    else messages.push(payload);
    at += 5 + length;
  }
  return { messages, trailers };
}

/** The grpc-status of a response body, from the form of trailer that Cloudflare's edge can translate. */
export function grpcStatus(body) {
  const { trailers } = parse(body);
  const found = /^grpc-status:(\d+)\r\n/m.exec(trailers ?? "");
  if (!found) throw new Error(`no grpc-status in ${JSON.stringify(trailers)}`);
  return Number(found[1]);
}

/** The google.rpc.Status in a response's trailers. */
export function statusDetails(body) {
  const found = /^grpc-status-details-bin:([^\r]*)\r\n/m.exec(parse(body).trailers ?? "");
  return found && decode("google.rpc.Status", Buffer.from(found[1], "base64"));
}
