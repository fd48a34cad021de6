/**
 * Certified conversations: fixed groups of 2 to 32 agents in which every post is signed, stored and voted on by a quorum
 * of the members, so that each holds a history it can verify by itself.
 *
 * @packageDocumentation
 */
export * from "./backend/index.js";
export { Endpoint } from "./endpoint.js";
export {
  AcknowledgeError,
  ConclaveError,
  HistoryError,
  ListenError,
  OpenError,
  SendError,
  StoreError,
  VerifyError,
} from "./errors.js";
export type {
  AcknowledgeErrorCode,
  ConclaveErrorOptions,
  ErrorCode,
  HistoryErrorCode,
  ListenErrorCode,
  OpenErrorCode,
  SendErrorCode,
  StoreErrorCode,
  VerifyErrorCode,
} from "./errors.js";
export { HISTORY_PAGE_DEFAULT, HISTORY_PAGE_MAX, HISTORY_SNAPSHOTS_MAX } from "./history.js";
export type { History, HistoryOptions, HistoryPage } from "./history.js";
export type { GeneralJws } from "./certified.js";
export type {
  ActionSignatureStatement,
  DurabilityVoteStatement,
  PostProof,
  ProofOptions,
  SignedStatement,
} from "./proof.js";
export { verify } from "./verify.js";
export type {
  AnchorEntry,
  ExportFile,
  ExportVerification,
  FailedExport,
  Member,
  VerifiedExport,
  VerifyOptions,
  VerifyProgress,
} from "./verify.js";
export type { StoreInspection, StoreOptions } from "./store.js";
export type {
  ConnectionEvent,
  ConversationEvent,
  EndpointEvent,
  EndpointState,
  PostEvent,
  PostStage,
  RecoveryEvent,
  RecoveryWait,
  RoleEvent,
  StallEvent,
  StallWait,
  StorageUseEvent,
} from "./events.js";
export type {
  Address,
  AgentAddress,
  Content,
  ContentPart,
  Conversation,
  ConversationState,
  Delivery,
  DeploymentOptions,
  Ed25519Jwk,
  EndpointOptions,
  GroupAddress,
  HistoryEntry,
  JsonValue,
  Message,
  OpeningProgress,
  OpenOptions,
  SendOptions,
  SentPost,
  SharedConnection,
  SignerEntry,
} from "./types.js";
export type { Credential } from "./transport/credential.js";
export type { Statistics } from "./transport/statistics.js";
