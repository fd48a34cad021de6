//! The chapter's nominal texts: a four-character prefix and 32 bytes in canonical unpadded base64url.

use conclave_harness::nominal_identifier;
use conclave_harness::randomness::{Randomness, random_array};

nominal_identifier! {
    /// A conversation, derived from its members' ids alone.
    pub struct ConversationId("cnv_", 32);

    /// A membership, derived from its descriptor.
    pub struct MembershipHash("mbr_", 32);

    /// One post of one author: 32 random bytes.
    pub struct PostId("pst_", 32);

    /// A post intent.
    pub struct PostIntentHash("pit_", 32);

    /// An anchor body.
    pub struct AnchorHash("anc_", 32);

    /// An action core.
    pub struct ActionHash("ach_", 32);

    /// A record core.
    pub struct RecordHash("rch_", 32);

    /// One pending delivery: 32 random bytes, opaque to the host.
    pub struct DeliveryToken("dlv_", 32);
}

impl PostId {
    /// A new post's id.
    pub fn mint(randomness: &mut (impl Randomness + ?Sized)) -> Self {
        Self::from_bytes(random_array(randomness))
    }
}

impl DeliveryToken {
    /// A new delivery's token.
    pub fn mint(randomness: &mut (impl Randomness + ?Sized)) -> Self {
        Self::from_bytes(random_array(randomness))
    }
}
