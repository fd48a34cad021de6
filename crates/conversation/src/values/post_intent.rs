//! What an author wants to say, once: the immutable post intent.

use conclave_harness::identifiers::AgentId;

use super::closed::closed_value;
use super::{Content, ConversationId, MembershipHash, PostId};

closed_value! {
    /// An author's post before it has a place in a history ("Post intents, anchors, and action cores").
    pub struct PostIntent (PostIntentKind = "post_intent") {
        /// The conversation the post belongs to.
        pub conversation_id: ConversationId,
        /// The membership the author addressed.
        pub membership_hash: MembershipHash,
        /// Who posts.
        pub author_agent_id: AgentId,
        /// Unique for the author.
        pub post_id: PostId,
        /// What is said.
        pub content: Content,
    }
}
