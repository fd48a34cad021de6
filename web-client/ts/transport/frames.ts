/**
 * gRPC-Web frames: one flag byte, a length of four bytes big-endian, the payload. Pure, and total: any bytes are read or
 * refused. Depends on {@link End} alone.
 */
import { drawn, type End, endOf } from "./status.js";

/** The longest message that is read: the most the backend can be configured to send (API-282). */
export const MESSAGE_BYTES_MAX = 25 * 1024 * 1024;
/** The longest trailers that are read. */
const TRAILERS_BYTES_MAX = 64 * 1024;
/** Bytes before a payload. */
const HEADER_BYTES = 5;
/** The flag of a message. */
export const MESSAGE = 0;
/** The flag of trailers. */
export const TRAILERS = 0x80;

/** What a response brings next: a message, or its end. */
export type Arrival = { readonly message: Uint8Array } | { readonly end: End };

/** One frame. The payload is copied. */
export function frame(payload: Uint8Array, flag = MESSAGE): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  bytes[0] = flag;
  new DataView(bytes.buffer).setUint32(1, payload.length);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** Reads frames from a body that arrives in pieces, the same for every way to cut it. */
export class FrameReader {
  /** Pieces that no frame was made of yet. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #end: End | undefined;

  /** Whether no byte waits for the rest of its frame. */
  get isAtBoundary(): boolean {
    return this.#bytes === 0;
  }

  /** Takes in a piece and returns what it completes. After an end nothing more comes. */
  push(piece: Uint8Array): Arrival[] {
    if (this.#end !== undefined) return [];
    if (piece.length > 0) {
      this.#pieces.push(piece);
      this.#bytes += piece.length;
    }
    const arrived: Arrival[] = [];
    while (this.#bytes >= HEADER_BYTES) {
      const header = this.#peek();
      const length = new DataView(header.buffer, header.byteOffset).getUint32(1);
      const refused = judge(header[0] ?? 0, length);
      if (refused !== undefined) {
        arrived.push({ end: this.#stop(refused) });
        break;
      }
      if (this.#bytes < HEADER_BYTES + length) break;
      const payload = this.#take(HEADER_BYTES + length).subarray(HEADER_BYTES);
      if (header[0] === MESSAGE) {
        arrived.push({ message: payload });
        continue;
      }
      arrived.push({ end: this.#stop(endOfTrailers(payload)) });
      break;
    }
    return arrived;
  }

  /** How the response ended, when its body has. */
  finish(): End {
    return this.#end ?? drawn("unavailable", "the response ended without a status: the outcome of the call is unknown");
  }

  #stop(end: End): End {
    this.#end = end;
    this.#pieces = [];
    this.#bytes = 0;
    return end;
  }

  /** The header of the next frame. Its five bytes are there. */
  #peek(): Uint8Array {
    const [first] = this.#pieces;
    if (first !== undefined && first.length >= HEADER_BYTES) return first;
    const joined = this.#take(this.#bytes);
    this.#pieces = [joined];
    this.#bytes = joined.length;
    return joined;
  }

  /** The next `length` bytes, which are there. */
  #take(length: number): Uint8Array {
    this.#bytes -= length;
    const [first] = this.#pieces;
    if (first !== undefined && first.length >= length) {
      if (first.length === length) this.#pieces.shift();
      else this.#pieces[0] = first.subarray(length);
      return first.subarray(0, length);
    }
    const taken = new Uint8Array(length);
    let at = 0;
    while (at < length) {
      const piece = this.#pieces.shift();
      if (piece === undefined) break;
      const part = piece.subarray(0, length - at);
      taken.set(part, at);
      at += part.length;
      if (part.length < piece.length) this.#pieces.unshift(piece.subarray(part.length));
    }
    return taken;
  }
}

/** Why a frame with this header is refused. */
function judge(flag: number, length: number): End | undefined {
  if (flag === MESSAGE || flag === TRAILERS) {
    const most = flag === MESSAGE ? MESSAGE_BYTES_MAX : TRAILERS_BYTES_MAX;
    return length <= most ? undefined : drawn("internal", `the response has a frame of ${length} bytes`);
  }
  const isCompressed = flag === 1 || flag === (TRAILERS | 1);
  return drawn("internal", isCompressed ? "the response is compressed" : `the response has a frame of flag ${flag}`);
}

/** How a call ended by its trailer frame. */
function endOfTrailers(payload: Uint8Array): End {
  const trailers = new Map<string, string>();
  for (const line of new TextDecoder().decode(payload).split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase();
    // A name is taken as it stands or not at all: dropping bytes from it could make a status of it.
    if (/^[!-~]+$/.test(name) && !trailers.has(name)) trailers.set(name, line.slice(colon + 1).trim());
  }
  return (
    endOf((name) => trailers.get(name)) ??
    drawn("unavailable", "the trailers have no status: the outcome of the call is unknown")
  );
}
