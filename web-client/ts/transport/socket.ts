/**
 * A stream over a WebSocket (docs/decisions/0012): every message is binary and one frame; the last of the server is a trailer
 * frame. Depends on frames and statuses.
 */
import { toBase64url } from "../base64url.js";
import { type Arrival, frame, FrameReader } from "./frames.js";
import { CODES, drawn, type End } from "./status.js";
import type { Carrier } from "./stream.js";

/** How long a WebSocket may take to open and to bring its first frame, in milliseconds. */
const START_MS = 10_000;
/** What a close code is above that stands for a status. */
const CLOSE_CODE_BASE = 4000;
/** Carries the token, which a page can set in no header. */
const TOKEN_SUBPROTOCOL = "conclave.bearer.";
/** Offered beside the token, so that nothing repeats the token. */
const SUBPROTOCOL = "grpc-web";

/**
 * Opens a WebSocket at `url`. `onVerdict` hears whether it got through: the first frame did, or there was an end that the
 * server did not state.
 */
export function carryBySocket(
  url: string,
  token: string | undefined,
  sink: (arrival: Arrival) => void,
  onVerdict: (gotThrough: boolean) => void,
): Carrier {
  const protocols = token === undefined ? [] : [SUBPROTOCOL, TOKEN_SUBPROTOCOL + toBase64url(new TextEncoder().encode(token))];
  let socket: WebSocket;
  try {
    socket = new WebSocket(url.replace(/^http/, "ws"), protocols);
  } catch (cause) {
    // A page may not be allowed to, by its policy or because it is a secure one and the deployment is not.
    queueMicrotask(() => {
      onVerdict(false);
      sink({ end: drawn("unavailable", "there can be no WebSocket here", cause) });
    });
    return { pull: () => undefined, send: () => undefined, close: () => undefined };
  }
  socket.binaryType = "arraybuffer";
  const waiting: Uint8Array<ArrayBuffer>[] = [];
  let isOver = false;
  const close = () => {
    isOver = true;
    clearTimeout(start);
    socket.close();
  };
  const end = (end: End) => {
    if (isOver) return;
    close();
    sink({ end });
  };
  const start = setTimeout(() => {
    onVerdict(false);
    end(drawn("unavailable", "the WebSocket did not open in time"));
  }, START_MS);

  socket.addEventListener("open", () => {
    for (const bytes of waiting.splice(0)) socket.send(bytes);
  });
  let hasBegun = false;
  socket.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    if (isOver) return;
    if (!hasBegun) {
      hasBegun = true;
      clearTimeout(start);
      onVerdict(true);
    }
    const frames = new FrameReader();
    const [arrival, another] = data instanceof ArrayBuffer ? frames.push(new Uint8Array(data)) : [];
    if (arrival === undefined || another !== undefined || !frames.isAtBoundary) {
      end(drawn("internal", "a WebSocket message is not one frame"));
    } else if ("end" in arrival) end(arrival.end);
    else sink(arrival);
  });
  socket.addEventListener("close", ({ code }) => {
    const stated = CODES[code - CLOSE_CODE_BASE];
    if (!isOver && !hasBegun) onVerdict(stated !== undefined);
    if (stated === undefined) end(drawn("unavailable", `the connection was lost (close code ${code})`));
    else end({ ...drawn(stated, "the stream was closed without words"), isStated: true });
  });
  return {
    pull: () => undefined,
    send(message) {
      const bytes = frame(message);
      if (socket.readyState === WebSocket.OPEN) socket.send(bytes);
      else if (socket.readyState === WebSocket.CONNECTING) waiting.push(bytes);
    },
    close,
  };
}
