// Envelopes as a client would publish them, and the topics they land on.

import { createHash, randomBytes } from "node:crypto";
import { encode } from "./wire.mjs";

const APPLICATION = 1;
const COMMIT = 3;

/** A fresh 16-byte group id. */
export function groupId() {
  return new Uint8Array(randomBytes(16));
}

/** A fresh 32-byte installation key. */
export function installationKey() {
  return new Uint8Array(randomBytes(32));
}

/** The topic of a group's messages: kind 0 and the group id. */
export function groupTopic(group) {
  return { topic: new Uint8Array([0, ...group]) };
}

/** The topic of an installation's Welcomes: kind 1 and the key. */
export function welcomeTopic(key) {
  return { topic: new Uint8Array([1, ...key]) };
}

/** The topic of a group's commit log: kind 4 and the group id. */
export function commitLogTopic(group) {
  return { topic: new Uint8Array([4, ...group]) };
}

/** The bytes of a variable-length vector (RFC 9420, section 2.1.2). */
export function variableLength(bytes) {
  const { length } = bytes;
  if (length < 1 << 6) return [length, ...bytes];
  if (length < 1 << 14) return [0x40 | (length >> 8), length & 0xff, ...bytes];
  return [0x80 | (length >>> 24), (length >> 16) & 0xff, (length >> 8) & 0xff, length & 0xff, ...bytes];
}

/** A serialized MLSMessage holding a PrivateMessage of the group. */
export function privateMessage(group, ciphertext, contentType = APPLICATION) {
  return new Uint8Array([
    0, 1, // MLS 1.0
    0, 2, // PrivateMessage
    ...variableLength(group),
    0, 0, 0, 0, 0, 0, 0, 0, // epoch
    contentType,
    ...variableLength([]), // authenticated data
    ...variableLength([]), // encrypted sender data
    ...variableLength(ciphertext),
  ]);
}

/** A group message whose ciphertext is `text`. */
export function groupMessage(group, text, { contentType = APPLICATION } = {}) {
  const data = privateMessage(group, new TextEncoder().encode(text), contentType);
  return { payload: { case: "groupMessage", value: { data } } };
}

/** A group message whose envelope has exactly so many bytes, of at least 100. */
export function groupMessageOf(bytes, group = groupId()) {
  const make = (characters) => groupMessage(group, "x".repeat(characters));
  const length = (envelope) => encode("xmtp.backend.v1.ClientEnvelope", envelope).length;
  const guess = bytes - 80;
  const envelope = make(guess + bytes - length(make(guess)));
  if (length(envelope) !== bytes) throw new Error(`no envelope has ${bytes} bytes, or its lengths take another form`);
  return envelope;
}

/** A commit of the group: the only group message that is never deleted. */
export function commit(group, text) {
  return groupMessage(group, text, { contentType: COMMIT });
}

/** A Welcome for the installation. */
export function welcome(key, text) {
  const v1 = { installationKey: key, data: new TextEncoder().encode(text) };
  return { payload: { case: "welcomeMessage", value: { version: { case: "v1", value: v1 } } } };
}

/** An entry of the group's commit log. */
export function commitLogEntry(group, commitSequenceId) {
  const serializedCommitLogEntry = encode("xmtp.mls.message_contents.PlaintextCommitLogEntry", {
    groupId: group,
    commitSequenceId,
  });
  return { payload: { case: "commitLogEntry", value: { serializedCommitLogEntry } } };
}

/** SHA-256 of the bytes this client encodes an envelope to: equals the backend's for a canonical encoder. */
export function hashOf(envelope) {
  return new Uint8Array(createHash("sha256").update(encode("xmtp.backend.v1.ClientEnvelope", envelope)).digest());
}

/** The ciphertext of a stored group message, as text. */
export function textOf(serverEnvelope) {
  const { data } = serverEnvelope.envelope.payload.value;
  const afterFixedFields = 5 + 16 + 8 + 1 + 1 + 1;
  const prefix = data[afterFixedFields] >> 6;
  return new TextDecoder().decode(data.slice(afterFixedFields + [1, 2, 4][prefix]));
}
