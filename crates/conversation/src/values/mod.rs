//! Every closed value of the conversation chapter: exact members, canonical bytes, hashes.
//!
//! A value here is well formed and nothing more: its members are exactly those the chapter lists, its identifiers are
//! canonical and its content is within bounds. Whether it is *true* (signed, bound to a membership, in its place in a
//! history) is decided by [`crate::verification`] and [`crate::certificates`], which build other types.
//!
//! May depend on `conclave-harness` only. One concept a file.

mod action;
mod anchor;
mod bounds;
mod catch_up;
mod certificate;
mod certified_record;
mod closed;
mod completed_reanchor;
mod content;
mod evidence_messages;
mod hashing;
mod identifiers;
mod invitation;
mod membership_descriptor;
mod packet;
mod post_intent;
mod record;
mod statement;
pub(crate) mod undecided;
mod versions;

pub use action::{ActionCore, GenesisActionCore, GenesisActionKind, PostActionCore, PostActionKind};
pub use anchor::{AnchorBody, GenesisAnchorBody, GenesisAnchorBodyKind, ReanchorBody, ReanchorBodyKind};
pub use bounds::*;
pub use catch_up::{
    CatchUpIncomplete, CatchUpIncompleteKind, CatchUpItem, CatchUpPage, CatchUpPageKind, CatchUpRequest,
    CatchUpRequestKind,
};
pub use certificate::{
    ActionCertificate, ActionCertificateKind, DurabilityCertificate, DurabilityCertificateKind,
    ReanchorCertificate, ReanchorCertificateKind,
};
pub use certified_record::{
    ActionCertifiedRecord, ActionCertifiedRecordKind, CertifiedRecord, CertifiedRecordKind,
};
pub use closed::{ClosedValue, Kinded, Null, ValueError};
pub use completed_reanchor::{CompletedReanchor, CompletedReanchorKind, RouterAnchor};
pub use content::{Content, ContentError, ContentPart};
pub use evidence_messages::EvidenceMessages;
pub use identifiers::{
    ActionHash, AnchorHash, ConversationId, DeliveryToken, MembershipHash, PostId, PostIntentHash, RecordHash,
};
pub use invitation::{ConversationInvitation, ConversationInvitationKind};
pub use membership_descriptor::{
    ConversationIdentityInput, ConversationIdentityKind, MembershipDescriptor, MembershipDescriptorKind,
};
pub use packet::{ActionProposal, ActionProposalKind, DirectPacket, Plaintext, PlaintextError};
pub use post_intent::{PostIntent, PostIntentKind};
pub use record::{GenesisRecordCore, PostRecordCore, RecordCore, RecordCoreKind};
pub use statement::{
    ActionSignatureKind, ActionSignatureStatement, CatchUpAttestationKind, CatchUpAttestationStatement,
    CatchUpItemHash, CatchUpItemKind, DurabilityVoteKind, DurabilityVoteStatement, EvidenceStatement,
    ReanchorVoteKind, ReanchorVoteStatement,
};
pub use versions::Versions;

pub(crate) use closed::{kind_literal, kind_union};
