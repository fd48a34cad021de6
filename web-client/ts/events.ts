/** What an open endpoint tells of itself while it lives, for whoever shows it. Nothing of an application should depend on it. */
import type { Address, AgentAddress, Content, ConversationState } from "./types.js";

/**
 * One thing that changed, told apart by `kind`. Each event is a complete picture of its subject (the connection, the storage, one
 * conversation, one post) and takes the place of the one before; a reader that begins is told the present first.
 */
export type EndpointEvent =
  | ConnectionEvent
  | ConversationEvent
  | RecoveryEvent
  | PostEvent
  | StallEvent
  | StorageUseEvent
  | RoleEvent;

/** Whether the deployment is reached. */
export interface ConnectionEvent {
  readonly kind: "connection";
  readonly state: "connecting" | "online" | "offline";
  /** When this state began, in milliseconds since the epoch. */
  readonly since: number;
  /** Why it is offline, for people; `null` when it is not. */
  readonly detail: string | null;
  /**
   * When it tries again by itself, in milliseconds since the epoch; `null` when it is not offline. It tries at once when the
   * browser says that it is online, and when the page is shown again.
   */
  readonly nextAttemptAt: number | null;
}

/** A conversation became known, or changed its state. */
export interface ConversationEvent {
  readonly kind: "conversation";
  readonly address: Address;
  readonly state: ConversationState;
  /** Why it carries no posts, for people; `null` when it does. */
  readonly detail: string | null;
}

/** What a conversation that carries no posts now is waiting for. */
export interface RecoveryEvent {
  readonly kind: "recovery";
  readonly address: Address;
  /** `null` when it has recovered. */
  readonly waits: RecoveryWait | null;
}

/** The part of its recovery a conversation is in, and how far it has come there. */
export interface RecoveryWait {
  readonly phase:
    /** Enough other members are to answer what follows the history held here. */
    | "catch-up"
    /** All other members are to answer: one of them may know of an earlier end of this recovery. */
    | "every-member"
    /** Enough members are to vote to go on under the deployment's new Router instance. */
    | "reanchor"
    /** Enough members are to vouch for a post that was on its way; it is finished first. */
    | "staged-successor";
  /** How many members answered or voted, this agent included where it votes itself. */
  readonly heard: number;
  /** How many must. */
  readonly needed: number;
  /** Those that have not. Not all of them need to. */
  readonly missing: readonly AgentAddress[];
  /** How often it asks again by itself. */
  readonly retriesLeft: number;
  /** It asks no more by itself: it goes on when a member comes, a post is sent or the connection is made anew. */
  readonly paused: boolean;
  /** Why it recovers, for people. */
  readonly detail: string;
}

/** How far a post has come. */
export type PostStage =
  /** Recorded in the author's store. */
  | "recorded"
  /** Its proposal is on its way to every member, or was received. */
  | "proposed"
  /** Enough members signed it, and this agent stored it. */
  | "stored"
  /** Enough members vouch that they stored it. Final. */
  | "certified";

/** Where a post is, from this agent's point of view. */
export interface PostEvent {
  readonly kind: "post";
  readonly address: Address;
  readonly postId: string;
  readonly author: AgentAddress;
  readonly content: Content;
  readonly stage: PostStage;
  /** Members whose signature this agent holds. */
  readonly signedBy: readonly AgentAddress[];
  /** Members that vouch for having stored the post. */
  readonly storedBy: readonly AgentAddress[];
  /** How many signatures certify the post. */
  readonly signaturesNeeded: number;
  /** How many votes certify its storage. */
  readonly votesNeeded: number;
}

/** A conversation stands still, or goes on. Told when what it waits for has not come for half a minute. */
export interface StallEvent {
  readonly kind: "stall";
  readonly address: Address;
  /** `null` when it goes on. */
  readonly waits: StallWait | null;
}

/** What a conversation cannot go on without. Nothing replaces its members: an owner may want to look after them. */
export interface StallWait {
  readonly for:
    /** Signatures of the post that is first in line. */
    | "signatures"
    /** Votes that the post is stored. */
    | "votes"
    /** Answers what this agent has missed. */
    | "answers"
    /** Votes to go on under the deployment's new Router instance. */
    | "reanchor-votes";
  /** Of whom. Not all of them need be at fault: enough of them suffice. */
  readonly missing: readonly AgentAddress[];
  /** Whether a post of this agent waits behind one of another member. */
  readonly behindAnother: boolean;
}

/** What the browser gives to this origin for storing, as it is now and then asked. */
export interface StorageUseEvent {
  readonly kind: "storage";
  /** Whether the browser promises not to evict it; `null` when it does not say. An evicted agent needs a new name. */
  readonly persisted: boolean | null;
  /** Bytes in use by the whole origin, about; `null` when the browser does not say. */
  readonly usage: number | null;
  /** Bytes it may use, about; `null` when the browser does not say. */
  readonly quota: number | null;
  /**
   * `high` from four fifths of the quota on. `full` when a write was refused: what needed it has failed, or the endpoint has
   * ended with the `StoreError` `quota-exceeded`. What was stored before is safe, and nothing left that was not stored.
   */
  readonly pressure: "none" | "high" | "full";
}

/** How this tab takes part in the endpoint of its store. */
export interface RoleEvent {
  readonly kind: "role";
  /**
   * `owner`: the endpoint runs here. `attached`: it runs in another tab or worker, which carries out what is asked here.
   * `waiting`: its owner is gone or puts itself aside, and the next one is on its way; what is asked waits.
   */
  readonly role: "owner" | "attached" | "waiting";
}

/** Everything an endpoint would tell a reader of its events that begins now, in one piece. */
export interface EndpointState {
  readonly connection: ConnectionEvent;
  readonly role: RoleEvent["role"];
  /** `undefined` until the browser has answered. */
  readonly storage: StorageUseEvent | undefined;
  /** The conversations that carry no posts now. */
  readonly conversations: readonly ConversationEvent[];
  /** What those wait for. */
  readonly recoveries: readonly RecoveryEvent[];
  /** The conversations that stand still. */
  readonly stalls: readonly StallEvent[];
  /** The posts that are not certified yet, of this agent and of others. */
  readonly posts: readonly PostEvent[];
}
