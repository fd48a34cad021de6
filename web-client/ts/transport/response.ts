/** Requests and responses of gRPC-Web over `fetch`. Depends on frames and statuses. */
import { type Arrival, FrameReader } from "./frames.js";
import { CallFailure, codeOfHttpStatus, drawn, type End, endOf } from "./status.js";

/** Names the Router instance that answered. */
const ROUTER_INSTANCE = "conclave-router-instance";
/** Names the only Router instance that may order what a publish carries. */
const EXPECTED_ROUTER_INSTANCE = "conclave-expected-router-instance";

/** What goes with a request beside its message. */
export interface RequestOptions {
  readonly token?: string | undefined;
  /** How long the server may take, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  readonly expectedRouterInstance?: string | undefined;
  readonly signal: AbortSignal;
}

/** A response that has begun. */
export interface ResponseStream {
  readonly routerInstance: string | undefined;
  /** The messages, then the end. The body is read to its end, so that its connection is used again. */
  readonly arrivals: AsyncGenerator<Arrival, undefined>;
}

/**
 * Sends one framed message.
 *
 * @throws {@link CallFailure} when no response begins; the outcome of the call is then unknown.
 */
export async function request(
  url: string,
  body: Uint8Array<ArrayBuffer>,
  { token, timeoutMs, expectedRouterInstance, signal }: RequestOptions,
): Promise<ResponseStream> {
  const type = "application/grpc-web+proto";
  const headers: Record<string, string> = { "content-type": type, accept: type, "x-grpc-web": "1" };
  if (timeoutMs !== undefined) headers["grpc-timeout"] = `${Math.ceil(timeoutMs)}m`;
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  if (expectedRouterInstance !== undefined) headers[EXPECTED_ROUTER_INSTANCE] = expectedRouterInstance;
  let response: Response;
  try {
    // A deployment knows callers by their credentials; cookies are not its business.
    response = await fetch(url, { method: "POST", headers, body, credentials: "omit", signal });
  } catch (cause) {
    throw new CallFailure(lost(cause));
  }
  const routerInstance = response.headers.get(ROUTER_INSTANCE) ?? undefined;
  return { routerInstance, arrivals: read(response) };
}

async function* read(response: Response): AsyncGenerator<Arrival, undefined> {
  const end = endOfHead(response);
  const frames = new FrameReader();
  try {
    const body = response.body?.getReader();
    for (let piece = await body?.read(); piece?.done === false; piece = await body?.read()) {
      if (end !== undefined) continue;
      for (const arrival of frames.push(piece.value)) {
        if ("message" in arrival) yield arrival;
      }
    }
  } catch (cause) {
    const known = end ?? frames.finish();
    yield { end: known.isStated ? known : lost(cause) };
    return;
  }
  yield { end: end ?? frames.finish() };
}

/** How a response ended if its head says all: the server answered in headers, or it is no gRPC-Web response. */
function endOfHead(response: Response): End | undefined {
  const stated = endOf((name) => response.headers.get(name));
  // OK in the headers promises nothing: the message is still to come, and so is the real end.
  if (stated !== undefined && stated.code !== "ok") return stated;
  if (response.status !== 200) return drawn(codeOfHttpStatus(response.status), `HTTP status ${response.status}`);
  const type = response.headers.get("content-type") ?? "";
  if (/^\s*application\/grpc-web(\+proto)?\s*(;|$)/i.test(type)) return undefined;
  return drawn("unknown", "the response is not gRPC-Web: check the address");
}

function lost(cause: unknown): End {
  return drawn("unavailable", `the deployment can not be reached: ${String(cause)}`, cause);
}
