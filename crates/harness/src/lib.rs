#![forbid(unsafe_code)]
//! Layer 1 of a conversation: canonical JSON, identifiers, agent cards, signed messages and sealed bodies.
//!
//! Everything here is pure: no I/O, no clock, no randomness of its own (it is handed in as [`Randomness`]). Bytes from
//! outside become an `Encoded…` value, which is parsed but proves nothing; only verification turns it into an
//! [`AgentCard`] or a [`SignedMessage`].
//!
//! | module | what it owns |
//! | - | - |
//! | [`literals`] | every spelling that another wire version may change |
//! | [`canonical_json`] | RFC 8785 out, and a decoder that refuses every other spelling |
//! | [`base64url`] | the strict text form of bytes |
//! | [`identifiers`] | nominal identifiers (`agt_…`), and the macro that declares more of them |
//! | [`agent_name`], [`issued_at`], [`wire_version`] | the other scalar values |
//! | [`key`] | Ed25519 under the strict profile, JWK, thumbprints, the X25519 keys derived from them |
//! | [`agent_card`], [`signed_message`] | the two signed artifacts, on the shared `jws` shape |
//! | [`x25519`] | key agreement |
//! | [`sealed_body`] | a body encrypted to the recipients of one message |
//! | [`registration`] | what an agent signs to register |
//! | [`randomness`] | where random bytes come from |
//! | `memo` | results of the above that a simulation need not compute twice (feature `crypto-memo`) |

pub mod agent_card;
pub mod agent_name;
pub mod base64url;
pub mod canonical_json;
mod closed_object;
pub mod identifiers;
pub mod issued_at;
mod jws;
pub mod key;
pub mod literals;
pub mod memo;
pub mod randomness;
pub mod registration;
pub mod sealed_body;
pub mod signed_message;
pub mod wire_version;
pub mod x25519;

pub use agent_card::{AgentCard, AgentCardVerificationError, EncodedAgentCard};
pub use agent_name::AgentName;
pub use identifiers::{
    AgentCardDigest, AgentId, MessageId, OperationId, PrincipalId, RouterInstanceId, SignedMessageDigest,
};
pub use issued_at::IssuedAt;
pub use key::{AgentKey, PublicJwk, PublicKey, Signature};
pub use randomness::Randomness;
pub use signed_message::{
    EncodedSignedMessage, SignedMessage, SignedMessageSigningError, SignedMessageVerificationError,
    UnverifiedSignature,
};
pub use wire_version::{HISTORY_WIRE_VERSIONS, LIVE_WIRE_VERSIONS, WIRE_VERSION, WireVersion, WireVersions};

/// What [`nominal_identifier!`] expands to needs serde under a name that holds in every crate.
#[doc(hidden)]
pub use serde as __serde;
