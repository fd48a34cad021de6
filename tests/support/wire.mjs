// The wire types, built at run time from the descriptor set that `cargo xtask build` writes.

import fs from "node:fs";
import { create, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const descriptors = new URL("../../target/descriptors.binpb", import.meta.url);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, fs.readFileSync(descriptors)));

/** The description of a service, for `createClient`. */
export function service(name) {
  const found = registry.getService(name);
  if (!found) throw new Error(`no service ${name}`);
  return found;
}

/** The descriptions of all services of the contract. */
export const contractServices = [...registry].filter(
  ({ kind, typeName }) => kind === "service" && typeName.startsWith("xmtp.backend.v1."),
);

/** The description of a message. */
export function message(name) {
  const found = registry.getMessage(name);
  if (!found) throw new Error(`no message ${name}`);
  return found;
}

/** The encoded bytes of a message given by its fields. */
export function encode(name, fields) {
  return toBinary(message(name), create(message(name), fields));
}

/** A decoded message. */
export function decode(name, bytes) {
  return fromBinary(message(name), bytes);
}

export const PublishService = service("xmtp.backend.v1.PublishService");
export const QueryService = service("xmtp.backend.v1.QueryService");
export const SubscriptionService = service("xmtp.backend.v1.SubscriptionService");
export const IdentityService = service("xmtp.backend.v1.IdentityService");
export const ConfigurationService = service("xmtp.backend.v1.ConfigurationService");
export const NotificationService = service("xmtp.backend.v1.NotificationService");
export const AttachmentService = service("xmtp.backend.v1.AttachmentService");
export const Health = service("grpc.health.v1.Health");
export const RegistryService = service("conclave.registry.v1.RegistryService");
export const RouterService = service("conclave.router.v1.RouterService");
export const OperatorService = service("conclave.operator.v1.OperatorService");
