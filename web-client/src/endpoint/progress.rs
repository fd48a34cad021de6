//! Where each post is, as an onlooker sees it. Pure: it watches what the engine commits and says, and decides nothing.

use conclave_conversation::address::{agent_address, canonical_address};
use conclave_conversation::engine::{Engine, Stage};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::Transition;
use conclave_conversation::store::rows::{PostIntentRow, ProposalLockRow};
use conclave_conversation::values::{
    ActionCore, ClosedValue as _, Content, ConversationId, PostId, PostIntent,
};
use conclave_harness::AgentId;
use serde::Serialize;

use crate::short_map::ShortMap;

/// How far a post has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PostStage {
    /// Recorded in the author's store.
    Recorded,
    /// Proposed to the members.
    Proposed,
    /// Signed by enough members, and stored here.
    Stored,
    /// Stored at enough members.
    Certified,
}

/// A post's complete picture, as it crosses to JavaScript (`PostEvent`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PostProgress {
    kind: &'static str,
    address: String,
    post_id: String,
    author: String,
    content: Content,
    stage: PostStage,
    signed_by: Vec<String>,
    stored_by: Vec<String>,
    signatures_needed: usize,
    votes_needed: usize,
}

/// Names one post.
pub(super) type PostKey = (ConversationId, AgentId, PostId);

#[derive(Clone, Debug)]
struct Tracked {
    content: Content,
    is_genesis: bool,
    stage: PostStage,
    signed_by: Vec<AgentId>,
    stored_by: Vec<AgentId>,
}

/// The posts that are under way.
#[derive(Debug)]
pub(crate) struct ProgressTracker {
    local: AgentId,
    posts: ShortMap<PostKey, Tracked>,
}

impl ProgressTracker {
    /// What is under way at an engine that was opened a moment ago.
    pub(crate) fn open(local: AgentId, engine: &Engine) -> Self {
        let mut tracker = ProgressTracker {
            local,
            posts: ShortMap::default(),
        };
        for conversation in engine.conversations() {
            let id = conversation.membership.conversation_id();
            for intent in engine.unfinished_posts(id) {
                tracker.see(intent, false);
            }
            if let Some(locked) = engine.locked_post(id) {
                let post = tracker.see(locked.intent, locked.is_genesis).1;
                post.stage = if locked.is_stored {
                    PostStage::Stored
                } else {
                    PostStage::Proposed
                };
                post.signed_by = locked.signed_by;
                post.stored_by = locked.stored_by;
            }
        }
        tracker
    }

    /// Learns contents from what is committed. Returns the posts that are new.
    pub(crate) fn see_transitions(&mut self, transitions: &[Transition]) -> Vec<PostKey> {
        transitions
            .iter()
            .filter_map(|transition| match transition {
                Transition::BindPostIntent(bind) => self.see_intent(&bind.intent),
                Transition::LockProposal(lock) => self.see_lock(&lock.lock),
                Transition::LockGenesis(lock) => self.see_lock(&lock.lock),
                Transition::SupersedeLock(supersede) => self.see_lock(&supersede.lock),
                _ => None,
            })
            .collect()
    }

    /// A post went on. Returns its key when it is one of those under way.
    pub(crate) fn see_stage(
        &mut self,
        conversation: ConversationId,
        author: AgentId,
        post: PostId,
        stage: Stage,
    ) -> Option<PostKey> {
        let key = (conversation, author, post);
        let tracked = self.posts.get_mut(&key)?;
        let (reached, signer, voter) = match stage {
            Stage::Proposed => (PostStage::Proposed, None, None),
            Stage::ActionSigned { by } => (PostStage::Proposed, Some(by), None),
            Stage::ActionComplete => (PostStage::Stored, None, None),
            Stage::Stored { by } => (PostStage::Stored, None, Some(by)),
            Stage::Certified { .. } => (PostStage::Certified, None, None),
        };
        // A proposal made again at a new head starts its signatures over.
        if matches!(stage, Stage::Proposed) && tracked.stage == PostStage::Proposed {
            tracked.signed_by.clear();
            tracked.stored_by.clear();
        }
        tracked.stage = tracked.stage.max(reached);
        add(&mut tracked.signed_by, signer);
        add(&mut tracked.stored_by, voter);
        Some(key)
    }

    /// The picture of a post. A certified one is forgotten with it.
    pub(crate) fn picture(&mut self, key: &PostKey, membership: &Membership) -> Option<PostProgress> {
        let picture = self.draw(key, membership)?;
        if picture.stage == PostStage::Certified {
            self.posts.remove(key);
        }
        Some(picture)
    }

    /// The pictures of every post under way.
    pub(crate) fn pictures<'a>(
        &self,
        membership_of: impl Fn(&ConversationId) -> Option<&'a Membership>,
    ) -> Vec<PostProgress> {
        self.posts
            .iter()
            .filter_map(|(key, _)| self.draw(key, membership_of(&key.0)?))
            .collect()
    }

    fn draw(&self, key: &PostKey, membership: &Membership) -> Option<PostProgress> {
        let (tracked, (_, author, post_id)) = (self.posts.get(key)?, key);
        let address_of = |agent: &AgentId| {
            membership
                .card(agent)
                .map(|card| agent_address(card.agent_name()))
        };
        let addresses = |agents: &[AgentId]| agents.iter().filter_map(address_of).collect();
        Some(PostProgress {
            kind: "post",
            address: canonical_address(membership, &self.local)?,
            post_id: post_id.to_string(),
            author: address_of(author)?,
            content: tracked.content.clone(),
            stage: tracked.stage,
            signed_by: addresses(&tracked.signed_by),
            stored_by: addresses(&tracked.stored_by),
            // GENESIS is signed by everyone.
            signatures_needed: if tracked.is_genesis {
                membership.len()
            } else {
                membership.quorum()
            },
            votes_needed: membership.quorum(),
        })
    }

    fn see_intent(&mut self, row: &PostIntentRow) -> Option<PostKey> {
        let intent = PostIntent::decode(row.canonical_intent.as_bytes()).ok()?;
        Some(self.see(&intent, false).0)
    }

    fn see_lock(&mut self, row: &ProposalLockRow) -> Option<PostKey> {
        let action = ActionCore::decode(row.canonical_action_core.as_bytes()).ok()?;
        let (key, post) = self.see(action.post_intent(), matches!(action, ActionCore::Genesis(_)));
        post.stage = post.stage.max(PostStage::Proposed);
        Some(key)
    }

    fn see(&mut self, intent: &PostIntent, is_genesis: bool) -> (PostKey, &mut Tracked) {
        let key = (intent.conversation_id, intent.author_agent_id, intent.post_id);
        let post = self.posts.or_insert_with(key, || Tracked {
            content: intent.content.clone(),
            is_genesis: false,
            stage: PostStage::Recorded,
            signed_by: Vec::new(),
            stored_by: Vec::new(),
        });
        post.is_genesis |= is_genesis;
        (key, post)
    }
}

fn add(agents: &mut Vec<AgentId>, agent: Option<AgentId>) {
    if let Some(agent) = agent
        && !agents.contains(&agent)
    {
        agents.push(agent);
    }
}
