/** The page's side of a worker that queues for the store in its stead. What is asked goes to the owner as from any tab. */
import { abortable } from "../abort.js";
import { fromCore, OpenError } from "../errors.js";
import type { Plan } from "../opening.js";
import type { Credential } from "../transport/credential.js";
import type { EndpointOptions, OpeningProgress } from "../types.js";
import { hold, lifeOf } from "./lock.js";

/** Which worker runs the endpoint. */
export type WorkerChoice = "shared" | "dedicated" | Worker | SharedWorker;

/** How long a page waits for the first word of its worker, whose script has to be loaded. */
const WORKER_WAIT_MS = 30_000;

/** How long a page waits for its worker to let go of the store before it ends it. */
const CLOSE_WAIT_MS = 5_000;

/** What a page asks of its worker, beside a port for the answers. */
export interface Hosting {
  readonly plan: Plan;
  /** A bearer token; `null` when the page is to be asked for one. */
  readonly credential: string | null | undefined;
  /** The lock that the page holds while it lives. */
  readonly page: string;
}

/** What a worker says to its page on their port. */
export type WorkerWord =
  | { readonly kind: "begun" | "seated" | "closed" }
  | { readonly kind: "failed"; readonly failure: object }
  | { readonly kind: "opening"; readonly progress: OpeningProgress }
  | { readonly kind: "credential" };

/** A worker that runs the endpoint for this page. */
export interface Hosted {
  /** Rejects when the endpoint in the worker has failed. */
  readonly failed: Promise<never>;
  /** Has the worker let go of the store. */
  close(): Promise<void>;
}

/**
 * Resolves when the worker has its seat: whoever queues for the store from then on is behind it. When `signal` aborts it rejects
 * with the signal's reason, and the worker has let go of the store or was waited for as long as it is.
 *
 * @throws {@link OpenError} or {@link StoreError}; `module-unavailable` for a worker that can not be started, says nothing or dies.
 */
export async function host(
  choice: WorkerChoice,
  plan: Plan,
  credential: Credential | undefined,
  onOpening: EndpointOptions["onOpening"],
  signal: AbortSignal,
): Promise<Hosted> {
  const page = `conclave-page/${crypto.randomUUID()}`;
  const release = await hold(page, signal);
  let worker: Worker | SharedWorker;
  try {
    worker = start(choice);
  } catch (cause) {
    // The script is of another origin, or the page's policy forbids it.
    release();
    throw silent("can not be started", cause);
  }
  const { port1: port, port2: theirs } = new MessageChannel();
  const script = "port" in worker ? worker.port : worker;
  let fail: (failure: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  let seat: () => void = () => undefined;
  const seated = new Promise<void>((resolve) => {
    seat = resolve;
  });
  let end: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    end = resolve;
  });
  failed.catch(() => undefined);
  let hasBegun = false;
  const late = setTimeout(() => fail(silent(`said nothing for ${WORKER_WAIT_MS / 1000} s`)), WORKER_WAIT_MS);
  const opening = new AbortController();
  port.onmessage = async ({ data }: MessageEvent<WorkerWord>) => {
    if (!hasBegun) {
      hasBegun = true;
      clearTimeout(late);
      // One that dies from here on leaves no other sign.
      hold(lifeOf(page), opening.signal).then((free) => {
        free();
        fail(silent("has ended"));
      }, () => undefined);
    }
    if (data.kind === "seated") seat();
    else if (data.kind === "closed") end();
    else if (data.kind === "opening") onOpening?.(data.progress);
    else if (data.kind === "failed") fail(fromCore(data.failure));
    else if (data.kind === "credential" && typeof credential === "function") {
      // What goes wrong is the credential's affair: the connection says that there is none.
      port.postMessage({ token: await Promise.resolve().then(credential).catch(() => undefined) });
    }
  };
  worker.addEventListener("error", () => {
    // Of a worker that has begun an error is its own affair.
    if (!hasBegun) fail(silent("can not be loaded"));
  });
  const close = async (): Promise<void> => {
    port.postMessage("close");
    const wait = setTimeout(end, CLOSE_WAIT_MS);
    await closed;
    clearTimeout(wait);
    port.close();
    if (typeof choice === "string" && worker instanceof Worker) worker.terminate();
    release();
  };
  const hosting: Hosting = { plan, credential: typeof credential === "function" ? null : credential, page };
  try {
    if ("port" in worker) worker.port.start();
    script.postMessage({ conclave: hosting }, [theirs]);
    await abortable(Promise.race([seated, failed]), signal);
  } catch (thrown) {
    // One that is told to stop may hold the store, and is waited for; one that has not begun holds nothing.
    if (!signal.aborted || !hasBegun) end();
    await close();
    throw thrown instanceof DOMException && thrown.name === "DataCloneError"
      ? new OpenError("invalid-options", "`wasm` can not be handed to a worker in this form", { cause: thrown })
      : thrown;
  } finally {
    clearTimeout(late);
    opening.abort();
  }
  return { failed, close };
}

function silent(what: string, cause?: unknown): OpenError {
  return new OpenError("module-unavailable", `the worker's script ${what}`, { retryable: true, cause });
}

function start(choice: WorkerChoice): Worker | SharedWorker {
  if (typeof choice !== "string") return choice;
  // The literal forms are what bundlers look for.
  return choice === "shared" && typeof SharedWorker === "function"
    ? new SharedWorker(new URL("../worker.js", import.meta.url), { type: "module", name: "conclave" })
    : new Worker(new URL("../worker.js", import.meta.url), { type: "module", name: "conclave" });
}
