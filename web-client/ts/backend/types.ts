/** The values of the backend: envelopes, their metadata, what a deployment says of itself. */

/**
 * A topic as hexadecimal text: one kind byte and an identifier. The functions of `topics` make them; equal topics are equal
 * texts, so they are keys of a `Map`.
 */
export type Topic = string;

/** A topic as text or as bytes. */
export type TopicInput = Topic | Uint8Array;

/** A topic, and the sequence id it is read after: 0, from its beginning, where none is given. */
export interface TopicCursor {
  readonly topic: TopicInput;
  readonly after?: bigint;
}

/** Topics to read: one or several, each from its beginning or after a position. */
export type Topics = TopicInput | TopicCursor | Iterable<TopicInput | TopicCursor>;

/** An MLS message to a group. */
export interface GroupMessage {
  readonly kind: "group-message";
  /** A serialized MLSMessage. */
  readonly data: Uint8Array;
  readonly senderHmac?: Uint8Array;
  readonly shouldPush?: boolean;
}

/** A Welcome to an installation. */
export interface Welcome {
  readonly kind: "welcome";
  /** 32 bytes. */
  readonly installationKey: Uint8Array;
  readonly data: Uint8Array;
  readonly hpkePublicKey?: Uint8Array;
  readonly wrapperAlgorithm?: WelcomeWrapperAlgorithm;
  readonly welcomeMetadata?: Uint8Array;
}

/** A pointer to a Welcome that is stored elsewhere. */
export interface WelcomePointer {
  readonly kind: "welcome-pointer";
  /** 32 bytes. */
  readonly installationKey: Uint8Array;
  readonly welcomePointer: Uint8Array;
  readonly hpkePublicKey?: Uint8Array;
  readonly wrapperAlgorithm?: WelcomePointerWrapperAlgorithm;
}

/** An installation's key package. */
export interface KeyPackage {
  readonly kind: "key-package";
  /** A serialized MLS KeyPackage. */
  readonly keyPackage: Uint8Array;
}

/** An update of an inbox's associations. */
export interface IdentityUpdate {
  readonly kind: "identity-update";
  /** 64 hexadecimal digits. */
  readonly inboxId: string;
  readonly clientTimestampNs: bigint;
  readonly actions: readonly IdentityAction[];
}

/** An entry of a group's commit log. */
export interface CommitLogEntry {
  readonly kind: "commit-log-entry";
  /** A serialized PlaintextCommitLogEntry. */
  readonly entry: Uint8Array;
  readonly signature?: Ed25519Signature;
}

/** What is published. A value without its optional properties is the one with empty bytes, `false` or the first name. */
export type Envelope = GroupMessage | Welcome | WelcomePointer | KeyPackage | IdentityUpdate | CommitLogEntry;

/** How a Welcome is wrapped; a number that has no name yet stays a number. */
export type WelcomeWrapperAlgorithm = "unspecified" | "curve25519" | "xwing-mlkem-768-draft-6" | "symmetric-key" | number;

/** How a pointer to a Welcome is wrapped; a number that has no name yet stays a number. */
export type WelcomePointerWrapperAlgorithm = "unspecified" | "xwing-mlkem-768-draft-6" | number;

/** What an identifier is; a number that has no name yet stays a number. */
export type IdentifierKind = "unspecified" | "ethereum" | "passkey" | "handle" | number;

/** A signature by an Ed25519 key, and the key. */
export interface Ed25519Signature {
  /** 64 bytes. */
  readonly bytes: Uint8Array;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** A signature of an identity action. */
export type Signature =
  | { readonly kind: "erc-191"; readonly bytes: Uint8Array }
  | { readonly kind: "erc-6492"; readonly accountId: string; readonly blockNumber: bigint; readonly signature: Uint8Array }
  | ({ readonly kind: "installation-key" } & Ed25519Signature)
  | {
      readonly kind: "passkey";
      readonly publicKey: Uint8Array;
      readonly signature: Uint8Array;
      readonly authenticatorData: Uint8Array;
      readonly clientDataJson: Uint8Array;
    };

/** A member of an inbox. */
export type MemberIdentifier =
  | { readonly kind: "ethereum"; readonly address: string }
  | { readonly kind: "installation"; readonly publicKey: Uint8Array }
  | { readonly kind: "passkey"; readonly key: Uint8Array; readonly relyingParty?: string };

/** One action of an identity update. */
export type IdentityAction =
  | {
      readonly kind: "create-inbox";
      readonly initialIdentifier: string;
      readonly nonce: bigint;
      readonly initialIdentifierSignature?: Signature;
      readonly initialIdentifierKind?: IdentifierKind;
      readonly relyingParty?: string;
    }
  | {
      readonly kind: "add-association";
      readonly newMemberIdentifier?: MemberIdentifier;
      readonly existingMemberSignature?: Signature;
      readonly newMemberSignature?: Signature;
      readonly relyingParty?: string;
    }
  | {
      readonly kind: "revoke-association";
      readonly memberToRevoke?: MemberIdentifier;
      readonly recoveryIdentifierSignature?: Signature;
    }
  | {
      readonly kind: "change-recovery-address";
      readonly newRecoveryIdentifier: string;
      readonly existingRecoveryIdentifierSignature?: Signature;
      readonly newRecoveryIdentifierKind?: IdentifierKind;
      readonly relyingParty?: string;
    }
  | { readonly kind: "claim-handle"; readonly handle: string; readonly existingMemberSignature?: Signature }
  /** One that this release does not know. It is read, and can not be published. */
  | { readonly kind: "unknown" };

/** What the backend assigned to a stored envelope. */
export interface EnvelopeMeta {
  /** Greater than that of every envelope that was visible when it was published. */
  readonly sequenceId: bigint;
  /** When it was stored, in nanoseconds since 1970. */
  readonly serverNs: bigint;
  /** SHA-256 of the stored bytes, in hexadecimal. The backend's own: a hash of one's own encoding need not match. */
  readonly messageHash: string;
  readonly topic: Topic;
  /** Until when it is kept, in nanoseconds since 1970; 0 means without end. */
  readonly expiryNs: bigint;
  readonly isCommitOrProposal: boolean;
}

/** A stored envelope. */
export interface StoredEnvelope {
  readonly meta: EnvelopeMeta;
  /** `undefined` where only metadata was asked for, or where it is of a kind that this release does not know. */
  readonly envelope: Envelope | undefined;
}

/** What became of an envelope whose publish gave no answer. */
export type Settlement =
  /** It is stored. */
  | { readonly outcome: "stored"; readonly meta: EnvelopeMeta }
  /** It is not stored, as of this read. */
  | { readonly outcome: "not-stored" }
  /** It can not be told: a key package that is not the newest of its installation. Publish the same bytes again. */
  | { readonly outcome: "unknown" };

/** An identifier to look up. */
export interface Identifier {
  readonly identifier: string;
  readonly kind: Exclude<IdentifierKind, "unspecified">;
}

/** A signature of a smart contract wallet to verify. */
export interface WalletSignature {
  /** A CAIP-10 account id. */
  readonly accountId: string;
  /** The block to verify at; the latest where there is none. */
  readonly blockNumber?: bigint;
  /** 32 bytes. */
  readonly hash: Uint8Array;
  readonly signature: Uint8Array;
}

/** Whether a wallet accepts a signature. */
export interface WalletVerdict {
  readonly isValid: boolean;
  /** The block the verdict was reached at. */
  readonly blockNumber?: bigint;
  readonly error?: string;
}

/** How large requests may be (CONF-069). */
export interface Limits {
  readonly maxEnvelopeBytes: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  readonly maxPublishTopics: number;
  readonly maxQueryTopics: number;
  readonly maxQueryLimit: number;
  readonly defaultQueryLimit: number;
  readonly maxNewestMetadataTopics: number;
  readonly maxNewestFullTopics: number;
  readonly maxUpdateAdds: number;
  readonly maxUpdateRemoves: number;
  readonly maxStreamTopics: number;
  readonly maxStaticTopics: number;
  readonly maxLookupIdentifiers: number;
  readonly maxScwSignatures: number;
  readonly maxIdentityEntries: number;
  readonly maxUpdateFramesPerSecond: number;
  readonly maxUpdateBurst: number;
  readonly maxPingFramesPerSecond: number;
  readonly maxPingBurst: number;
}

/** What a deployment says of itself. */
export interface Configuration {
  /** The deployment's name. It never changes. */
  readonly identifier: string;
  readonly serverVersion: string;
  /** The oldest client the deployment wants; empty means any. */
  readonly minLibxmtpVersion: string;
  readonly auth: {
    readonly enabled: boolean;
    readonly keys: readonly { readonly kid: string; readonly alg: string }[];
    readonly audiences: readonly string[];
    readonly issuers: readonly string[];
    readonly requiredScopes: readonly string[];
  };
  /** How long envelopes are kept, in seconds. */
  readonly retention: {
    readonly groupMessageSeconds: number;
    readonly welcomeSeconds: number;
    readonly keyPackageSeconds: number;
  };
  /** What a deployment leaves out has its default. */
  readonly limits: Limits;
  /** Advisory: the backend does not enforce it. */
  readonly mls: {
    readonly maxGroupMembers: number;
    readonly maxInstallationsPerInbox: number;
    readonly commitLogEnabled: boolean;
  };
  /** CAIP-2 ids of the chains on which wallet signatures are verified. */
  readonly smartContractWalletChains: readonly string[];
  /** Where attachments go; `undefined` where the deployment stores none. */
  readonly attachments: { readonly baseUrl: string; readonly maxUploadBytes: number; readonly retentionSeconds: number } | undefined;
  readonly handles: { readonly minNameLength: number };
}
