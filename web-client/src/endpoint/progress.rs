//! Where each post is, as an onlooker sees it. Pure: it watches what the engine commits and says, and decides nothing.

use conclave_conversation::address::{agent_address, canonical_address};
use conclave_conversation::engine::Stage;
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{
    EvidenceKind, EvidenceRow, PostIntentRow, ProposalLockRow, StagedRecordRow,
};
use conclave_conversation::store::{Snapshot, Transition};
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
    /// What is under way in a store that is opened.
    pub(crate) fn open(local: AgentId, rows: &Snapshot) -> Self {
        let mut tracker = ProgressTracker {
            local,
            posts: ShortMap::default(),
        };
        // Rows that do not decode are the engine's to refuse; here they are only not shown.
        let intents = rows.rows::<PostIntentRow>().unwrap_or_default();
        for row in intents.iter().filter(|row| row.completed_record_hash.is_none()) {
            tracker.see_intent(row);
        }
        let evidence = rows.rows::<EvidenceRow>().unwrap_or_default();
        let staged = rows.rows::<StagedRecordRow>().unwrap_or_default();
        let certified: Vec<_> = intents
            .iter()
            .filter_map(|row| row.completed_record_hash.as_deref())
            .collect();
        for lock in rows.rows::<ProposalLockRow>().unwrap_or_default() {
            let record = staged
                .iter()
                .find(|record| record.action_hash == lock.action_hash);
            let is_certified = rows
                .rows::<conclave_conversation::store::rows::CertifiedRecordRow>()
                .unwrap_or_default()
                .iter()
                .any(|row| record.is_some_and(|record| record.record_hash == row.record_hash));
            if is_certified || record.is_some_and(|record| certified.contains(&record.record_hash.as_str())) {
                continue;
            }
            let Some(key) = tracker.see_lock(&lock) else {
                continue;
            };
            let signers = |kind: EvidenceKind, subject: &str| {
                let of_subject = evidence
                    .iter()
                    .filter(move |row| row.evidence_kind == kind && row.subject_id == subject);
                of_subject
                    .filter_map(|row| row.evidence_key.parse().ok())
                    .collect::<Vec<AgentId>>()
            };
            if let Some(post) = tracker.posts.get_mut(&key) {
                post.signed_by = signers(EvidenceKind::Action, &lock.action_hash);
                if let Some(record) = record {
                    post.stage = PostStage::Stored;
                    post.stored_by = signers(EvidenceKind::Durability, &record.record_hash);
                }
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
        self.see(&intent, false)
    }

    fn see_lock(&mut self, row: &ProposalLockRow) -> Option<PostKey> {
        let action = ActionCore::decode(row.canonical_action_core.as_bytes()).ok()?;
        let key = self.see(action.post_intent(), matches!(action, ActionCore::Genesis(_)))?;
        let tracked = self.posts.get_mut(&key)?;
        tracked.stage = tracked.stage.max(PostStage::Proposed);
        Some(key)
    }

    fn see(&mut self, intent: &PostIntent, is_genesis: bool) -> Option<PostKey> {
        let key = (intent.conversation_id, intent.author_agent_id, intent.post_id);
        if self.posts.get(&key).is_none() {
            let tracked = Tracked {
                content: intent.content.clone(),
                is_genesis: false,
                stage: PostStage::Recorded,
                signed_by: Vec::new(),
                stored_by: Vec::new(),
            };
            self.posts.insert(key, tracked);
        }
        self.posts.get_mut(&key)?.is_genesis |= is_genesis;
        Some(key)
    }
}

fn add(agents: &mut Vec<AgentId>, agent: Option<AgentId>) {
    if let Some(agent) = agent
        && !agents.contains(&agent)
    {
        agents.push(agent);
    }
}
