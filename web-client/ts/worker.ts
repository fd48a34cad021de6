/**
 * The script of a worker that runs endpoints for pages, so that theirs stay smooth. The options `worker: "dedicated"` and
 * `worker: "shared"` start it; a worker of one's own that imports it can be handed to the option instead.
 *
 * @packageDocumentation
 */
import { toCore } from "./errors.js";
import { placeOf } from "./opening.js";
import type { Hosting, WorkerWord } from "./tabs/host.js";
import { hold, lifeOf } from "./tabs/lock.js";
import { TabSeat } from "./tabs/tab_seat.js";
import { Connection } from "./transport/connection.js";

/** Takes a seat for a page, until the page closes it or dies. */
async function serve(port: MessagePort, { plan, credential, page }: Hosting): Promise<void> {
  const ending = new AbortController();
  const say = (word: WorkerWord): void => port.postMessage(word);
  let give: (answer: Promise<string>) => void = () => undefined;
  port.onmessage = ({ data }: MessageEvent<"close" | { token?: string }>) => {
    if (data === "close") ending.abort();
    else give(typeof data.token === "string" ? Promise.resolve(data.token) : Promise.reject(new Error("the page gave no credential")));
  };
  // One at a time: the connection asks again only when it was answered.
  const ask = (): Promise<string> => {
    say({ kind: "credential" });
    return new Promise((resolve) => {
      give = resolve;
    });
  };
  hold(page, ending.signal).then(
    (release) => {
      release();
      ending.abort();
    },
    () => undefined,
  );
  // The page takes this lock for the sign that the worker is gone. Without locks the opening says so itself.
  await hold(lifeOf(page), ending.signal).then(
    (release) => ending.signal.addEventListener("abort", release),
    () => undefined,
  );
  say({ kind: "begun" });
  try {
    const connection = new Connection(plan.url, credential === null ? ask : credential);
    const seat = await TabSeat.open(placeOf(plan, connection, (progress) => say({ kind: "opening", progress })), ending.signal);
    const leave = (): void => void seat.close().catch(() => undefined);
    ending.signal.addEventListener("abort", leave);
    if (ending.signal.aborted) leave();
    say({ kind: "seated" });
    const failure = await seat.closed;
    if (failure !== undefined) say({ kind: "failed", failure: toCore(failure) });
  } catch (thrown) {
    if (!ending.signal.aborted) say({ kind: "failed", failure: toCore(thrown) });
  }
  say({ kind: "closed" });
}

/** A page may say other things to a worker of its own. */
function listen(target: EventTarget): void {
  target.addEventListener("message", (event) => {
    const { data, ports } = event as MessageEvent<{ conclave?: Hosting } | null>;
    if (data?.conclave !== undefined && ports[0] !== undefined) void serve(ports[0], data.conclave);
  });
}

if ("onconnect" in globalThis) {
  globalThis.addEventListener("connect", (event) => {
    const [port] = (event as MessageEvent).ports;
    if (port === undefined) return;
    listen(port);
    port.start();
  });
} else if (!("document" in globalThis) && typeof addEventListener === "function") {
  // In a page it would take messages from anyone; in Node there is nobody to take them from.
  listen(globalThis);
}
