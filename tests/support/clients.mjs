// connect-es clients of a deployment: a gRPC-Web implementation nobody here wrote.

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import * as wire from "./wire.mjs";

/** One client per service, all over one connection to `url`. */
export function connect(url, options = {}) {
  const transport = createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1", ...options });
  const of = (description) => createClient(description, transport);
  return {
    publish: of(wire.PublishService),
    query: of(wire.QueryService),
    subscription: of(wire.SubscriptionService),
    identity: of(wire.IdentityService),
    configuration: of(wire.ConfigurationService),
    notification: of(wire.NotificationService),
    attachment: of(wire.AttachmentService),
    health: of(wire.Health),
    registry: of(wire.RegistryService),
    router: of(wire.RouterService),
    operator: of(wire.OperatorService),
  };
}

/** Requests of a bidirectional stream, which can be pushed while it runs, and ended. */
export function outgoing() {
  const waiting = [];
  let wake = () => {};
  let isOver = false;
  return {
    push(request) {
      waiting.push({ request });
      wake();
    },
    end() {
      isOver = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length > 0) yield waiting.shift();
        if (isOver) return;
        await new Promise((resolve) => { wake = resolve; });
      }
    },
  };
}

/** Runs `call` and returns the ConnectError it must fail with. */
export async function failure(call) {
  try {
    await call();
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error("the call succeeded");
}

/** The PublishError detail of a failed publish, decoded. */
export function publishError(error) {
  const [detail] = error.findDetails(wire.message("xmtp.backend.v1.PublishError"));
  return detail;
}

export { Code };
