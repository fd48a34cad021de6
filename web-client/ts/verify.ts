/**
 * Verifies an exported history: in a browser or in Node, without a deployment, a store or a network.
 *
 * @packageDocumentation
 */
import { abortable } from "./abort.js";
import {
  type AnchorEntry,
  anchorOf,
  type CertifiedRecord,
  type CompletedReanchor,
  entryOf,
  firstAnchorOf,
  type Member,
  type Members,
  readDescriptor,
} from "./certified.js";
import { loadCore } from "./core.js";
import { VerifyError } from "./errors.js";
import { pause } from "./pause.js";
import { keyJson } from "./registry_key.js";
import type { Ed25519Jwk, HistoryEntry, OpenOptions } from "./types.js";

export type { AnchorEntry, Member } from "./certified.js";
export { ConclaveError, OpenError, VerifyError, type VerifyErrorCode } from "./errors.js";
export type { Content, ContentPart, Ed25519Jwk, HistoryEntry, JsonValue, SignerEntry } from "./types.js";

/** An export, however it is at hand. Streams and iterables give its bytes in chunks of any length. */
export type ExportFile = Blob | string | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** How to verify. */
export interface VerifyOptions {
  /** Take a file that does not begin with the first post, such as `PostProof.file`. By default it is refused. */
  readonly excerpt?: boolean;
  /** Ends the verification, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Hears how far it is, several times a second at most. */
  readonly onProgress?: (progress: VerifyProgress) => void;
  /** Where the wasm module is, as for `Endpoint.open`. In Node it is read from beside this script. */
  readonly wasm?: OpenOptions["wasm"];
}

/** How far a verification is. */
export interface VerifyProgress {
  /** Lines verified. */
  readonly lines: number;
  /** Posts verified. */
  readonly posts: number;
  /** Bytes read. */
  readonly bytes: number;
}

/** What a file, or the beginning of one that does not verify, was found to hold. */
interface Found {
  readonly conversationId: string | undefined;
  /** The members, whose cards the Registry's key signed. */
  readonly members: readonly Member[];
  /** The posts, each with who signed it and who vouches that it is stored. Positions count from the file's first post. */
  readonly posts: readonly HistoryEntry[];
  /** The first anchor, if the file begins with the first post, and every re-anchor with who voted for it. */
  readonly anchors: readonly AnchorEntry[];
  /** The record hash of the last post; `undefined` if there is none. */
  readonly head: string | undefined;
}

/**
 * Every line verifies: the members' cards under the Registry's key; each post's membership, intent, action, record and
 * anchor hashes; the signatures of its action and the votes for its storage, as many as a conversation of this size needs;
 * each re-anchor's votes; and that each follows the one before.
 *
 * What no file can show is that nothing followed its last line: it is the history up to `head`.
 */
export interface VerifiedExport extends Found {
  readonly verified: true;
  readonly conversationId: string;
  /** Whether the file begins with the conversation's first post. Always true unless an excerpt was asked for. */
  readonly fromFirstPost: boolean;
}

/** A line does not verify. What stands before it does, and is given. */
export interface FailedExport extends Found {
  readonly verified: false;
  /** The line, from 1. */
  readonly line: number;
  /** What is wrong with it, for people. */
  readonly reason: string;
}

/** What came of verifying an export. */
export type ExportVerification = VerifiedExport | FailedExport;

/** How long verification goes on, in milliseconds, before whatever else waits has its turn. */
const SLICE_MS = 12;

/**
 * Verifies an export under the key of the Registry that issued its members' cards.
 *
 * The key must come from elsewhere than the file: whoever made the file up made its cards up, too. `Endpoint.registryKey()`
 * tells the one an agent trusts. A thumbprint is not enough, because an export does not carry the key.
 *
 * A file that does not verify is a result, not an exception.
 *
 * @example In Node, of a file and a key on disk:
 * ```js
 * import { createReadStream } from "node:fs";
 * import { readFile } from "node:fs/promises";
 * import { verify } from "@conclave/client/verify";
 *
 * const [file, key] = process.argv.slice(2);
 * const result = await verify(createReadStream(file), JSON.parse(await readFile(key, "utf8")));
 * if (result.verified) console.log(`${result.posts.length} posts, up to ${result.head}`);
 * else console.error(`line ${result.line}: ${result.reason}`);
 * ```
 *
 * @throws {@link VerifyError} for arguments that cannot be used, {@link OpenError} if the module cannot be loaded, the
 * signal's reason, or what reading the file failed with.
 */
export async function verify(file: ExportFile, registryKey: Ed25519Jwk, options: VerifyOptions = {}): Promise<ExportVerification> {
  const { excerpt = false, signal, onProgress, wasm } = options;
  signal?.throwIfAborted();
  const key = keyText(registryKey);
  const chunks = chunksOf(file);
  const { Verifier } = await abortable(loadCore(wasm), signal);
  const verifier = Verifier.create(key, excerpt);
  if (verifier === undefined) throw new VerifyError("invalid-options", "`registryKey` is not an Ed25519 public key");
  const lineBytesMax = Verifier.line_bytes_max();
  const found = new Collector();
  const progress = { lines: 0, posts: 0, bytes: 0 };
  let since = performance.now();
  try {
    const refuse = (refusal: string): FailedExport => ({
      verified: false,
      ...(JSON.parse(refusal) as { readonly line: number; readonly reason: string }),
      ...found.result(),
    });
    const rest = new Rest(lineBytesMax);
    for (;;) {
      const { done, value } = await abortable(chunks.next(), signal);
      if (done === true) break;
      if (!(value instanceof Uint8Array)) throw new VerifyError("invalid-options", "the file does not consist of bytes");
      progress.bytes += value.length;
      let start = 0;
      for (let end = value.indexOf(LINE_FEED); end >= 0; end = value.indexOf(LINE_FEED, start)) {
        const line = rest.end(value.subarray(start, end));
        start = end + 1;
        const refusal = verifier.line(line);
        if (refusal !== undefined) return refuse(refusal);
        found.take(line);
        progress.lines += 1;
        progress.posts = found.posts.length;
        if (performance.now() - since > SLICE_MS) {
          onProgress?.({ ...progress });
          await pause();
          signal?.throwIfAborted();
          since = performance.now();
        }
      }
      rest.add(value.subarray(start));
      // Too long already: the verifier says so.
      const refusal = rest.length > lineBytesMax ? verifier.line(rest.end()) : undefined;
      if (refusal !== undefined) return refuse(refusal);
    }
    const refusal = verifier.end(rest.end());
    if (refusal !== undefined) return refuse(refusal);
    onProgress?.({ ...progress });
    return { verified: true, ...found.verified() };
  } finally {
    verifier.free();
    // Lets go of the file when it was not read to its end. One that is being read may never answer.
    const left = chunks.return?.(undefined)?.catch(() => undefined);
    if (signal?.aborted !== true) await left;
  }
}

const LINE_FEED = 0x0a;

/** What the verified lines hold. */
class Collector {
  #conversationId: string | undefined;
  #members: Members = new Map();
  readonly posts: HistoryEntry[] = [];
  readonly #anchors: AnchorEntry[] = [];
  readonly #utf8 = new TextDecoder();

  take(bytes: Uint8Array): void {
    const line = this.#utf8.decode(bytes);
    if (this.#conversationId === undefined) {
      const { conversationId, members } = readDescriptor(line);
      this.#conversationId = conversationId;
      this.#members = members;
      return;
    }
    const item = JSON.parse(line) as CertifiedRecord | CompletedReanchor;
    if (item.kind === "completed_reanchor") {
      this.#anchors.push(anchorOf(item, this.posts.length, this.#members));
      return;
    }
    const first = firstAnchorOf(item);
    if (first !== undefined) this.#anchors.push(first);
    this.posts.push(entryOf(item, this.posts.length, this.#members));
  }

  result(): Found {
    return {
      conversationId: this.#conversationId,
      members: [...this.#members.values()],
      posts: this.posts,
      anchors: this.#anchors,
      head: this.posts.at(-1)?.recordHash,
    };
  }

  verified(): Omit<VerifiedExport, "verified"> {
    const fromFirstPost = this.posts[0]?.previousRecordHash === null || (this.posts.length === 0 && this.#anchors.length === 0);
    return { ...this.result(), conversationId: this.#conversationId ?? "", fromFirstPost };
  }
}

/** The key as canonical JSON. */
function keyText(key: Ed25519Jwk): string {
  if (typeof key === "string") {
    throw new VerifyError("invalid-options", "a thumbprint verifies no signature: give the Registry's key itself, as a JWK");
  }
  const json = keyJson(key);
  if (json === undefined) throw new VerifyError("invalid-options", "`registryKey` is not a key");
  return json;
}

type Chunks = AsyncIterator<Uint8Array, unknown, undefined>;

function chunksOf(file: ExportFile): Chunks {
  if (typeof file === "string") return once(new TextEncoder().encode(file));
  if (file instanceof Uint8Array) return once(file);
  if (file instanceof ArrayBuffer) return once(new Uint8Array(file));
  if (file instanceof Blob) return streamed(file.stream());
  if (typeof file === "object" && file !== null) {
    // Before the iterator that streams have in some browsers: that one is not left while it is read.
    if ("getReader" in file) return streamed(file);
    if (Symbol.asyncIterator in file) return file[Symbol.asyncIterator]();
  }
  throw new VerifyError("invalid-options", "the file is not a Blob, a text, bytes, or a stream or iterable of bytes");
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, undefined, undefined> {
  yield bytes;
  return undefined;
}

/** The chunks of a stream, which can be left while one of them is waited for. */
function streamed(stream: ReadableStream<Uint8Array>): Chunks {
  const reader = stream.getReader();
  return {
    next: () => reader.read(),
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** The chunks of a line that has not ended. Of one that is too long there is as much as shows it. */
class Rest {
  length = 0;
  #chunks: Uint8Array[] = [];
  readonly #most: number;

  constructor(lineBytesMax: number) {
    this.#most = lineBytesMax + 1;
  }

  add(chunk: Uint8Array): void {
    const kept = chunk.subarray(0, this.#most - this.length);
    this.#chunks.push(kept);
    this.length += kept.length;
  }

  /** All of them and the last in one; nothing is left. */
  end(last: Uint8Array = new Uint8Array()): Uint8Array {
    if (this.length === 0) return last.subarray(0, this.#most);
    this.add(last);
    const line = new Uint8Array(this.length);
    let at = 0;
    for (const chunk of this.#chunks) {
      line.set(chunk, at);
      at += chunk.length;
    }
    this.#chunks = [];
    this.length = 0;
    return line;
  }
}
