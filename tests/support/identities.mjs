// Inboxes, their updates and their key packages, signed by libraries nobody here wrote: viem for accounts, @noble/curves
// for installations, the crypto module of Node for passkeys and key packages.

import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { ed25519, ed25519ph } from "@noble/curves/ed25519";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { variableLength } from "./envelopes.mjs";
import { encode } from "./wire.mjs";

export const ETHEREUM = 1;
export const PASSKEY = 2;
export const HANDLE = 3;

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const bytesOf = (text) => new Uint8Array(Buffer.from(text, "hex"));
const utf8 = (text) => new TextEncoder().encode(text);
const CONTEXT = utf8("IDENTITY UPDATE SIGNATURE");

/** An Ethereum account. `checksummed` is its address in mixed case, as people see it. */
export function account() {
  const own = privateKeyToAccount(generatePrivateKey());
  const address = own.address.toLowerCase();
  return {
    kind: ETHEREUM,
    text: address,
    checksummed: own.address,
    lines: { add: ["Link address to inbox", "Address"], revoke: ["Unlink address from inbox", "Address"] },
    member: { kind: { case: "ethereumAddress", value: address } },
    sign: async (text) => ({
      signature: { case: "erc191", value: { bytes: bytesOf((await own.signMessage({ message: text })).slice(2)) } },
    }),
  };
}

/** An installation: the key that also signs its key packages. */
export function installation() {
  const seed = new Uint8Array(randomBytes(32));
  const key = ed25519.getPublicKey(seed);
  return {
    seed,
    key,
    text: hex(key),
    lines: {
      add: ["Grant messaging access to app", "ID"],
      revoke: ["Revoke messaging access from app", "ID"],
    },
    member: { kind: { case: "installationPublicKey", value: key } },
    sign: async (text) => ({
      signature: {
        case: "installationKey",
        value: { bytes: ed25519ph.sign(utf8(text), seed, { context: CONTEXT }), publicKey: key },
      },
    }),
  };
}

/** A passkey, as a browser's authenticator would sign with it. */
export function passkey() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const { x, y } = publicKey.export({ format: "jwk" });
  const odd = Buffer.from(y, "base64url").at(-1) & 1;
  const key = new Uint8Array([2 + odd, ...Buffer.from(x, "base64url")]);
  return {
    kind: PASSKEY,
    text: hex(key),
    lines: { add: ["Link passkey to inbox", "Passkey"], revoke: ["Unlink passkey from inbox", "Passkey"] },
    member: { kind: { case: "passkey", value: { key } } },
    sign: async (text) => {
      const challenge = Buffer.from(text).toString("base64url");
      const clientData = utf8(JSON.stringify({ type: "webauthn.get", challenge, origin: "https://example.org" }));
      const authenticatorData = new Uint8Array(randomBytes(37));
      const signed = Buffer.concat([authenticatorData, createHash("sha256").update(clientData).digest()]);
      return {
        signature: {
          case: "passkey",
          value: {
            publicKey: key,
            signature: new Uint8Array(sign("sha256", signed, privateKey)),
            authenticatorData,
            clientDataJson: clientData,
          },
        },
      };
    },
  };
}

/** A smart contract wallet whose signature no chain has seen. */
export function wallet(chainId = 1) {
  const address = `0x${hex(randomBytes(20))}`;
  return {
    ...account(),
    text: address,
    member: { kind: { case: "ethereumAddress", value: address } },
    sign: async () => ({
      signature: {
        case: "erc6492",
        value: { accountId: `eip155:${chainId}:${address}`, blockNumber: 1n, signature: new Uint8Array(randomBytes(65)) },
      },
    }),
  };
}

/** The id of the inbox that an account or passkey opens with a nonce. */
export function inboxId(owner, nonce = 0n) {
  return createHash("sha256").update(`${owner.text}${nonce}`).digest("hex");
}

/** The topic of an inbox: kind 2 and its id. */
export function identityTopic(inbox) {
  return { topic: new Uint8Array([2, ...bytesOf(inbox)]) };
}

/** The topic of an installation's key packages: kind 3 and its key. */
export function keyPackageTopic(key) {
  return { topic: new Uint8Array([3, ...key]) };
}

// Steps of an update.

export const create = (owner, nonce = 0n) => ({
  line: ["Create inbox", "Owner", owner.text],
  write: async (by) => ({
    case: "createInbox",
    value: {
      initialIdentifier: owner.text,
      initialIdentifierKind: owner.kind,
      nonce,
      initialIdentifierSignature: await by(owner),
    },
  }),
});

export const add = (member, existing) => ({
  line: [...member.lines.add, member.text],
  write: async (by) => ({
    case: "add",
    value: {
      newMemberIdentifier: member.member,
      existingMemberSignature: await by(existing),
      newMemberSignature: await by(member),
    },
  }),
});

export const revoke = (member, recovery) => ({
  line: [...member.lines.revoke, member.text],
  write: async (by) => ({
    case: "revoke",
    value: { memberToRevoke: member.member, recoveryIdentifierSignature: await by(recovery) },
  }),
});

export const claim = (handle, member) => ({
  line: ["Claim handle", "Handle", handle],
  write: async (by) => ({
    case: "claimHandle",
    value: { handle, existingMemberSignature: await by(member) },
  }),
});

let lastMillisecond = 0;

/** An identity update of these steps, in an envelope. Each of a process has another second in its text. */
export async function identityUpdate(inbox, steps) {
  lastMillisecond = Math.max(lastMillisecond + 1000, Date.now());
  const seconds = Math.floor(lastMillisecond / 1000);
  const time = new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
  const lines = steps.map(({ line: [first, label, text] }) => `- ${first}\n  (${label}: ${text})`);
  const text =
    `XMTP : Authenticate to inbox\n\nInbox ID: ${inbox}\nCurrent time: ${time}\n\n${lines.join("\n")}\n\n` +
    "For more info: https://xmtp.org/signatures";
  const made = new Map();
  const by = (signer) => {
    if (!made.has(signer)) made.set(signer, signer.sign(text));
    return made.get(signer);
  };
  const actions = [];
  for (const step of steps) actions.push({ kind: await step.write(by) });
  const value = { actions, clientTimestampNs: BigInt(seconds) * 1_000_000_000n, inboxId: inbox };
  return { payload: { case: "identityUpdate", value } };
}

const u16 = (number) => [number >> 8, number & 0xff];
const u64 = (number) => [...new Uint8Array(new BigUint64Array([BigInt(number)]).buffer)].reverse();
const numbers = (list) => variableLength(list.flatMap(u16));

/**
 * A serialized key package of an installation (RFC 9420, section 10), valid from `notBefore` until before `notAfter`,
 * both in seconds since 1970.
 */
export function keyPackage(installation, inbox, { notBefore, notAfter, damage = false } = {}) {
  const now = Math.floor(Date.now() / 1000);
  const privateKey = createPrivateKey({
    key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), installation.seed]),
    format: "der",
    type: "pkcs8",
  });
  const signed = (label, content) => {
    const bytes = new Uint8Array([...variableLength(utf8(`MLS 1.0 ${label}`)), ...variableLength(content)]);
    return variableLength(new Uint8Array(sign(null, bytes, privateKey)));
  };
  const leafContent = [
    ...variableLength(randomBytes(32)), // encryption key
    ...variableLength(installation.key),
    ...u16(1), // basic credential
    ...variableLength(encode("xmtp.identity.MlsCredential", { inboxId: inbox })),
    ...numbers([1]), // versions
    ...numbers([1]), // cipher suites
    ...numbers([0x000a, 0xff00]), // extensions
    ...numbers([]), // proposals
    ...numbers([1]), // credentials
    1, // for a key package
    ...u64(notBefore ?? now - 3600),
    ...u64(notAfter ?? now + 3600),
    ...variableLength([]), // extensions of the leaf
  ];
  const leaf = [...leafContent, ...signed("LeafNodeTBS", leafContent)];
  const content = [...u16(1), ...u16(1), ...variableLength(randomBytes(32)), ...leaf, ...variableLength([])];
  const bytes = new Uint8Array([...content, ...signed("KeyPackageTBS", content)]);
  if (damage) bytes[bytes.length - 1] ^= 1;
  return { payload: { case: "keyPackage", value: { keyPackageTlsSerialized: bytes } } };
}
