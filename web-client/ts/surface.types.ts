/**
 * Holds the package's types by compiling: `tsc -p tsconfig.types.json`. Nothing here runs, and nothing of it is shipped.
 */
import {
  type Address,
  AcknowledgeError,
  Backend,
  BackendError,
  ConclaveError,
  type Content,
  type Delivery,
  Endpoint,
  type EndpointEvent,
  type ErrorCode,
  type JsonValue,
  ListenError,
  OpenError,
  PublishError,
  SendError,
  StoreError,
  topics,
  verify,
} from "./index.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function holds<T extends true>(): T | undefined {
  return undefined;
}

export async function anEndpointOpensSendsAndIsRead(signal: AbortSignal): Promise<void> {
  await using endpoint = await Endpoint.open({ url: "https://conclave.example", name: "alice", signal });
  const sent = await endpoint.send("agent:bob", "hello", { signal });
  holds<Same<typeof sent.postId, string>>();
  const content: Content = [
    { type: "text", text: "hello" },
    { type: "data", value: { nested: [1, null, "two"] } },
  ];
  await endpoint.send("group:bob,carol", content);
  for await (const delivery of endpoint.messages({ signal })) {
    holds<Same<typeof delivery, Delivery>>();
    if (delivery.message.kind === "group") delivery.message.members.join();
    await delivery.acknowledge();
  }
  for await (const entry of endpoint.history("agent:bob", { signal })) {
    holds<Same<typeof entry.previousRecordHash, string | null>>();
    const proof = await endpoint.proof("agent:bob", entry.postId, { author: entry.author });
    holds<Same<typeof proof.recordHash, string>>();
    proof.signatures.get(entry.author)?.signature.length;
  }
  const page = await endpoint.history("agent:bob", { limit: 20 });
  holds<Same<typeof page.next, string | undefined>>();
  if (page.next !== undefined) await endpoint.history("agent:bob", { continuation: page.next });
  const result = await verify(await endpoint.export("agent:bob", { signal }), await endpoint.registryKey());
  if (result.verified) holds<Same<typeof result.conversationId, string>>();
  else holds<Same<typeof result.line, number>>();
  for await (const event of endpoint.events({ signal })) {
    holds<Same<typeof event, EndpointEvent>>();
    if (event.kind === "post") event.signedBy.length;
    if (event.kind === "recovery" && event.waits?.phase === "reanchor") event.waits.missing.join();
  }
  holds<Same<typeof endpoint.state.connection.state, "connecting" | "online" | "offline">>();
  const failure = await endpoint.closed;
  holds<Same<typeof failure, ConclaveError | undefined>>();
}

export async function inputsThatAreWrongDoNotCompile(endpoint: Endpoint): Promise<void> {
  // @ts-expect-error an address has a scheme
  await endpoint.send("bob", "hello");
  // @ts-expect-error content has a closed set of parts
  await endpoint.send("agent:bob", [{ type: "image", url: "x" }]);
  // @ts-expect-error an endpoint needs a deployment
  await Endpoint.open({ name: "alice" });
  // @ts-expect-error an endpoint comes from `open` only
  new Endpoint();
  // @ts-expect-error dates are no JSON values
  const value: JsonValue = new Date(0);
  const address: Address = "group:bob,carol";
  await endpoint.send(address, [{ type: "data", value }]);
}

export function codesAreClosedPerOperation(thrown: unknown): ErrorCode | undefined {
  if (thrown instanceof SendError && thrown.code === "delivery-pending") return thrown.code;
  if (thrown instanceof OpenError && thrown.code === "name-taken") return thrown.code;
  if (thrown instanceof StoreError && thrown.code === "store-locked") return thrown.code;
  if (thrown instanceof ListenError && thrown.code === "already-listening") return thrown.code;
  if (thrown instanceof AcknowledgeError && thrown.code === "unknown-delivery") return thrown.code;
  // @ts-expect-error a send has no such failure
  if (thrown instanceof SendError && thrown.code === "store-locked") return undefined;
  return thrown instanceof ConclaveError && !thrown.retryable ? thrown.code : undefined;
}

export async function aBackendPublishesReadsAndIsShared(signal: AbortSignal, data: Uint8Array): Promise<void> {
  const backend = await Backend.connect({ url: "https://conclave.example", credential: async () => "token", signal });
  const [meta] = await backend.publish([{ kind: "group-message", data }], { signal });
  holds<Same<NonNullable<typeof meta>["sequenceId"], bigint>>();
  const topic = topics.groupMessages(data);
  for await (const { envelope } of backend.query([topic, { topic, after: 1n }], { limit: 10 })) {
    if (envelope?.kind === "welcome") envelope.installationKey.byteLength;
  }
  for await (const page of backend.query(topic).pages()) page.length;
  (await backend.newest(topic)).get(topic)?.meta.sequenceId.toString();
  const subscription = backend.subscribe(topic, { signal });
  subscription.add({ topic, after: 5n });
  for await (const { meta } of subscription) holds<Same<typeof meta.sequenceId, bigint>>();
  await using endpoint = await Endpoint.open({ backend, name: "alice" });
  holds<Same<Awaited<ReturnType<typeof endpoint.statistics>>["publish"], number>>();
  // @ts-expect-error the backend has an address already
  await Endpoint.open({ backend, url: "https://conclave.example", name: "alice" });
  // @ts-expect-error an envelope has a closed set of kinds
  await backend.publish([{ kind: "picture", data }]);
}

export function aPublishThatFailedSaysWhatIsKnown(thrown: unknown): boolean {
  if (thrown instanceof PublishError && thrown.reason === "too-large") return thrown.isRefused;
  return thrown instanceof BackendError && thrown.code === "unavailable" && thrown.retryable;
}
