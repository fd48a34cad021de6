//! A re-anchor with its certificate, and the anchor a record is shown with.

use super::closed::{closed_value, kind_union};
use super::{AnchorBody, AnchorHash, GenesisAnchorBody, ReanchorBody, ReanchorCertificate};

closed_value! {
    /// A re-anchor that enough members voted for. Its version is its body's.
    pub struct CompletedReanchor (CompletedReanchorKind = "completed_reanchor") {
        /// The hash of the body.
        pub anchor_hash: AnchorHash,
        /// The body.
        pub reanchor: ReanchorBody,
        /// The votes.
        pub certificate: ReanchorCertificate,
    }
}

kind_union! {
    /// The anchor a record is shown with.
    pub enum RouterAnchor {
        /// The conversation's first anchor.
        Genesis(GenesisAnchorBody),
        /// A completed re-anchor.
        Completed(CompletedReanchor),
    }
}

impl RouterAnchor {
    /// The anchor body inside.
    pub fn to_body(&self) -> AnchorBody {
        match self {
            Self::Genesis(body) => (**body).clone().into(),
            Self::Completed(completed) => completed.reanchor.clone().into(),
        }
    }
}
