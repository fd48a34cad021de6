//! Every literal whose spelling belongs to a wire version rather than to a standard.
//!
//! They stand here alone, so that a published spelling replaces them in one place. The version member is the one that
//! is known to have been renamed; the others are the spellings of 2026.1006.1 (reference section 0.1).

use crate::wire_version::WireVersion;

/// The first wire version whose version member is [`VERSION_MEMBER`].
pub const FIRST_RENAMED_VERSION: WireVersion = WireVersion::new(2026, 1021, 0);

/// The member that names the wire version, in cards, messages and every value of a conversation.
pub const VERSION_MEMBER: &str = "sharnessVersion";

/// The same member before [`FIRST_RENAMED_VERSION`].
pub const VERSION_MEMBER_BEFORE_RENAME: &str = "moltzapVersion";

/// JWS `typ` of an agent card.
pub const AGENT_CARD_TYP: &str = "application/vnd.moltzap.agent-card+jws";

/// JWS `typ` of a signed message.
pub const SIGNED_MESSAGE_TYP: &str = "application/vnd.moltzap.signed-message+jws";

/// Protected member of a sealed body: the commitment to its salted plaintext.
pub const SEALED_BODY_COMMITMENT_MEMBER: &str = "xyz.moltzap/commitment";

/// Protected member of a sealed body: the message it was sealed for.
pub const SEALED_BODY_MESSAGE_ID_MEMBER: &str = "xyz.moltzap/message-id";

/// Protected member of a sealed body: the agent that sealed it.
pub const SEALED_BODY_SENDER_MEMBER: &str = "xyz.moltzap/sender";

/// `kind` of an agent card's payload.
pub const AGENT_CARD_KIND: &str = "agentCard";

/// `kind` of a signed message's payload.
pub const SIGNED_MESSAGE_KIND: &str = "signedMessage";

/// What an agent's proof of possession is computed under, before the canonical registration request.
pub const REGISTRATION_DOMAIN: &[u8] = b"org.social-harness/edge/v1/register\0";

/// The name of the version member in a value of `version`.
pub fn version_member(version: WireVersion) -> &'static str {
    if version < FIRST_RENAMED_VERSION {
        VERSION_MEMBER_BEFORE_RENAME
    } else {
        VERSION_MEMBER
    }
}
