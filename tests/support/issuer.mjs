// An issuer of tokens: keys of every kind by `jose`, which nobody here wrote, and the key set served over HTTP.

import http from "node:http";
import { once } from "node:events";
import { SignJWT, exportJWK, generateKeyPair } from "jose";

/** The algorithms a deployment accepts. */
export const ALGORITHMS = ["RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA"];

export const now = () => Math.floor(Date.now() / 1000);

/** A key pair with a name. */
export async function keyPair(kid, algorithm) {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return { kid, algorithm, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" } };
}

/** A token of these claims, signed with `pair`. */
export function sign(pair, claims, header = {}) {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: pair.algorithm, kid: pair.kid, ...header })
    .sign(pair.privateKey);
}

/** A key set over HTTP, on the loopback address. */
export class KeySetServer {
  #server;
  /** How often the key set was asked for. */
  requests = 0;
  /** The keys that are served. */
  keys = [];
  /** Answers instead of the key set, if set. */
  misbehave;

  static async start(keys) {
    const server = new KeySetServer();
    server.keys = keys;
    server.#server = http.createServer((request, response) => {
      server.requests += 1;
      if (server.misbehave) return server.misbehave(request, response);
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ keys: server.keys.map(({ jwk }) => jwk) }));
    });
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  /** Where the key set is. The path may not show in any log. */
  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/a-private-path/jwks.json`;
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
