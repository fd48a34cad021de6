/** What a deployment publishes of itself, as a client takes it (CONF-025, CONF-071). Pure. */
import { BackendError } from "../errors.js";
import type { Configuration, Limits } from "./types.js";

const MIB = 1024 * 1024;

/** What holds where a deployment says 0 or nothing. */
const LIMITS: Limits = {
  maxEnvelopeBytes: MIB,
  maxRequestBytes: 25 * MIB,
  maxResponseBytes: 25 * MIB,
  maxPublishTopics: 1_000,
  maxQueryTopics: 1_000,
  maxQueryLimit: 1_000,
  defaultQueryLimit: 100,
  maxNewestMetadataTopics: 1_000,
  maxNewestFullTopics: 100,
  maxUpdateAdds: 100_000,
  maxUpdateRemoves: 100_000,
  maxStreamTopics: 100_000,
  maxStaticTopics: 10_000,
  maxLookupIdentifiers: 250,
  maxScwSignatures: 100,
  maxIdentityEntries: 256,
  maxUpdateFramesPerSecond: 10,
  maxUpdateBurst: 100,
  maxPingFramesPerSecond: 10,
  maxPingBurst: 100,
};

const RETENTION_SECONDS = 7_776_000;
const RETENTION = {
  groupMessageSeconds: RETENTION_SECONDS,
  welcomeSeconds: RETENTION_SECONDS,
  keyPackageSeconds: RETENTION_SECONDS,
};
const MLS = { maxGroupMembers: 250, maxInstallationsPerInbox: 10, commitLogEnabled: true };
const AUTH = { enabled: false, keys: [], audiences: [], issuers: [], requiredScopes: [] };
const HANDLES = { minNameLength: 3 };

/** The configuration of an answer, its gaps filled with the defaults. */
export function configurationOf(answer: unknown): Configuration {
  const said = answer as Partial<Configuration> & { identifier: string };
  if (said.identifier === "") {
    throw new BackendError("internal", "The deployment has no identifier: what answers here is no backend.");
  }
  return {
    ...(said as Configuration),
    auth: said.auth ?? AUTH,
    retention: filled(said.retention, RETENTION),
    limits: filled(said.limits, LIMITS),
    mls: filled(said.mls, MLS),
    attachments: said.attachments,
    handles: filled(said.handles, HANDLES),
  };
}

/** What is said, and what is not said, or said as 0, by default. */
function filled<T extends object>(said: T | undefined, defaults: T): T {
  const given = Object.entries(said ?? {}).filter(([, value]) => value !== 0 && value !== undefined);
  return { ...defaults, ...(Object.fromEntries(given) as Partial<T>) };
}
