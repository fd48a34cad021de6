/**
 * A stream as its reader has it: messages one after another, then its end; over a WebSocket messages go the other way too.
 * Depends on frames, statuses and credentials.
 */
import type { CredentialSource } from "./credential.js";
import type { Arrival } from "./frames.js";
import { CallFailure, drawn } from "./status.js";

/** How long a stream may be silent before it has begun and said how often it gives a sign of life, in milliseconds. */
const SILENCE_BEFORE_START_MS = 30_000;
/** How long the answer to a probe may take, in milliseconds. */
const PROBE_ANSWER_MS = 5_000;
/**
 * The most bytes that wait for a reader. Nothing slows a WebSocket down: one whose reader falls behind further is given up,
 * and goes on from where it was read up to.
 */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;

/** What carries a stream. */
export interface Carrier {
  /** The reader waits. */
  pull(): void;
  send(message: Uint8Array): void;
  close(): void;
}

/** Begins to carry a stream. Tells the sink whatever arrives, nothing after an end or after it was closed. */
export type Carry = (token: string | undefined, sink: (arrival: Arrival) => void) => Carrier;

/** A stream under way. It has one reader. */
export class Stream {
  readonly #credential: CredentialSource;
  readonly #carry: Carry;
  readonly #onClosed: () => void;
  readonly #arrived: Arrival[] = [];
  #waitingBytes = 0;
  #reader: ((arrival: Arrival) => void) | undefined;
  #reading: Promise<Arrival> | undefined;
  #carrier: Carrier | undefined;
  /** What was sent before the first message came, in case it has to be said again. */
  #unheard: Uint8Array[] | undefined = [];
  #isRenewed = false;
  #isClosed = false;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #silenceMs = SILENCE_BEFORE_START_MS;
  #probe: Uint8Array | undefined;
  #isProbing = false;

  constructor(credential: CredentialSource, carry: Carry, onClosed: () => void) {
    this.#credential = credential;
    this.#carry = carry;
    this.#onClosed = onClosed;
    void this.#start();
  }

  /** The next message, or the end, again and again. One that is waited for already is given to every caller that waits. */
  next(): Promise<Arrival> {
    this.#reading ??= new Promise<Arrival>((resolve) => {
      const arrival = this.#arrived[0];
      if (arrival === undefined) {
        this.#reader = resolve;
        this.#listen();
        this.#carrier?.pull();
        return;
      }
      if ("message" in arrival) {
        this.#arrived.shift();
        this.#waitingBytes -= arrival.message.length;
      }
      resolve(arrival);
    }).finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Sends a message, where the stream has two ways. It is sent when the stream begins, if it has not yet. */
  send(message: Uint8Array): void {
    this.#unheard?.push(message);
    this.#carrier?.send(message);
  }

  /**
   * From now on the stream is over when nothing comes for so many milliseconds. `probe` is a message that the other side
   * answers at once.
   */
  expect(silenceMs: number, probe?: Uint8Array): void {
    this.#silenceMs = silenceMs;
    this.#probe = probe;
    if (this.#reader !== undefined) this.#listen();
  }

  /** Finds out whether the stream still lives: it answers soon, or it is over. */
  check(): void {
    if (this.#isClosed || this.#isProbing || this.#unheard !== undefined) return;
    if (this.#probe === undefined) return this.reopen();
    this.#isProbing = true;
    this.send(this.#probe);
    if (this.#reader !== undefined) this.#listen();
  }

  /** Ends the stream, in a way that its reader opens another. */
  reopen(): void {
    this.#fail("the stream was given up to be opened again");
  }

  /** Ends the stream. Its reader hears that it was cancelled. */
  close(): void {
    this.#end({ end: drawn("cancelled", "the stream was closed") });
  }

  async #start(refused?: string): Promise<void> {
    let token: string | undefined;
    try {
      token = await this.#credential.token(refused);
    } catch (thrown) {
      const end = thrown instanceof CallFailure ? thrown.end : drawn("internal", "the stream can not be opened", thrown);
      return this.#end({ end });
    }
    if (this.#isClosed) return;
    const carrier = this.#carry(token, (arrival) => {
      if (!this.#isClosed && this.#carrier === carrier) this.#take(arrival, token);
    });
    this.#carrier = carrier;
    for (const message of this.#unheard ?? []) carrier.send(message);
    if (this.#reader !== undefined) carrier.pull();
  }

  #take(arrival: Arrival, token: string | undefined): void {
    if ("end" in arrival) {
      const isRefused = arrival.end.code === "unauthenticated" && arrival.end.isStated;
      if (!isRefused || this.#unheard === undefined || this.#isRenewed || !this.#credential.isRenewable) {
        return this.#end(arrival);
      }
      this.#isRenewed = true;
      this.#carrier?.close();
      this.#carrier = undefined;
      void this.#start(token);
      return;
    }
    this.#unheard = undefined;
    this.#isProbing = false;
    if (this.#reader === undefined) {
      this.#waitingBytes += arrival.message.length;
      this.#arrived.push(arrival);
      if (this.#waitingBytes > WAITING_BYTES_MAX) this.#fail("more has arrived than was read");
    } else this.#tell(arrival);
  }

  #fail(message: string): void {
    this.#end({ end: drawn("unavailable", message) });
  }

  #end(arrival: Arrival): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#carrier?.close();
    this.#onClosed();
    this.#arrived.push(arrival);
    this.#tell(arrival);
  }

  /** Answers the reader who waits, if there is one. */
  #tell(arrival: Arrival): void {
    clearTimeout(this.#silence);
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.(arrival);
  }

  #listen(): void {
    clearTimeout(this.#silence);
    const silenceMs = this.#isProbing ? PROBE_ANSWER_MS : this.#silenceMs;
    this.#silence = setTimeout(() => this.#fail("the stream gave no sign of life"), silenceMs);
  }
}
