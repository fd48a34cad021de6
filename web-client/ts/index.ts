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
} from "./errors.js";
export type {
  ConnectionEvent,
  ConversationEvent,
  EndpointEvent,
  EndpointState,
  PostEvent,
  PostStage,
  RecoveryEvent,
  RecoveryWait,
  StallEvent,
  StallWait,
  StorageUseEvent,
} from "./events.js";
export type {
  Address,
  AgentAddress,
  Check,
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
  OpenOptions,
  SendOptions,
  SentPost,
  SharedConnection,
  SignerEntry,
  Verification,
} from "./types.js";
export type { Credential } from "./transport/credential.js";
export type { Statistics } from "./transport/statistics.js";
