/** The key of a Registry as the module takes it. Depends on nothing. */
import type { Ed25519Jwk } from "./types.js";

/** A key as canonical JSON; `undefined` for what is no object. Whether it is a key is the module's to say. */
export function keyJson(key: unknown): string | undefined {
  if (typeof key !== "object" || key === null) return undefined;
  const { crv, kty, x } = key as Ed25519Jwk;
  return JSON.stringify({ crv, kty, x });
}
