//! Records with their evidence.

use super::closed::closed_value;
use super::{ActionCertificate, DurabilityCertificate, RecordCore, RecordHash, RouterAnchor};

closed_value! {
    /// A record whose action enough members signed. Its version is its core's.
    pub struct ActionCertifiedRecord (ActionCertifiedRecordKind = "action_certified_record") {
        /// The hash of the core.
        pub record_hash: RecordHash,
        /// The record.
        pub record_core: RecordCore,
        /// The anchor the core names by hash.
        pub router_anchor: RouterAnchor,
        /// The signatures.
        pub action_certificate: ActionCertificate,
    }
}

closed_value! {
    /// A record that enough members stored. Its version is its core's.
    pub struct CertifiedRecord (CertifiedRecordKind = "certified_record") {
        /// The record with its signatures.
        pub action_certified_record: ActionCertifiedRecord,
        /// The votes.
        pub durability_certificate: DurabilityCertificate,
    }
}
