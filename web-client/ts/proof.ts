/** The proof of one post: what was signed, by whom, and everything a third party needs to check it. */
import { fromBase64url } from "./base64url.js";
import {
  addressOf,
  type CertifiedRecord,
  entryOf,
  type GeneralJws,
  type Members,
  payloadOf,
  readDescriptor,
} from "./certified.js";
import { HistoryError } from "./errors.js";
import { readLines } from "./history.js";
import type { Seat } from "./seat.js";
import type { Address, AgentAddress, HistoryEntry } from "./types.js";

/** "I checked this exact action and sign it and no other at its predecessor." */
export interface ActionSignatureStatement {
  readonly kind: "action_signature";
  readonly sharnessVersion: string;
  readonly signerAgentId: string;
  readonly actionHash: string;
}

/** "I durably stored this exact record with a sufficient action certificate." */
export interface DurabilityVoteStatement {
  readonly kind: "durability_vote";
  readonly sharnessVersion: string;
  readonly signerAgentId: string;
  readonly conversationId: string;
  readonly membershipHash: string;
  readonly recordHash: string;
}

/** One member's statement with its signature. */
export interface SignedStatement<Statement> {
  readonly agent: AgentAddress;
  readonly agentId: string;
  /** The 64 bytes of the Ed25519 signature over `protected.payload` of the message. */
  readonly signature: Uint8Array;
  readonly statement: Statement;
  /** The complete signed message, as the member sent it. */
  readonly message: GeneralJws;
}

/** A certified post with everything that proves it. */
export interface PostProof extends HistoryEntry {
  /**
   * The record core as canonical JSON: `recordHash` is `rch_` and the unpadded base64url of the SHA-256 of the text
   * `org.social-harness/client/v2/record`, a zero byte, and this.
   */
  readonly recordCore: string;
  /** Who signed the action. */
  readonly signatures: ReadonlyMap<AgentAddress, SignedStatement<ActionSignatureStatement>>;
  /** Who vouches that the record is stored. */
  readonly votes: ReadonlyMap<AgentAddress, SignedStatement<DurabilityVoteStatement>>;
  /** The members with their cards as canonical JSON. */
  readonly membership: string;
  /** The post and its members as a file that `verify(file, registryKey, { excerpt: true })` takes. */
  readonly file: string;
}

/** How to ask for a proof. */
export interface ProofOptions {
  /** Whose post it is. Ids are unique to their author; without it the first post of the id is meant. */
  readonly author?: AgentAddress;
  /** Ends the reading. */
  readonly signal?: AbortSignal;
}

export async function readProof(seat: Seat, address: Address, post: string, options: ProofOptions): Promise<PostProof> {
  const { author, signal } = options;
  if (typeof address !== "string" || (author !== undefined && typeof author !== "string")) {
    throw new HistoryError("invalid-address", "an address is a string");
  }
  if (typeof post !== "string") throw new HistoryError("not-found", "the id of a post is a string");
  const question = author === undefined ? { post } : { post, author };
  const { descriptor, from, items } = await readLines(seat, address, question, 1, signal);
  const [line = ""] = items;
  const record = JSON.parse(line) as CertifiedRecord;
  const { members } = readDescriptor(descriptor);
  const { actionCertificate } = record.actionCertifiedRecord;
  return {
    ...entryOf(record, from[0], members),
    recordCore: recordCoreOf(line, record),
    signatures: statementsOf<ActionSignatureStatement>(actionCertificate.signatures, members),
    votes: statementsOf<DurabilityVoteStatement>(record.durabilityCertificate.votes, members),
    membership: descriptor,
    file: `${descriptor}\n${line}\n`,
  };
}

/**
 * The text of the core within its record. It is cut out and not written again: JavaScript orders the members of an object
 * that look like numbers in another way than canonical JSON. Before it there are only signatures and after it only those
 * and an anchor, so neither text can appear there.
 */
function recordCoreOf(line: string, { actionCertifiedRecord }: CertifiedRecord): string {
  const before = '"recordCore":';
  const after = `,"recordHash":"${actionCertifiedRecord.recordHash}","routerAnchor":`;
  return line.slice(line.indexOf(before) + before.length, line.lastIndexOf(after));
}

function statementsOf<Statement>(
  messages: readonly GeneralJws[],
  members: Members,
): ReadonlyMap<AgentAddress, SignedStatement<Statement>> {
  const utf8 = new TextDecoder();
  return new Map(
    messages.map((message) => {
      const { senderAgentId, body } = payloadOf(message) as { readonly senderAgentId: string; readonly body: string };
      const agent = addressOf(members, senderAgentId);
      const statement = JSON.parse(utf8.decode(fromBase64url(body))) as Statement;
      const signature = fromBase64url(message.signatures[0].signature);
      return [agent, { agent, agentId: senderAgentId, signature, statement, message }] as const;
    }),
  );
}
