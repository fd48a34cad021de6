/** How calls end: the seventeen gRPC codes, and what a client reads of a failure. Depends on nothing. */

/** The codes in the order of their numbers, 0 to 16. */
export const CODES = [
  "ok",
  "cancelled",
  "unknown",
  "invalid-argument",
  "deadline-exceeded",
  "not-found",
  "already-exists",
  "permission-denied",
  "resource-exhausted",
  "failed-precondition",
  "aborted",
  "out-of-range",
  "unimplemented",
  "internal",
  "unavailable",
  "data-loss",
  "unauthenticated",
] as const;

/** A gRPC code by its name. */
export type Code = (typeof CODES)[number];

/** How a call or a stream ended. */
export interface End {
  readonly code: Code;
  /** In words, for people. */
  readonly message: string;
  /** The encoded `google.rpc.Status`; empty where there is none. */
  readonly details: Uint8Array;
  /**
   * Whether the server said so. If not, this side drew it from a response that is broken or absent, and the call may have
   * had its effect.
   */
  readonly isStated: boolean;
  /** What led to it, where this side drew it. */
  readonly cause?: unknown;
}

/** An end that this side draws itself. */
export function drawn(code: Code, message: string, cause?: unknown): End {
  return { code, message, details: new Uint8Array(), isStated: false, ...(cause === undefined ? {} : { cause }) };
}

/** A call that failed. */
export class CallFailure extends Error {
  readonly end: End;
  /** The Router instance that answered, where the response names it. */
  readonly routerInstance: string | undefined;

  constructor(end: End, routerInstance?: string) {
    super(`${end.code}: ${end.message}`, end.cause === undefined ? undefined : { cause: end.cause });
    this.end = end;
    this.routerInstance = routerInstance;
  }
}

/** The code that stands for an HTTP status where a response is not gRPC-Web. */
export function codeOfHttpStatus(status: number): Code {
  switch (status) {
    case 400:
      return "internal";
    case 401:
      return "unauthenticated";
    case 403:
      return "permission-denied";
    case 404:
      return "unimplemented";
    case 429:
    case 502:
    case 503:
    case 504:
      return "unavailable";
    default:
      return "unknown";
  }
}

/**
 * The end that trailers or headers state; `undefined` where they have no `grpc-status`. A status that is no code's number is
 * `unknown`.
 */
export function endOf(header: (name: string) => string | null | undefined): End | undefined {
  const status = header("grpc-status")?.trim();
  if (status === undefined) return undefined;
  const code = (/^\d+$/.test(status) ? CODES[Number(status)] : undefined) ?? "unknown";
  const message = percentDecoded(header("grpc-message") ?? "");
  return { code, message, details: base64Decoded(header("grpc-status-details-bin") ?? ""), isStated: true };
}

/** Escapes that are none stay, and so does what is not UTF-8, as replacement characters. */
function percentDecoded(text: string): string {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return new TextDecoder().decode(Uint8Array.from(bytes, (character) => character.charCodeAt(0)));
}

/** What is not base64 is no bytes. Padding may be there or not. */
function base64Decoded(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
