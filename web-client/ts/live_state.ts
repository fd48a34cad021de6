/**
 * The latest event of everything that is not at rest. What is at rest (a conversation that is ready, a certified post) is
 * forgotten, so that this stays as small as what is under way. Pure.
 */
import type { EndpointEvent, EndpointState, PostEvent } from "./events.js";

const CONNECTING = { kind: "connection", state: "connecting", since: 0, detail: null, nextAttemptAt: null } as const;

/** Which event takes the place of which. */
function subject(event: EndpointEvent): string {
  const { kind, address, author, postId } = event as Partial<PostEvent>;
  return [kind, address, author, postId].join(" ");
}

/** Whether there is nothing more to be told of its subject. */
function isAtRest(event: EndpointEvent): boolean {
  return (
    (event.kind === "conversation" && event.state === "ready") ||
    (event.kind === "post" && event.stage === "certified") ||
    ((event.kind === "recovery" || event.kind === "stall") && event.waits === null)
  );
}

/** Comes before everything an endpoint tells whoever begins to listen to it. What was told before was told by another. */
export const BEGIN = { kind: "begin" } as const;

export class LiveState {
  readonly #latest = new Map<string, EndpointEvent>();

  /** Takes an event in. Returns what readers are to be told of it. */
  take(event: EndpointEvent | typeof BEGIN): readonly EndpointEvent[] {
    if (event.kind === "begin") {
      // The endpoint of another tab has gone; the next one says itself what is under way.
      const ended = this.#of("recovery", "stall");
      const role = this.#of("role");
      this.#latest.clear();
      // That is this tab's own affair.
      for (const event of role) this.#latest.set(subject(event), event);
      return ended.map(({ kind, address }) => ({ kind, address, waits: null }));
    }
    if (isAtRest(event)) this.#latest.delete(subject(event));
    else this.#latest.set(subject(event), event);
    return [event];
  }

  /** What a reader that begins is told. */
  current(): readonly EndpointEvent[] {
    return [...this.#latest.values()];
  }

  /** The same, in one piece. */
  state(): EndpointState {
    return {
      connection: this.#of("connection")[0] ?? CONNECTING,
      role: this.#of("role")[0]?.role ?? "waiting",
      storage: this.#of("storage")[0],
      conversations: this.#of("conversation"),
      recoveries: this.#of("recovery"),
      stalls: this.#of("stall"),
      posts: this.#of("post"),
    };
  }

  #of<K extends EndpointEvent["kind"]>(...kinds: readonly K[]): Extract<EndpointEvent, { readonly kind: K }>[] {
    const ofKind = (event: EndpointEvent): event is Extract<EndpointEvent, { readonly kind: K }> =>
      (kinds as readonly string[]).includes(event.kind);
    return this.current().filter(ofKind);
  }
}
