/** Ed25519 as the platform verifies it: faster than WebAssembly, in some browsers beside this thread. Depends on nothing. */

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const LENGTH_BYTES = 4;

/** Bytes that WebCrypto takes: of memory that is not shared. */
type Bytes = Uint8Array<ArrayBuffer>;

/** Keys that are kept imported, at most; there are as many as a conversation has members. */
const KEYS_MAX = 64;

/**
 * Makes a verifier of packed signatures: for each the key, the signature, the length of the text in four bytes, the least
 * significant first, and the text. It answers with a 1 for each that holds. What the platform cannot verify, or refuses for
 * whatever reason, has a 0 and is for the caller to judge; it never rejects.
 */
export function platformVerifier(): (packed: Uint8Array) => Promise<Uint8Array> {
  const keys = new Map<string, Promise<CryptoKey>>();
  const imported = (bytes: Bytes): Promise<CryptoKey> => {
    const name = bytes.join();
    let key = keys.get(name);
    if (key === undefined) {
      if (keys.size >= KEYS_MAX) keys.clear();
      key = crypto.subtle.importKey("raw", bytes, "Ed25519", false, ["verify"]);
      keys.set(name, key);
    }
    return key;
  };
  const holds = async (key: Bytes, signature: Bytes, text: Bytes): Promise<number> => {
    try {
      return Number(await crypto.subtle.verify("Ed25519", await imported(key), signature, text));
    } catch {
      return 0;
    }
  };
  return async (given) => {
    // A copy: what is given is the module's memory, which moves.
    const packed = given.slice();
    const view = new DataView(packed.buffer);
    const verdicts: Promise<number>[] = [];
    for (let at = 0; at < packed.length; ) {
      const take = (bytes: number): Bytes => packed.subarray(at, (at += bytes));
      const [key, signature] = [take(KEY_BYTES), take(SIGNATURE_BYTES)];
      const length = view.getUint32(at, true);
      at += LENGTH_BYTES;
      verdicts.push(holds(key, signature, take(length)));
    }
    return Uint8Array.from(await Promise.all(verdicts));
  };
}
