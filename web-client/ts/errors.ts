/**
 * Every failure of this package is a {@link ConclaveError}: a class that says which operation failed and a `code` that
 * says why. Codes are stable; messages are for people and may change.
 *
 * One thing is not wrapped: an operation ended by its `AbortSignal` rejects with the signal's own reason, as `fetch` does.
 */

/** Why a send failed. */
export type SendErrorCode =
  /**
   * The address breaks the grammar, or is the local agent's own. Final: correct the address: `agent:NAME`, or
   * `group:NAME,NAME` without this agent.
   */
  | "invalid-address"
  /**
   * A named agent has no card in the Registry. Final: check the name. Once that agent has opened an endpoint, the same send
   * succeeds.
   */
  | "unknown-agent"
  /** A name is repeated, or the group has fewer than 3 or more than 32 members. Final: name 2 to 31 other agents, each once. */
  | "membership-invalid"
  /**
   * The content is empty, is no JSON, is not well-formed Unicode, or is larger than 32,768 bytes. Final: send less, or values
   * that JSON has.
   */
  | "content-invalid"
  /** This endpoint holds no registered identity. Final: close the endpoint and open it with a connection to the deployment. */
  | "not-registered"
  /**
   * The deployment or the store speaks another wire version. Final: update the package to the release that the deployment
   * speaks.
   */
  | "version-mismatch"
  /**
   * The post can not be signed or certified as things stand. Final: see `cause`. Where too many posts are unfinished it is
   * retryable: wait until some are certified.
   */
  | "certification-unavailable"
  /** The store failed; nothing was sent. Final: see `cause` for the store's failure, close the endpoint and open it again. */
  | "persistence-failed"
  /**
   * The deployment can not be reached; nothing was recorded and nothing was sent. Retryable: send again when the connection is
   * back.
   */
  | "network-unavailable"
  /**
   * The post is recorded and stays queued, here and over reloads: the deployment can not be reached for now, or the endpoint
   * ended. It is made as soon as it can be; to send it again would make another one. Final: wait: the post is among the
   * pending ones until it is certified.
   */
  | "delivery-pending"
  /** A post of this id exists with another content or address. Final: give every post an id of its own. */
  | "idempotency-conflict"
  /** The endpoint was closed before the post was recorded. Final: open the endpoint and send again. */
  | "closed";

/** Why the subscription to messages failed. */
export type ListenErrorCode =
  /**
   * Messages are already being read: an endpoint has one subscriber. Final: end the other iteration first, or share its
   * messages.
   */
  | "already-listening"
  /** A stored message no longer decodes. Final: report it: the store holds what this release can not read. */
  | "decode-failed"
  /**
   * The endpoint failed while the subscription was open; `cause` says how. Final: open the endpoint again; what was not
   * acknowledged is delivered again.
   */
  | "transport-failed";

/** Why an acknowledgment failed. */
export type AcknowledgeErrorCode =
  /** The store holds no such delivery. Final: nothing: it was acknowledged before. */
  | "unknown-delivery"
  /** The delivery is not what the store holds under its token. Final: acknowledge what the iteration gave, unchanged. */
  | "delivery-conflict"
  /**
   * The store failed; the message will be delivered again. Final: handle the message as one that may come twice; it is
   * delivered again when the endpoint is opened.
   */
  | "persistence-failed";

/** Why an endpoint could not be opened. */
export type OpenErrorCode =
  /** An option is missing or has the wrong form. Final: correct the option that the message names. */
  | "invalid-options"
  /** The name belongs to another key. Registration is first come, first served. Final: open under another name. */
  | "name-taken"
  /**
   * The key is registered under another name. Final: open under the name that this store registered, or with another
   * `storageName`.
   */
  | "key-already-registered"
  /** The Registry holds another request under the same operation. Final: open with another `storageName`. */
  | "idempotency-conflict"
  /**
   * The deployment guards registration, and the admission token is missing or wrong. Final: pass the `admissionToken` that the
   * operator of the deployment gives out.
   */
  | "not-admitted"
  /**
   * The deployment asks for a credential, or does not accept the one given. Final: pass a credential that the deployment
   * accepts.
   */
  | "unauthenticated"
  /**
   * The Registry's key is not the one given, or not the one pinned at first use. Final: ask the operator for the Registry's
   * key. Do not go on with another one than expected.
   */
  | "registry-untrusted"
  /**
   * The stored key is not the key of the stored card. Final: the store is damaged: export what can be read, and open with
   * another `storageName`.
   */
  | "identity"
  /** The deployment can not be reached. Retryable: open again when there is a connection. */
  | "network-unavailable"
  /** The deployment answered with something that is not an answer. Final: check that `url` is that of a deployment. */
  | "decode-failed"
  /**
   * The wasm module or the worker's script can not be loaded, or the worker says nothing or dies. Retryable: check that both files
   * are served where the page looks for them, and that its policy allows WebAssembly and workers.
   */
  | "module-unavailable"
  /** The tab that owns the store runs another release of this package. Final: reload the tabs of the older release. */
  | "incompatible-owner"
  /**
   * Another tab has this store open for another deployment, name or Registry key. Open it with the same, or close it there.
   * Final: open with the options of the other tab, or with another `storageName`.
   */
  | "options-differ";

/** What is wrong with the store. */
export type StoreErrorCode =
  /**
   * There is no IndexedDB here, or the browser refuses it to this page. Final: tell the user to leave the private window or to
   * allow the site to store data.
   */
  | "indexeddb-unavailable"
  /** There are no Web Locks here (they need a secure context). Final: serve the page over https. */
  | "locks-unavailable"
  /** Another page, tab or worker holds this agent's store. Retryable: close the other page, or wait for it. */
  | "store-locked"
  /**
   * The browser's quota is used up; nothing of the change was kept. Retryable: make room: the user can free storage of the
   * site or of the disk.
   */
  | "quota-exceeded"
  /** A newer release wrote this store. It was not touched. Final: update the package to the release that wrote the store. */
  | "newer-schema"
  /**
   * A release from before the migration baseline wrote this store. It was not touched. Final: open with another `storageName`.
   */
  | "pre-reset"
  /** This is not one of our stores. It was not touched. Final: open with another `storageName`. */
  | "incompatible"
  /**
   * A message of an earlier wire version still waits to be sent. Final: open the store with the release that wrote it, until
   * everything is sent.
   */
  | "outbox-too-old"
  /**
   * The store could not be brought to this release's layout. It is as it was, or `Endpoint.restore` puts it back: the message
   * says which. Final: open with the release that wrote the store, after `Endpoint.restore` where the message says so; report
   * it.
   */
  | "migration-failed"
  /** Another page keeps the store open in an older release. Retryable: close the older pages and open again. */
  | "upgrade-blocked"
  /**
   * The key of this agent is here and its history is gone, so it is not known what the key signed. Nothing is signed with it.
   * Final: `Endpoint.reset`, and open under another name.
   */
  | "store-evicted"
  /**
   * The store is, or would be put back to, a state from before it last signed. Nothing is signed with it. Final:
   * `Endpoint.reset`, and open under another name.
   */
  | "store-rolled-back"
  /** `Endpoint.restore` found nothing to put back. Final: nothing: the store is as it is. */
  | "no-backup"
  /**
   * Stored history does not verify, or rows contradict each other. Final: do not delete the store; report what the message
   * names, and open with another `storageName` and name meanwhile.
   */
  | "corrupt"
  /** The store was closed by the browser or by another page that upgrades or deletes it. Retryable: open the endpoint again. */
  | "closed"
  /** A row or a precondition was not what it had to be. Final: open the endpoint again; report it if it comes back. */
  | "conflict"
  /** The database failed in another way. Final: see `cause`, and open the endpoint again. */
  | "persistence";

/** Why a read of history failed. */
export type HistoryErrorCode =
  /** The address breaks the grammar. Final: correct the address: `agent:NAME` or `group:NAME,NAME`. */
  | "invalid-address"
  /** An option is missing, of the wrong type or out of range. Final: correct the option that the message names. */
  | "invalid-options"
  /** The continuation was released, or is of another conversation or endpoint. Final: read the first page again. */
  | "invalid-continuation"
  /** There is no conversation at this address, or it has no such post. Final: send a post first, or wait for one. */
  | "not-found"
  /** Stored history does not verify. Final: do not delete the store; report what the message names. */
  | "corrupt"
  /** The store failed. Final: see `cause`, and open the endpoint again. */
  | "persistence-failed";

/** Why a call to the backend failed: gRPC's codes. */
export type BackendErrorCode =
  /** The call was given up on the other side. Retryable: call again. */
  | "cancelled"
  /** What answered is no backend, or failed in a way that it does not name. Final: check the address. */
  | "unknown"
  /** The request is malformed, beyond a bound, or not admitted. Final: change the request; the same one fails again. */
  | "invalid-argument"
  /** There was no answer in time. Retryable: call again, with more time. A publish of the same bytes is stored once. */
  | "deadline-exceeded"
  /** There is no such thing. Final: check what was asked for. */
  | "not-found"
  /** There is such a thing already. Final: use what is there. */
  | "already-exists"
  /** The credential is good and does not allow this. Final: ask for a credential that allows it. */
  | "permission-denied"
  /** Something is used up for now. Retryable: call again, later. */
  | "resource-exhausted"
  /** The deployment is not in the state that the call asks for. Final: see the message for the state that is missing. */
  | "failed-precondition"
  /** The identity history has moved. Final: read the inbox's identity topic, build the update anew on it, and publish that. */
  | "aborted"
  /** The request or its answer is longer than the transport carries. Final: ask for less; settle a publish by a read. */
  | "out-of-range"
  /** The deployment does not serve this call, or not in this form. Final: update the package or the deployment. */
  | "unimplemented"
  /** An invariant is broken, in the deployment or in what answered. Final: report it. */
  | "internal"
  /** The deployment can not be reached, or not serve for now. Retryable: call again. */
  | "unavailable"
  /** Stored data is lost. Final: report it. */
  | "data-loss"
  /** The credential is missing, expired or unknown. Final: connect with a credential that is good. */
  | "unauthenticated";

/** What a publish was refused for. */
export type PublishErrorReason =
  | "unspecified"
  /** An envelope does not parse as what it says it is. */
  | "malformed-payload"
  /** A key package's signatures, lifetime or credential are not good. */
  | "invalid-key-package"
  /** An identity update does not apply to its inbox. */
  | "invalid-identity-update"
  /** A signature does not verify. */
  | "invalid-signature"
  /** An envelope or the request is beyond a bound. A publish is atomic, so it is not split: publish fewer envelopes. */
  | "too-large"
  /** Another inbox claimed the handle. */
  | "handle-taken"
  /** The deployment does not give this handle away. */
  | "handle-not-allowed"
  /** The inbox claimed a handle less than 7 days ago. */
  | "handle-too-soon";

/** Why a file could not be verified at all. A file that does not verify is a result of `verify` instead. */
export type VerifyErrorCode =
  /**
   * The file is nothing that bytes can be read from, or the Registry's key is no Ed25519 key. Final: pass the export and the
   * key.
   */
  "invalid-options";

/** Every stable code. */
export type ErrorCode =
  | BackendErrorCode
  | SendErrorCode
  | ListenErrorCode
  | AcknowledgeErrorCode
  | OpenErrorCode
  | StoreErrorCode
  | HistoryErrorCode
  | VerifyErrorCode;

/** What a {@link ConclaveError} is made of. */
export interface ConclaveErrorOptions {
  /** Whether the same call can succeed later without any change to its arguments. */
  readonly retryable?: boolean;
  /** What led to this failure. */
  readonly cause?: unknown;
}

/** The base of every failure of this package. */
export class ConclaveError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name: string = "ConclaveError";
  /** Why it failed: stable, for programs. */
  readonly code: Code;
  /** Whether the same call can succeed later without any change to its arguments. */
  readonly retryable: boolean;

  constructor(code: Code, message: string, options: ConclaveErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** `Endpoint.send` failed. */
export class SendError extends ConclaveError<SendErrorCode> {
  override readonly name = "SendError";
}

/** Iterating `Endpoint.messages()` failed. */
export class ListenError extends ConclaveError<ListenErrorCode> {
  override readonly name = "ListenError";
}

/** `Delivery.acknowledge` failed. */
export class AcknowledgeError extends ConclaveError<AcknowledgeErrorCode> {
  override readonly name = "AcknowledgeError";
}

/** `Endpoint.open` failed for a reason that is not the store's. */
export class OpenError extends ConclaveError<OpenErrorCode> {
  override readonly name = "OpenError";
}

/** The store can not be opened, or failed while the endpoint was open. There is no fall-back to memory. */
export class StoreError extends ConclaveError<StoreErrorCode> {
  override readonly name = "StoreError";
}

/** `Endpoint.history`, `proof`, `export` or `conversations` failed. */
export class HistoryError extends ConclaveError<HistoryErrorCode> {
  override readonly name = "HistoryError";
}

/** A call to the backend failed. */
export class BackendError extends ConclaveError<BackendErrorCode> {
  override readonly name: string = "BackendError";
}

/** `Backend.publish` failed. */
export class PublishError extends BackendError {
  override readonly name = "PublishError";
  /**
   * Whether the publish is known to have stored nothing. If not, it may have stored everything: do not publish another envelope
   * for the same message until a publish of the same envelopes, or `Backend.settle`, has said what became of it.
   */
  readonly isRefused: boolean;
  /** What it was refused for, where the deployment says so. */
  readonly reason: PublishErrorReason | undefined;
  /** Which envelope it was refused for; `undefined` where it was for the request as a whole. */
  readonly index: number | undefined;

  constructor(
    code: BackendErrorCode,
    message: string,
    options: ConclaveErrorOptions & {
      readonly isRefused: boolean;
      readonly reason?: PublishErrorReason | undefined;
      readonly index?: number | undefined;
    },
  ) {
    super(code, message, options);
    this.isRefused = options.isRefused;
    this.reason = options.reason;
    this.index = options.index;
  }
}

/** `verify` could not begin. */
export class VerifyError extends ConclaveError<VerifyErrorCode> {
  override readonly name = "VerifyError";
}

/** A failure as it crosses from the wasm module. */
interface CoreFailure {
  /** The operation it belongs to. One of another release may be none of those here: its failure is of the base class. */
  readonly operation: string;
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly cause?: unknown;
}

/** A failure in the form in which it crosses: the way back from {@link fromCore}. */
export function toCore(failure: unknown): object {
  if (!(failure instanceof ConclaveError)) return failure instanceof Error ? failure : new Error(String(failure));
  const { name, code, message, retryable, cause } = failure;
  const operation = name.slice(0, -"Error".length).toLowerCase();
  return { operation, code, message, retryable, ...(cause === undefined ? {} : { cause: toCore(cause) }) };
}

function isCoreFailure(value: unknown): value is CoreFailure {
  return (
    typeof value === "object" &&
    value !== null &&
    "operation" in value &&
    "code" in value &&
    typeof value.code === "string" &&
    "message" in value &&
    typeof value.message === "string"
  );
}

/**
 * The typed error for what the wasm module threw. Anything else passes through unchanged: it is an abort reason, or a
 * defect that must not be dressed up as an expected failure.
 */
export function fromCore(thrown: unknown): unknown {
  if (!isCoreFailure(thrown)) return thrown;
  const { operation, code, message, retryable } = thrown;
  const options: ConclaveErrorOptions = {
    retryable,
    ...(thrown.cause === undefined ? {} : { cause: fromCore(thrown.cause) }),
  };
  switch (operation) {
    case "send":
      return new SendError(code as SendErrorCode, message, options);
    case "listen":
      return new ListenError(code as ListenErrorCode, message, options);
    case "acknowledge":
      return new AcknowledgeError(code as AcknowledgeErrorCode, message, options);
    case "open":
      return new OpenError(code as OpenErrorCode, message, options);
    case "store":
      return new StoreError(code as StoreErrorCode, message, options);
    case "history":
      return new HistoryError(code as HistoryErrorCode, message, options);
    default:
      return new ConclaveError(code as ErrorCode, message, options);
  }
}
