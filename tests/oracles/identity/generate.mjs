// Writes crates/identity/tests/identity/vectors/differential.json; see README.md.
import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { ed25519ph } from "@noble/curves/ed25519";
import { p256 } from "@noble/curves/p256";
import { hashMessage, recoverMessageAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const SEED = "conclave identity vectors 1";
const OUT = new URL("../../../crates/identity/tests/identity/vectors/differential.json", import.meta.url);
const CONTEXT = Buffer.from("IDENTITY UPDATE SIGNATURE");
const P256_ORDER = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
const SECP256K1_ORDER = BigInt("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");

let drawn = 0;
/** The next 32 bytes of a hash chain over the seed. */
const draw = () => createHash("sha256").update(`${SEED} ${drawn++}`).digest();
const below = (count) => draw().readUInt32BE(0) % count;
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const scalar = (bytes) => BigInt(`0x${hex(bytes)}`);
const bytesOf = (number) => Buffer.from(number.toString(16).padStart(64, "0"), "hex");

const texts = ["", "a", "Zoë and 語\n", "x".repeat(999)];
for (let index = 0; index < 20; index++) {
  const inbox = hex(draw());
  texts.push(`XMTP : Authenticate to inbox\n\nInbox ID: ${inbox}\n\n- Create inbox\n  (Owner: 0x${inbox.slice(24)})\n`);
}
/** Texts are written once and named by their index. */
const indexOf = (text) => {
  const known = texts.indexOf(text);
  return known >= 0 ? known : texts.push(text) - 1;
};
const FIXED_TEXTS = texts.length;
const aText = () => texts[below(FIXED_TEXTS)];

/** Changes one to three bytes. */
function damaged(bytes) {
  const copy = Buffer.from(bytes);
  for (let edits = 1 + below(3); edits > 0; edits--) copy[below(copy.length)] ^= 1 + below(255);
  return copy;
}

async function ethereum() {
  const cases = [];
  const add = async (what, text, signature) => {
    const v = signature.length === 65 ? signature[64] : -1;
    let signer = null;
    // Other v and other lengths are refused by the specification, whatever a library makes of them.
    if ([0, 1, 27, 28].includes(v)) {
      try {
        signer = (await recoverMessageAddress({ message: text, signature: `0x${hex(signature)}` })).toLowerCase();
      } catch {
        signer = null;
      }
    }
    cases.push({ what, text: indexOf(text), hash: hashMessage(text).slice(2), signature: hex(signature), signer });
  };
  for (let index = 0; index < 60; index++) {
    const account = privateKeyToAccount(`0x${hex(draw())}`);
    const text = texts[index % FIXED_TEXTS];
    const signature = Buffer.from((await account.signMessage({ message: text })).slice(2), "hex");
    await add("sound", text, signature);
    if (cases.at(-1).signer !== account.address.toLowerCase()) throw new Error("a sound signature must recover");
    const short = Buffer.from(signature);
    short[64] -= 27;
    await add("v from 0", text, short);
    const mirrored = Buffer.concat([
      signature.subarray(0, 32),
      bytesOf(SECP256K1_ORDER - scalar(signature.subarray(32, 64))),
      Buffer.from([signature[64] === 27 ? 28 : 27]),
    ]);
    await add("high s", text, mirrored);
    await add("another text", aText(), signature);
    await add("damaged", text, damaged(signature));
    await add("another v", text, Buffer.concat([signature.subarray(0, 64), Buffer.from([below(256)])]));
  }
  const zero = Buffer.alloc(32);
  const order = bytesOf(SECP256K1_ORDER);
  for (const [r, s] of [[zero, draw()], [draw(), zero], [order, draw()], [draw(), order], [zero, zero]]) {
    await add("scalars at their ends", "a", Buffer.concat([r, s, Buffer.from([27])]));
  }
  await add("64 bytes", "a", Buffer.alloc(64, 1));
  await add("66 bytes", "a", Buffer.alloc(66, 1));
  for (let index = 0; index < 60; index++) {
    await add("drawn", aText(), Buffer.concat([draw(), draw(), Buffer.from([27 + below(2)])]));
  }
  return cases;
}

function installations() {
  const cases = [];
  const add = (what, text, signature, key) => {
    let valid = false;
    try {
      valid = ed25519ph.verify(signature, Buffer.from(text), key, { context: CONTEXT });
    } catch {
      valid = false;
    }
    cases.push({ what, text: indexOf(text), signature: hex(signature), public_key: hex(key), valid });
  };
  for (let index = 0; index < 40; index++) {
    const secret = draw();
    const key = ed25519ph.getPublicKey(secret);
    const text = texts[index % FIXED_TEXTS];
    const signature = ed25519ph.sign(Buffer.from(text), secret, { context: CONTEXT });
    add("sound", text, signature, key);
    if (!cases.at(-1).valid) throw new Error("a sound signature must verify");
    add("another context", text, ed25519ph.sign(Buffer.from(text), secret), key);
    add("another key", text, signature, ed25519ph.getPublicKey(draw()));
    add("another text", `${text}.`, signature, key);
    add("damaged", text, damaged(signature), key);
  }
  return cases;
}

/** An independent reading of what a passkey's signature must hold. */
function passkeyVerifies(text, { public_key, signature, authenticator_data, client_data_json }) {
  try {
    const data = JSON.parse(client_data_json.toString("utf8"));
    if (data === null || Array.isArray(data) || typeof data.origin !== "string") return false;
    if (data.challenge !== Buffer.from(text).toString("base64url")) return false;
    const point = p256.ProjectivePoint.fromHex(hex(public_key)).toAffine();
    const key = createPublicKey({
      format: "jwk",
      key: { kty: "EC", crv: "P-256", x: bytesOf(point.x).toString("base64url"), y: bytesOf(point.y).toString("base64url") },
    });
    const signed = Buffer.concat([authenticator_data, createHash("sha256").update(client_data_json).digest()]);
    return verify("sha256", signed, { key, dsaEncoding: "der" }, signature);
  } catch {
    return false;
  }
}

/** DER of r and s, in the one form there is. */
function der(r, s) {
  const integer = (number) => {
    let digits = number.toString(16);
    if (digits.length % 2) digits = `0${digits}`;
    if (Number.parseInt(digits.slice(0, 2), 16) > 127) digits = `00${digits}`;
    const bytes = Buffer.from(digits, "hex");
    return Buffer.concat([Buffer.from([2, bytes.length]), bytes]);
  };
  const content = Buffer.concat([integer(r), integer(s)]);
  return Buffer.concat([Buffer.from([48, content.length]), content]);
}

function passkeys() {
  const cases = [];
  const add = (what, text, parts) => {
    cases.push({
      what,
      text: indexOf(text),
      public_key: hex(parts.public_key),
      signature: hex(parts.signature),
      authenticator_data: hex(parts.authenticator_data),
      client_data_json: hex(parts.client_data_json),
      valid: passkeyVerifies(text, parts),
    });
    return cases.at(-1);
  };
  for (let index = 0; index < 30; index++) {
    const secret = draw();
    const point = p256.ProjectivePoint.fromPrivateKey(secret);
    const { x, y } = point.toAffine();
    const jwk = { kty: "EC", crv: "P-256", d: secret.toString("base64url"), x: bytesOf(x).toString("base64url"), y: bytesOf(y).toString("base64url") };
    const key = createPrivateKey({ format: "jwk", key: jwk });
    const text = texts[4 + (index % (FIXED_TEXTS - 4))];
    const challenge = Buffer.from(text).toString("base64url");
    const authenticator_data = Buffer.concat([draw(), Buffer.from([5, 0, 0, 0, index])]);
    const assert = (client_data_json, public_key) => {
      const signed = Buffer.concat([authenticator_data, createHash("sha256").update(client_data_json).digest()]);
      const signature = sign("sha256", signed, { key, dsaEncoding: "der" });
      return { public_key, signature, authenticator_data, client_data_json };
    };
    const compressed = point.toRawBytes(true);
    const data = { type: "webauthn.get", challenge, origin: "https://example.org", crossOrigin: false };
    const sound = assert(Buffer.from(JSON.stringify(data)), compressed);
    if (!add("sound", text, sound).valid) throw new Error("a sound assertion must verify");
    add("uncompressed", text, { ...sound, public_key: point.toRawBytes(false) });
    const { r, s } = p256.Signature.fromDER(hex(sound.signature));
    add("the other s", text, { ...sound, signature: der(r, P256_ORDER - s) });
    add("compact", text, { ...sound, signature: Buffer.concat([bytesOf(r), bytesOf(s)]) });
    add("damaged signature", text, { ...sound, signature: damaged(sound.signature) });
    add("damaged authenticator data", text, { ...sound, authenticator_data: damaged(authenticator_data) });
    add("damaged client data", text, { ...sound, client_data_json: damaged(sound.client_data_json) });
    add("another text", `${text}.`, sound);
    const variants = [
      ["reordered with more members", JSON.stringify({ z: [1, { y: null }], origin: "", challenge })],
      ["spaced", `  ${JSON.stringify(data, null, 2)}\n`],
      ["escaped", JSON.stringify(data).replace(challenge.slice(0, 1), `\\u00${challenge.charCodeAt(0).toString(16)}`)],
      ["no origin", JSON.stringify({ challenge })],
      ["no challenge", JSON.stringify({ origin: "https://example.org" })],
      ["origin is a number", JSON.stringify({ ...data, origin: 1 })],
      ["padded challenge", JSON.stringify({ ...data, challenge: Buffer.from(text).toString("base64") })],
      ["a list", JSON.stringify([challenge, "https://example.org"])],
      ["text", JSON.stringify(challenge)],
      ["trailing bytes", `${JSON.stringify(data)}x`],
      ["nothing", ""],
    ];
    const [what, json] = variants[index % variants.length];
    add(what, text, assert(Buffer.from(json), compressed));
  }
  return cases;
}

function times() {
  const cases = [0n, 999999999n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n];
  while (cases.length < 200) cases.push(draw().readBigUInt64BE(0));
  return cases.map((ns) => {
    const signed = BigInt.asIntN(64, ns);
    // Rounds down, unlike division of negative numbers.
    const seconds = (signed - (((signed % 1000000000n) + 1000000000n) % 1000000000n)) / 1000000000n;
    return { ns: ns.toString(), text: new Date(Number(seconds) * 1000).toISOString().replace(".000Z", "Z") };
  });
}

const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url)));
const vectors = {
  written_by: "tests/oracles/identity/generate.mjs",
  libraries: { ...dependencies, node: process.versions.node, openssl: process.versions.openssl },
  seed: SEED,
  texts,
  ethereum: await ethereum(),
  installations: installations(),
  passkeys: passkeys(),
  times: times(),
};
writeFileSync(OUT, `${JSON.stringify(vectors, null, 1)}\n`);
const count = (list, sound) => `${list.length} (${list.filter(sound).length} sound)`;
console.log("ethereum", count(vectors.ethereum, (one) => one.signer), "installations", count(vectors.installations, (one) => one.valid));
console.log("passkeys", count(vectors.passkeys, (one) => one.valid), "times", vectors.times.length);
