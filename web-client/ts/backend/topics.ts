/** Topics: one kind byte and an identifier (TOPIC-001). Pure. */
import { BackendError } from "../errors.js";
import { commitLogEntryGroup } from "./tables.js";
import type { Envelope, Topic, TopicInput, Topics } from "./types.js";
import { bytesOfHex, decode, hexOf } from "./wire.js";

/** The bytes of an identifier by the kind byte before it. */
const IDENTIFIER_BYTES = [16, 32, 32, 32, 16];
/** The kind byte of key packages, which can not be queried in pages (API-243). */
const KEY_PACKAGE_KIND = 3;
/** The greatest sequence id a cursor may name (API-286). */
const SEQUENCE_ID_MAX = 2n ** 63n - 1n;

/** Makes topics of identifiers, given as bytes or as hexadecimal text. */
export const topics = {
  /** The messages of a group, by its 16-byte id. */
  groupMessages: (groupId: TopicInput): Topic => topicOf(0, groupId),
  /** The Welcomes to an installation, by its 32-byte key. */
  welcomes: (installationKey: TopicInput): Topic => topicOf(1, installationKey),
  /** The identity updates of an inbox, by its 32-byte id. */
  identityUpdates: (inboxId: TopicInput): Topic => topicOf(2, inboxId),
  /** The key packages of an installation, by its 32-byte key. */
  keyPackages: (installationKey: TopicInput): Topic => topicOf(3, installationKey),
  /** The commit log of a group, by its 16-byte id. */
  commitLog: (groupId: TopicInput): Topic => topicOf(4, groupId),
  /** The bytes of a topic. */
  bytes: (topic: Topic): Uint8Array => bytesOfHex(parseTopic(topic)),
  /**
   * The topic that an envelope will be stored on; `undefined` where the envelope does not parse, in which case a publish of it is
   * refused.
   */
  of: (envelope: Envelope): Topic | undefined => topicOfEnvelope(envelope),
} as const;

function topicOf(kind: number, identifier: TopicInput): Topic {
  return parseTopic(`0${kind}${identifier instanceof Uint8Array ? hexOf(identifier) : identifier}`);
}

/**
 * A topic in its one form.
 *
 * @throws {@link BackendError} `invalid-argument` for what is no topic.
 */
export function parseTopic(input: TopicInput): Topic {
  const topic = input instanceof Uint8Array ? hexOf(input) : typeof input === "string" ? input.toLowerCase() : typeof input;
  const bytes = IDENTIFIER_BYTES[Number.parseInt(topic.slice(0, 2), 16)];
  if (bytes !== undefined && topic.length === 2 + 2 * bytes && /^[0-9a-f]+$/.test(topic)) return topic;
  throw new BackendError("invalid-argument", `"${topic}" is not a topic: make one by the functions of \`topics\``);
}

/** Whether this is one topic, and not what holds topics. */
export function isTopicInput(input: unknown): input is TopicInput {
  return typeof input === "string" || input instanceof Uint8Array;
}

/**
 * The topics with their cursors, each once, from the lowest cursor given for it (API-242).
 *
 * @throws {@link BackendError} `invalid-argument`
 */
export function parseTopics(input: Topics): Map<Topic, bigint> {
  // Callers without types pass anything.
  const isObject = typeof input === "object" && input !== null;
  const isSingle = isTopicInput(input) || (isObject && "topic" in input);
  if (!isSingle && !(isObject && Symbol.iterator in input)) {
    throw new BackendError("invalid-argument", "`topics` is neither a topic nor an iterable of topics");
  }
  const cursors = new Map<Topic, bigint>();
  for (const one of isSingle ? [input] : input) {
    const isBare = isTopicInput(one);
    const topic = parseTopic(isBare ? one : one?.topic);
    const after = (isBare ? undefined : one.after) ?? 0n;
    if (typeof after !== "bigint" || after < 0n || after > SEQUENCE_ID_MAX) {
      throw new BackendError("invalid-argument", `a cursor is a bigint from 0 to ${SEQUENCE_ID_MAX}`);
    }
    const known = cursors.get(topic);
    if (known === undefined || after < known) cursors.set(topic, after);
  }
  return cursors;
}

/** Whether a topic holds key packages. */
export function isKeyPackageTopic(topic: Topic): boolean {
  return topic.startsWith(`0${KEY_PACKAGE_KIND}`);
}

function topicOfEnvelope(envelope: Envelope): Topic | undefined {
  try {
    switch (envelope.kind) {
      case "group-message":
        return topics.groupMessages(groupOfMessage(envelope.data));
      case "welcome":
      case "welcome-pointer":
        return topics.welcomes(envelope.installationKey);
      case "key-package":
        return topics.keyPackages(signatureKeyOf(envelope.keyPackage));
      case "identity-update":
        return topics.identityUpdates(envelope.inboxId);
      case "commit-log-entry":
        return topics.commitLog((decode(commitLogEntryGroup, envelope.entry) as { groupId: Uint8Array }).groupId);
    }
  } catch {
    return undefined;
  }
}

/** The group id of an MLSMessage (RFC 9420, section 6): it stands first in a PublicMessage and in a PrivateMessage. */
function groupOfMessage(message: Uint8Array): Uint8Array {
  const versionAndFormat = 4;
  return vectorAt(message, versionAndFormat).held;
}

/** The signature key of the leaf node of a KeyPackage (RFC 9420, sections 7.2 and 10). */
function signatureKeyOf(keyPackage: Uint8Array): Uint8Array {
  const versionAndSuite = 4;
  const initKey = vectorAt(keyPackage, versionAndSuite);
  const encryptionKey = vectorAt(keyPackage, initKey.end);
  return vectorAt(keyPackage, encryptionKey.end).held;
}

/** A variable-length vector (RFC 9420, section 2.1.2). */
function vectorAt(bytes: Uint8Array, at: number): { held: Uint8Array; end: number } {
  const first = bytes[at] ?? 0;
  const lengthBytes = 1 << (first >> 6);
  let length = first & 0x3f;
  for (const byte of bytes.subarray(at + 1, at + lengthBytes)) length = length * 256 + byte;
  const begin = at + lengthBytes;
  return { held: bytes.subarray(begin, begin + length), end: begin + length };
}
