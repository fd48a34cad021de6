/**
 * The backend's own client: publish envelopes, read them and hear of new ones, without WebAssembly and without a store. It runs in
 * windows, workers and Node.
 *
 * @packageDocumentation
 */
export { Backend } from "./backend.js";
export type { CallOptions, ConnectOptions } from "./backend.js";
export { Query } from "./query.js";
export type { QueryOptions } from "./query.js";
export { Subscription } from "./subscription.js";
export { topics } from "./topics.js";
export type {
  CommitLogEntry,
  Configuration,
  Ed25519Signature,
  Envelope,
  EnvelopeMeta,
  GroupMessage,
  Identifier,
  IdentifierKind,
  IdentityAction,
  IdentityUpdate,
  KeyPackage,
  Limits,
  MemberIdentifier,
  Settlement,
  Signature,
  StoredEnvelope,
  Topic,
  TopicCursor,
  TopicInput,
  Topics,
  WalletSignature,
  WalletVerdict,
  Welcome,
  WelcomePointer,
  WelcomePointerWrapperAlgorithm,
  WelcomeWrapperAlgorithm,
} from "./types.js";
export { BackendError, ConclaveError, PublishError } from "../errors.js";
export type { BackendErrorCode, ConclaveErrorOptions, PublishErrorReason } from "../errors.js";
export type { Credential } from "../transport/credential.js";
export type { Statistics } from "../transport/statistics.js";
