/** The values that cross the surface of this package. Addresses and posts; private protocol values appear in history only. */

import type { CONNECTION, Connection } from "./transport/connection.js";
import type { Credential } from "./transport/credential.js";

/** `agent:<name>`. */
export type AgentAddress = `agent:${string}`;

/** `group:<name>,<name>,…`, with the complete membership. */
export type GroupAddress = `group:${string}`;

/** Where a post goes, or where it came from. */
export type Address = AgentAddress | GroupAddress;

/** Any value JSON can carry. Numbers are finite, strings are well-formed Unicode. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** One part of a post. */
export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "data"; readonly value: JsonValue };

/** A post's content: at least one part, at most 32,768 bytes as canonical JSON. */
export type Content = readonly ContentPart[];

/** A post from another member, as it is delivered. */
export type Message =
  | {
      readonly kind: "direct";
      /** Unique to its author. */
      readonly postId: string;
      /** Where to answer: the author. */
      readonly address: AgentAddress;
      readonly sender: AgentAddress;
      readonly content: Content;
    }
  | {
      readonly kind: "group";
      readonly postId: string;
      /** Where to answer: the group. */
      readonly address: GroupAddress;
      readonly sender: AgentAddress;
      readonly content: Content;
      /** Every member, in canonical order. */
      readonly members: readonly AgentAddress[];
    };

/** A message and the means to say it was taken. Until then it is delivered again, over reloads too. */
export interface Delivery {
  readonly message: Message;
  /**
   * Marks the message as taken. Safe to repeat.
   *
   * @throws {@link AcknowledgeError}
   */
  acknowledge(): Promise<void>;
}

/** What a send that succeeded can say. */
export interface SentPost {
  /** The post's id, unique to its author; the same id appears in history and in events. */
  readonly postId: string;
}

/** A conversation this agent is a member of. */
export interface Conversation {
  readonly address: Address;
  /** Every member, the local agent included, in canonical order. */
  readonly members: readonly AgentAddress[];
  /** How many posts are certified. */
  readonly posts: number;
  /** How many posts of the local agent are not certified yet. */
  readonly unfinished: number;
  /** Whether it carries posts now. */
  readonly state: ConversationState;
  /** Why it does not, for people; `null` when it does. */
  readonly detail: string | null;
}

/** Whether a conversation carries posts now. */
export type ConversationState = "ready" | "unavailable";

/** A member and the 64-byte Ed25519 signature it gave, in base64url. */
export interface SignerEntry {
  readonly agent: AgentAddress;
  readonly agentId: string;
  readonly signature: string;
}

/** One certified post, as this agent's own store holds it. */
export interface HistoryEntry {
  /** Its place in the conversation, from 0. */
  readonly position: number;
  readonly postId: string;
  readonly author: AgentAddress;
  readonly content: Content;
  readonly conversationId: string;
  readonly membershipHash: string;
  readonly postIntentHash: string;
  readonly anchorHash: string;
  readonly actionHash: string;
  readonly recordHash: string;
  /** `null` for the first post. */
  readonly previousRecordHash: string | null;
  /** Who signed the post. */
  readonly actionSigners: readonly SignerEntry[];
  /** Who vouches that it is stored. */
  readonly durabilitySigners: readonly SignerEntry[];
}

/** An Ed25519 public key (RFC 8037). */
export interface Ed25519Jwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** base64url of 32 bytes. */
  readonly x: string;
}

/** Something whose connection can be shared: what `Backend.connect` gives. */
export interface SharedConnection {
  readonly [CONNECTION]: Connection;
}

/** Which deployment an endpoint is of. */
export type DeploymentOptions =
  | {
      /** Where the deployment answers, such as `https://conclave.example`. */
      readonly url: string | URL;
      /**
       * For a deployment that asks for credentials: a bearer token, or a function that gives one. The function is asked before
       * the first call, and again when a call is refused.
       */
      readonly credential?: Credential;
      readonly backend?: never;
    }
  | {
      /** A backend that is connected, whose address, credential and statistics this endpoint shares. */
      readonly backend: SharedConnection;
      readonly url?: never;
      readonly credential?: never;
    };

/** How far an opening is. The phases come in this order; those that are not due are left out. */
export type OpeningProgress =
  /** Another page may have the store still. */
  | { readonly phase: "waiting-for-store" }
  /** The store is copied, then brought to this release's layout. */
  | { readonly phase: "migrating" }
  /** The name is registered. */
  | { readonly phase: "registering" }
  /** Everything stored is verified: so many certified posts of so many. */
  | { readonly phase: "verifying"; readonly done: number; readonly total: number }
  /** The store is open; the deployment is connected to. */
  | { readonly phase: "connecting" };

/** How to open an endpoint. */
export type OpenOptions = DeploymentOptions & EndpointOptions;

/** How to open an endpoint, but for which deployment it is of. */
export interface EndpointOptions {
  /** The agent's name. It is registered at first use and belongs to this store's key from then on. */
  readonly name: string;
  /**
   * The Registry's key, or its thumbprint URI (`urn:ietf:params:oauth:jwk-thumbprint:sha-256:…`); another is refused.
   * Without it the first key seen is pinned.
   */
  readonly registryKey?: string | Ed25519Jwk;
  /** Required where the deployment guards registration. */
  readonly admissionToken?: string;
  /** Name of the IndexedDB database. By default it follows from the deployment's origin and the agent's name. */
  readonly storageName?: string;
  /**
   * Whether other tabs and workers of this origin that open the same store use this endpoint, and this one theirs. With
   * `false` a store that is open elsewhere is refused with `store-locked`. By default it is shared.
   */
  readonly share?: boolean;
  /**
   * Runs the endpoint in a worker, so that the page stays smooth: one for this page (`"dedicated"`), or one for all pages of
   * the origin (`"shared"`, which is `"dedicated"` where there are no shared workers). A worker of one's own, for bundlers or
   * policies that need it, imports `@conclave/client/worker`. By default the page itself runs it.
   */
  readonly worker?: false | "shared" | "dedicated" | Worker | SharedWorker;
  /** Ends the opening. It has no effect on an endpoint that is open. */
  readonly signal?: AbortSignal;
  /** Hears how far the opening is: of a long history it takes a while. */
  readonly onOpening?: (progress: OpeningProgress) => void;
  /**
   * Where the wasm module is, when the bundler does not keep `conclave_web_client_bg.wasm` beside this module.
   */
  readonly wasm?: URL | string | Response | BufferSource | WebAssembly.Module;
}

/** How to send. */
export interface SendOptions {
  /**
   * Ends the wait. A post that is already recorded is still sent, now or after a reload.
   */
  readonly signal?: AbortSignal;
}
