// What credentials need of the runtime: key sets over HTTP, and signatures judged by WebCrypto.
// Imported by edge/src; imports the exchange of platform.js.

import { exchange } from "./platform.js";

/** Fetches a key set anew, whatever caches hold, with the outcomes of `exchange`. */
export function fetchKeySet(url, maxBytes, deadlineMs) {
  return exchange(url, { headers: { accept: "application/json" }, cache: "no-store" }, maxBytes, deadlineMs);
}

/** What WebCrypto calls the algorithms of crates/credentials. */
const PARAMETERS = {
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  RS384: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-384" },
  RS512: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-512" },
  ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
  ES384: { name: "ECDSA", namedCurve: "P-384", hash: "SHA-384" },
  EdDSA: { name: "Ed25519" },
};

/** How many keys are kept imported. A key set has at most 64, and is replaced as a whole. */
const IMPORTED_MAX = 256;

const imported = new Map();

function importKey(algorithm, key) {
  const parameters = PARAMETERS[algorithm];
  const [format, material] = typeof key === "string" ? ["jwk", JSON.parse(key)] : ["spki", key];
  return crypto.subtle.importKey(format, material, parameters, false, ["verify"]);
}

/**
 * Whether `signature` is one of `signed` by `key`: a JSON Web Key as text, or the bytes of a SubjectPublicKeyInfo. A key that
 * cannot be imported has signed nothing.
 */
export async function verifySignature(algorithm, key, signed, signature) {
  try {
    const name = `${algorithm} ${key}`;
    let usable = imported.get(name);
    if (!usable) {
      usable = await importKey(algorithm, key);
      if (imported.size >= IMPORTED_MAX) imported.clear();
      imported.set(name, usable);
    }
    return await crypto.subtle.verify(PARAMETERS[algorithm], usable, signature, signed);
  } catch {
    return false;
  }
}
