/**
 * From the canonical lines of a verified history to what this package shows of them. Every line was verified by the
 * module before it comes here, so its form is known; here it is only taken apart.
 */
import { fromBase64url } from "./base64url.js";
import type { AgentAddress, Content, Ed25519Jwk, HistoryEntry, SignerEntry } from "./types.js";

/** A General JWS with one signature, as cards and signed messages are written. */
export interface GeneralJws {
  /** base64url of the signed JSON. */
  readonly payload: string;
  readonly signatures: readonly [
    {
      /** base64url of the header, which names algorithm, type and key. */
      readonly protected: string;
      /** base64url of the 64-byte Ed25519 signature over `protected.payload`. */
      readonly signature: string;
    },
  ];
}

/** A member, as the Registry's card has it. */
export interface Member {
  readonly agent: AgentAddress;
  readonly agentId: string;
  /** The key that verifies its signatures. */
  readonly publicKey: Ed25519Jwk;
  /** When the Registry issued the card: RFC 3339, in UTC. */
  readonly issuedAt: string;
}

/** The members of a conversation by id. */
export type Members = ReadonlyMap<string, Member>;

/** What the anchor of a record or re-anchor was, and who voted for it. */
export interface AnchorEntry {
  readonly anchorHash: string;
  /** The instance of the Router that ordered what follows. */
  readonly routerInstanceId: string;
  /** How many posts stand before it. */
  readonly position: number;
  /** `null` for the first anchor of a conversation. */
  readonly previousAnchorHash: string | null;
  /** The last post before it; `null` for the first anchor. */
  readonly selectedRecordHash: string | null;
  /** Who voted to go on from there. The first anchor is part of the first post, which every member signed. */
  readonly voters: readonly SignerEntry[];
}

interface Descriptor {
  readonly conversationId: string;
  readonly members: readonly GeneralJws[];
}

interface AnchorBody {
  readonly kind: "genesis_anchor_body" | "reanchor_body";
  readonly routerInstanceId: string;
}

interface ReanchorBody extends AnchorBody {
  readonly previousAnchorHash: string;
  readonly selectedRecordHash: string;
}

/** A record as it is written, as far as this package shows it. */
export interface CertifiedRecord {
  readonly kind: "certified_record";
  readonly actionCertifiedRecord: {
    readonly recordHash: string;
    readonly recordCore: {
      readonly anchorHash: string;
      readonly actionHash: string;
      readonly action: {
        readonly conversationId: string;
        readonly previousRecordHash: string | null;
        readonly postIntentHash: string;
        readonly anchor?: AnchorBody;
        readonly postIntent: {
          readonly authorAgentId: string;
          readonly membershipHash: string;
          readonly postId: string;
          readonly content: Content;
        };
      };
    };
    readonly actionCertificate: { readonly signatures: readonly GeneralJws[] };
  };
  readonly durabilityCertificate: { readonly votes: readonly GeneralJws[] };
}

/** A re-anchor as it is written. */
export interface CompletedReanchor {
  readonly kind: "completed_reanchor";
  readonly anchorHash: string;
  readonly reanchor: ReanchorBody;
  readonly certificate: { readonly votes: readonly GeneralJws[] };
}

const utf8 = new TextDecoder();

/** The JSON a JWS signs. */
export function payloadOf(jws: GeneralJws): unknown {
  return JSON.parse(utf8.decode(fromBase64url(jws.payload)));
}

/** The conversation of a descriptor, and its members in its order. */
export function readDescriptor(line: string): { conversationId: string; members: Members } {
  const { conversationId, members } = JSON.parse(line) as Descriptor;
  const cards = members.map((card) => {
    const { agentId, agentName, publicKey, issuedAt } = payloadOf(card) as {
      readonly agentId: string;
      readonly agentName: string;
      readonly publicKey: Ed25519Jwk;
      readonly issuedAt: string;
    };
    return [agentId, { agent: `agent:${agentName}`, agentId, publicKey, issuedAt }] as const;
  });
  return { conversationId, members: new Map(cards) };
}

/** The address of a member. */
export function addressOf(members: Members, agentId: string): AgentAddress {
  const member = members.get(agentId);
  if (member === undefined) throw new TypeError(`${agentId} is not a member`);
  return member.agent;
}

/** Who signed these messages. */
export function signersOf(messages: readonly GeneralJws[], members: Members): readonly SignerEntry[] {
  return messages.map((message) => {
    const { senderAgentId } = payloadOf(message) as { readonly senderAgentId: string };
    const signature = message.signatures[0].signature;
    return { agent: addressOf(members, senderAgentId), agentId: senderAgentId, signature };
  });
}

/** A certified record as a post of the history. */
export function entryOf(record: CertifiedRecord, position: number, members: Members): HistoryEntry {
  const { recordHash, recordCore, actionCertificate } = record.actionCertifiedRecord;
  const { anchorHash, actionHash, action } = recordCore;
  const { authorAgentId, membershipHash, postId, content } = action.postIntent;
  return {
    position,
    postId,
    author: addressOf(members, authorAgentId),
    content,
    conversationId: action.conversationId,
    membershipHash,
    postIntentHash: action.postIntentHash,
    anchorHash,
    actionHash,
    recordHash,
    previousRecordHash: action.previousRecordHash,
    actionSigners: signersOf(actionCertificate.signatures, members),
    durabilitySigners: signersOf(record.durabilityCertificate.votes, members),
  };
}

/** A completed re-anchor as an anchor of the history. */
export function anchorOf(completed: CompletedReanchor, position: number, members: Members): AnchorEntry {
  const { anchorHash, reanchor, certificate } = completed;
  const { routerInstanceId, previousAnchorHash, selectedRecordHash } = reanchor;
  const voters = signersOf(certificate.votes, members);
  return { anchorHash, routerInstanceId, position, previousAnchorHash, selectedRecordHash, voters };
}

/** The anchor that a conversation's first record embeds; none in any other record. */
export function firstAnchorOf(record: CertifiedRecord): AnchorEntry | undefined {
  const { anchorHash, action } = record.actionCertifiedRecord.recordCore;
  if (action.anchor === undefined) return undefined;
  const { routerInstanceId } = action.anchor;
  return { anchorHash, routerInstanceId, position: 0, previousAnchorHash: null, selectedRecordHash: null, voters: [] };
}
