/** The messages of the backend as tables: field numbers of `proto/`, and the properties they become. */
import type { Enum, Only, Table, Union } from "./wire.js";

const topic: Only = { only: "hex" };
const cursor: Only = { only: "uint64" };

const wrapperAlgorithm: Enum = { names: ["unspecified", "curve25519", "xwing-mlkem-768-draft-6", "symmetric-key"] };
const pointerWrapperAlgorithm: Enum = { names: ["unspecified", undefined, "xwing-mlkem-768-draft-6"] };
const identifierKind: Enum = { names: ["unspecified", "ethereum", "passkey", "handle"] };
const reason: Enum = {
  names: [
    "unspecified",
    "malformed-payload",
    "invalid-key-package",
    "invalid-identity-update",
    "invalid-signature",
    "too-large",
    "handle-taken",
    "handle-not-allowed",
    "handle-too-soon",
  ],
};

const ed25519Signature: Table = { fields: { bytes: [1, "bytes"], publicKey: [2, "bytes"] } };

const signature: Union = {
  cases: {
    "erc-191": { path: [1], holds: { fields: { bytes: [1, "bytes"] } } },
    "erc-6492": {
      path: [2],
      holds: { fields: { accountId: [1, "string"], blockNumber: [2, "uint64"], signature: [3, "bytes"] } },
    },
    "installation-key": { path: [3], holds: ed25519Signature },
    passkey: {
      path: [5],
      holds: {
        fields: {
          publicKey: [1, "bytes"],
          signature: [2, "bytes"],
          authenticatorData: [3, "bytes"],
          clientDataJson: [4, "bytes"],
        },
      },
    },
  },
};

const memberIdentifier: Union = {
  cases: {
    ethereum: { path: [1], holds: "string", as: "address" },
    installation: { path: [2], holds: "bytes", as: "publicKey" },
    passkey: { path: [3], holds: { fields: { key: [1, "bytes"], relyingParty: [2, "string", "optional"] } } },
  },
};

const identityAction: Union = {
  cases: {
    "create-inbox": {
      path: [1],
      holds: {
        fields: {
          initialIdentifier: [1, "string"],
          nonce: [2, "uint64"],
          initialIdentifierSignature: [3, signature],
          initialIdentifierKind: [4, identifierKind],
          relyingParty: [5, "string", "optional"],
        },
      },
    },
    "add-association": {
      path: [2],
      holds: {
        fields: {
          newMemberIdentifier: [1, memberIdentifier],
          existingMemberSignature: [2, signature],
          newMemberSignature: [3, signature],
          relyingParty: [4, "string", "optional"],
        },
      },
    },
    "revoke-association": {
      path: [3],
      holds: { fields: { memberToRevoke: [1, memberIdentifier], recoveryIdentifierSignature: [2, signature] } },
    },
    "change-recovery-address": {
      path: [4],
      holds: {
        fields: {
          newRecoveryIdentifier: [1, "string"],
          existingRecoveryIdentifierSignature: [2, signature],
          newRecoveryIdentifierKind: [3, identifierKind],
          relyingParty: [4, "string", "optional"],
        },
      },
    },
    "claim-handle": { path: [5], holds: { fields: { handle: [1, "string"], existingMemberSignature: [2, signature] } } },
  },
};

/** `ClientEnvelope`. */
export const clientEnvelope: Union = {
  cases: {
    "group-message": {
      path: [1],
      holds: { fields: { data: [1, "bytes"], senderHmac: [2, "bytes"], shouldPush: [3, "bool"] } },
    },
    welcome: {
      path: [2, 1],
      holds: {
        fields: {
          installationKey: [1, "bytes"],
          data: [2, "bytes"],
          hpkePublicKey: [3, "bytes"],
          wrapperAlgorithm: [4, wrapperAlgorithm],
          welcomeMetadata: [5, "bytes"],
        },
      },
    },
    "welcome-pointer": {
      path: [2, 2],
      holds: {
        fields: {
          installationKey: [1, "bytes"],
          welcomePointer: [2, "bytes"],
          hpkePublicKey: [3, "bytes"],
          wrapperAlgorithm: [4, pointerWrapperAlgorithm],
        },
      },
    },
    "key-package": { path: [3], holds: { fields: { keyPackage: [1, "bytes"] } } },
    "identity-update": {
      path: [4],
      holds: {
        fields: {
          actions: [1, identityAction, "repeated"],
          clientTimestampNs: [2, "uint64"],
          inboxId: [3, "string"],
        },
      },
    },
    "commit-log-entry": { path: [5], holds: { fields: { entry: [1, "bytes"], signature: [2, ed25519Signature] } } },
  },
};

/** `xmtp.mls.message_contents.PlaintextCommitLogEntry`, as far as its topic follows from it. */
export const commitLogEntryGroup: Table = { fields: { groupId: [1, "bytes"] } };

const envelopeMeta: Table = {
  fields: {
    sequenceId: [1, cursor],
    serverNs: [2, "uint64"],
    messageHash: [3, { only: "hex" }],
    topic: [4, topic],
    expiryNs: [5, "uint64"],
    isCommitOrProposal: [6, "bool"],
  },
};

const storedEnvelope: Table = { fields: { meta: [1, envelopeMeta, "required"], envelope: [2, clientEnvelope] } };
const topicQuery: Table = { fields: { topic: [1, topic], after: [2, cursor] } };
const catchupTarget: Table = { fields: { topic: [1, topic], through: [2, "uint64"] } };
const nonce: Table = { fields: { nonce: [1, "uint64"] } };
const messages: Table = { fields: { envelopes: [1, storedEnvelope, "repeated"] } };

/** A request that is a list of messages, which are encoded already: a publish and both calls of the identity service. */
export const listRequest: Table = { fields: { entries: [1, "bytes", "repeated"] } };
export const publishResponse: Table = { fields: { metas: [1, envelopeMeta, "repeated"] } };
export const publishError: Table = { fields: { index: [1, "uint32", "optional"], reason: [2, reason], message: [3, "string"] } };
/** `google.rpc.Status`. */
export const status: Table = {
  fields: {
    code: [1, "uint32"],
    message: [2, "string"],
    details: [3, { fields: { typeUrl: [1, "string"], value: [2, "bytes"] } }, "repeated"],
  },
};

export const queryRequest: Table = { fields: { queries: [1, topicQuery, "repeated"], limit: [2, "uint32"] } };
export const queryResponse: Table = {
  fields: { envelopes: [1, storedEnvelope, "repeated"], hasMore: [2, { only: "bool" }] },
};
export const queryNewestRequest: Table = { fields: { topics: [1, topic, "repeated"], includeFullEnvelope: [2, "bool"] } };
export const queryNewestResponse: Table = {
  fields: {
    results: [1, { fields: { topic: [1, topic], meta: [2, envelopeMeta, "required"], envelope: [3, clientEnvelope] } }, "repeated"],
  },
};

export const subscribeRequest: Union = {
  cases: {
    update: {
      path: [1],
      holds: { fields: { id: [1, "uint64"], adds: [2, topicQuery, "repeated"], removes: [3, topic, "repeated"] } },
    },
    ping: { path: [2], holds: nonce },
    pong: { path: [3], holds: nonce },
  },
};
export const subscribeResponse: Union = {
  cases: {
    started: { path: [1], holds: { fields: { keepaliveIntervalMs: [1, "uint32"] } } },
    applied: { path: [2], holds: { fields: { id: [1, "uint64"], targets: [2, catchupTarget, "repeated"] } } },
    messages: { path: [3], holds: messages },
    ping: { path: [4], holds: nonce },
    pong: { path: [5], holds: nonce },
  },
};
export const subscribeStaticRequest: Table = { fields: { topics: [1, topicQuery, "repeated"] } };
export const subscribeStaticResponse: Union = {
  cases: {
    started: {
      path: [1],
      holds: { fields: { keepaliveIntervalMs: [1, "uint32"], targets: [2, catchupTarget, "repeated"] } },
    },
    messages: { path: [2], holds: messages },
    keepalive: { path: [3], holds: { fields: {} } },
  },
};

/** `GetInboxIdsRequest.Request`. */
export const identifier: Table = { fields: { identifier: [1, "string"], kind: [2, identifierKind] } };
export const getInboxIdsResponse: Table = {
  fields: { responses: [1, { fields: { ...identifier.fields, inboxId: [3, "string", "optional"] } }, "repeated"] },
};
/** `VerifySmartContractWalletSignaturesRequest.Signature`. */
export const walletSignature: Table = {
  fields: {
    accountId: [1, "string"],
    blockNumber: [2, "uint64", "optional"],
    hash: [3, "bytes"],
    signature: [4, "bytes"],
  },
};
export const verifyResponse: Table = {
  fields: {
    responses: [
      1,
      { fields: { isValid: [1, "bool"], blockNumber: [2, "uint64", "optional"], error: [3, "string", "optional"] } },
      "repeated",
    ],
  },
};

export const getConfigurationRequest: Table = { fields: {} };
export const getConfigurationResponse: Table = {
  fields: {
    identifier: [1, "string"],
    serverVersion: [2, "string"],
    minLibxmtpVersion: [3, "string"],
    auth: [
      4,
      {
        fields: {
          enabled: [1, "bool"],
          keys: [2, { fields: { kid: [1, "string"], alg: [2, "string"] } }, "repeated"],
          audiences: [3, "string", "repeated"],
          issuers: [4, "string", "repeated"],
          requiredScopes: [5, "string", "repeated"],
        },
      },
    ],
    retention: [
      5,
      { fields: { groupMessageSeconds: [1, "safe"], welcomeSeconds: [2, "safe"], keyPackageSeconds: [3, "safe"] } },
    ],
    limits: [
      6,
      {
        fields: {
          maxEnvelopeBytes: [1, "safe"],
          maxRequestBytes: [2, "safe"],
          maxResponseBytes: [3, "safe"],
          maxPublishTopics: [4, "uint32"],
          maxQueryTopics: [5, "uint32"],
          maxQueryLimit: [6, "uint32"],
          defaultQueryLimit: [7, "uint32"],
          maxNewestMetadataTopics: [8, "uint32"],
          maxNewestFullTopics: [9, "uint32"],
          maxUpdateAdds: [10, "uint32"],
          maxUpdateRemoves: [11, "uint32"],
          maxStreamTopics: [12, "uint32"],
          maxStaticTopics: [13, "uint32"],
          maxLookupIdentifiers: [14, "uint32"],
          maxScwSignatures: [15, "uint32"],
          maxIdentityEntries: [16, "uint32"],
          maxUpdateFramesPerSecond: [17, "uint32"],
          maxUpdateBurst: [18, "uint32"],
          maxPingFramesPerSecond: [19, "uint32"],
          maxPingBurst: [20, "uint32"],
        },
      },
    ],
    mls: [
      7,
      {
        fields: {
          maxGroupMembers: [1, "uint32"],
          maxInstallationsPerInbox: [2, "uint32"],
          commitLogEnabled: [3, "bool", "optional"],
        },
      },
    ],
    smartContractWalletChains: [8, "string", "repeated"],
    attachments: [
      9,
      { fields: { baseUrl: [1, "string"], maxUploadBytes: [2, "safe"], retentionSeconds: [3, "safe"] } },
    ],
    handles: [11, { fields: { minNameLength: [1, "uint32"] } }],
  },
};
