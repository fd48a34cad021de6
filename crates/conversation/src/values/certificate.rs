//! The three certificates: the canonical form of a map from signers to signed statements.

use super::closed::closed_value;
use super::{ActionHash, AnchorHash, EvidenceMessages, RecordHash};

closed_value! {
    /// Signatures on one action.
    pub struct ActionCertificate (ActionCertificateKind = "action_certificate") {
        /// The action.
        pub action_hash: ActionHash,
        /// `ActionSignatureStatement`s, ascending by signer.
        pub signatures: EvidenceMessages,
    }
}

closed_value! {
    /// Votes for one record's durability.
    pub struct DurabilityCertificate (DurabilityCertificateKind = "durability_certificate") {
        /// The record.
        pub record_hash: RecordHash,
        /// `DurabilityVoteStatement`s, ascending by signer.
        pub votes: EvidenceMessages,
    }
}

closed_value! {
    /// Votes for one re-anchor.
    pub struct ReanchorCertificate (ReanchorCertificateKind = "reanchor_certificate") {
        /// The hash of the re-anchor body.
        pub anchor_hash: AnchorHash,
        /// `ReanchorVoteStatement`s, ascending by signer.
        pub votes: EvidenceMessages,
    }
}
