/** What a failed call means to its caller, and whether the same request may be sent again (API-224, API-284). Pure. */
import { BackendError, type BackendErrorCode, PublishError, type PublishErrorReason } from "../errors.js";
import type { CallFailure, Code, End } from "../transport/status.js";
import * as tables from "./tables.js";
import { decode } from "./wire.js";

/** The type of a publish's detail. */
const PUBLISH_ERROR = "/xmtp.backend.v1.PublishError";

/** After these the same request fails the same way, whoever says so. */
const NEVER_AGAIN: readonly Code[] = ["invalid-argument", "out-of-range", "unimplemented"];
/** After these the same request may succeed. */
const AGAIN: readonly Code[] = ["unavailable", "deadline-exceeded", "resource-exhausted"];
/** After these a caller has to do something first, even where the server did not say so itself. */
const CALLERS_TURN: readonly Code[] = ["permission-denied", "aborted"];

/** Whether the same request may be sent again without a change. */
export function mayRepeat({ code, isStated }: End): boolean {
  if (NEVER_AGAIN.includes(code) || CALLERS_TURN.includes(code)) return false;
  return AGAIN.includes(code) || !isStated;
}

/** What a caller can do about a code, in a sentence; empty where there is nothing to say. */
const ADVICE: Partial<Record<Code, string>> = {
  "invalid-argument": "The same request fails again: change it.",
  "out-of-range": "Ask for less at once.",
  unimplemented: "The deployment does not serve this call.",
  unauthenticated: "Connect with a credential that the deployment accepts.",
  "permission-denied": "Ask for a credential that allows this.",
  unavailable: "Try again later.",
  "deadline-exceeded": "Try again later.",
  "resource-exhausted": "Try again later.",
  unknown: "Check the address of the deployment.",
};

const PUBLISH_ADVICE: Partial<Record<Code, string>> = {
  aborted: "The identity history has moved: read the inbox's identity topic, build the update anew on it, and publish that.",
  "out-of-range":
    "The same publish must not be sent again, and it may be stored: `settle` reads what became of each envelope.",
  unavailable: "It may be stored: publish the same envelopes again, or read what became of them by `settle`.",
  "deadline-exceeded": "It may be stored: publish the same envelopes again, or read what became of them by `settle`.",
};

/** The typed error for a call that failed. */
export function backendError(method: string, failure: CallFailure): BackendError {
  const { end } = failure;
  return new BackendError(codeOf(end), words(method, end, ADVICE[end.code]), {
    retryable: mayRepeat(end),
    ...(end.cause === undefined ? {} : { cause: end.cause }),
  });
}

/** The typed error for a publish that failed. */
export function publishError(failure: CallFailure): PublishError {
  const { end } = failure;
  const refusal = end.code === "invalid-argument" ? detailOf(end.details) : undefined;
  return new PublishError(codeOf(end), words("Publish", end, PUBLISH_ADVICE[end.code] ?? ADVICE[end.code]), {
    // Any other status proves no rollback (API-224).
    isRefused: end.isStated && (end.code === "invalid-argument" || end.code === "aborted"),
    reason: refusal?.reason,
    index: refusal?.index,
    retryable: mayRepeat(end),
    ...(end.cause === undefined ? {} : { cause: end.cause }),
  });
}

function codeOf({ code }: End): BackendErrorCode {
  return code === "ok" ? "internal" : code;
}

function words(method: string, { code, message }: End, advice: string | undefined): string {
  const said = message === "" ? code : `${code}: ${message}`;
  return `${method} failed (${said.replace(/\.$/, "")})${advice === undefined ? "" : `. ${advice}`}`;
}

interface Refusal {
  readonly reason: PublishErrorReason;
  readonly index?: number;
}

/** The `PublishError` among the details of a status, if there is one that reads. */
function detailOf(details: Uint8Array): Refusal | undefined {
  try {
    const status = decode(tables.status, details) as { details: { typeUrl: string; value: Uint8Array }[] };
    const detail = status.details.find(({ typeUrl }) => typeUrl.endsWith(PUBLISH_ERROR));
    if (detail === undefined) return undefined;
    const read = decode(tables.publishError, detail.value) as { reason: PublishErrorReason | number; index?: number };
    return { ...read, reason: typeof read.reason === "number" ? "unspecified" : read.reason };
  } catch {
    return undefined;
  }
}
