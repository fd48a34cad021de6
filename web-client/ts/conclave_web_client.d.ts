/**
 * What the wasm module exports, as this package uses it. Private: nothing of it is part of the package's surface.
 *
 * Structured values cross as JSON text: one string each way is cheaper than a crossing per field. Failures are thrown
 * as plain objects that `fromCore` turns into typed errors.
 */
import type { CoreTransport } from "./transport/core_transport.js";

/** Loads the module. Without an argument it is fetched from beside this file. */
export default function init(options?: {
  module_or_path: URL | string | Response | BufferSource | WebAssembly.Module | Promise<Response>;
}): Promise<unknown>;

/** What the module tells its owner. */
export interface Observer {
  /** An `EndpointEvent` as JSON; one of the connection is completed by `seat.ts`. */
  progress(json: string): void;
  /** So many transitions were stored. */
  stored(transitions: number): void;
  /** How far the opening is: an `OpeningProgress`, with counts that are 0 where they say nothing. */
  opening(phase: string, done: number, total: number): void;
  /** Resolves when the page had a chance to paint. */
  pause(): Promise<void>;
  /** As `platformVerifier` says. */
  verify(packed: Uint8Array): Promise<Uint8Array>;
  /** The endpoint ended, with the failure that ended it if there was one. Called once. */
  closed(failure: unknown): void;
}

/** Opens the store, registers the agent where that is due, verifies what is stored and starts. */
export function open(
  transport: CoreTransport,
  name: string,
  registry_key: string | undefined,
  admission_token: string | undefined,
  storage_name: string,
  signal: AbortSignal | undefined,
  observer: Observer,
): Promise<Core>;

/** A `StoreInspection` of the store of this name. */
export function inspect(storage_name: string): Promise<string>;

/** Puts back the copy of the store from before a failed migration. */
export function restore(storage_name: string): Promise<void>;

/** An open endpoint. */
export class Core {
  private constructor();
  /**
   * Carries out an operation by its name. `argumentsJson` is an object; the answer is JSON, or empty where there is
   * nothing to say. The signal is asked before a send is recorded.
   */
  request(operation: string, argumentsJson: string, signal: AbortSignal | undefined): Promise<string>;
  /** The latest progress of every post that is not certified yet, as JSON. */
  open_posts(): string;
  close(): Promise<void>;
}

/** An exported history under verification. */
export class Verifier {
  private constructor();
  /** `undefined` if the text is no key. */
  static create(registry_key: string, is_excerpt: boolean): Verifier | undefined;
  /** Takes the next line, without its line feed; `{ line, reason }` as JSON if it does not verify. */
  line(bytes: Uint8Array): string | undefined;
  /** Most bytes of a line; a longer one is refused. */
  static line_bytes_max(): number;
  /** Takes what stands behind the last line feed. */
  end(rest: Uint8Array): string | undefined;
  free(): void;
}
