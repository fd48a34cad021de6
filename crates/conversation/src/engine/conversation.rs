//! What the engine holds of one conversation.

use std::collections::{BTreeMap, VecDeque};

use conclave_harness::{AgentId, RouterInstanceId};

use super::chain::Chain;
use super::effect::ConversationStatus;
use super::fold::Fold;
use super::ignored::Ignored;
use super::input::RequestId;
use super::limits::RETAINED_FOLDS_MAX;
use super::recovery::{Answering, Asked, Candidate, Run};
use super::stall::Told;
use crate::membership::Membership;
use crate::ordered::{OrderedMap, OrderedSet};
use crate::store::rows::AnchorRow;
use crate::store::rows::MembershipRow;
use crate::store::transition::Foundation;
use crate::values::{ActionHash, ClosedValue, PostId, PostIntent, PostIntentHash, RecordHash};
use crate::verification::{Position, VerifiedRouterAnchor};

use super::text::{canonical, utf8};

/// How far a feed was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) router_instance_id: RouterInstanceId,
    pub(super) position: u64,
}

/// Whether a conversation carries traffic.
#[derive(Clone, Debug)]
pub(super) enum Recovery {
    /// It does.
    Recovered,
    /// It is fenced until this run ends.
    Running(Box<Run>),
}

/// An unfinished post of the local agent.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) intent: PostIntent,
    /// Who waits for it; none after a restart.
    pub(super) request_id: Option<RequestId>,
}

/// What became of a post.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// What was asked for.
    pub(super) intent: PostIntentHash,
    /// The place of the record that carries it.
    pub(super) ordinal: u64,
}

/// The local agent's proposal that is on its way.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) action_hash: ActionHash,
    /// The signed plaintext: every resend carries exactly these bytes.
    pub(super) plaintext: Vec<u8>,
    /// Resends made.
    pub(super) resends: u32,
}

/// One held conversation.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) membership: Membership,
    /// The current anchor.
    pub(super) anchor: VerifiedRouterAnchor,
    /// The head's action; its fold is kept.
    pub(super) head: Option<ActionHash>,
    /// The place the next record takes.
    pub(super) next_ordinal: u64,
    /// The action locked at the head.
    pub(super) locked: Option<ActionHash>,
    /// The locked action and the last certified ones.
    pub(super) folds: OrderedMap<ActionHash, Fold>,
    /// The certified folds that are kept, the head last.
    retained: VecDeque<ActionHash>,
    /// Every certified post.
    pub(super) posts: BTreeMap<(AgentId, PostId), Made>,
    /// The local agent's unfinished posts, oldest first.
    pub(super) intents: VecDeque<Intent>,
    /// The open proposal of the oldest of them.
    pub(super) proposal: Option<Proposal>,
    pub(super) recovery: Recovery,
    /// The certified records and the anchors, in order.
    pub(super) chain: Chain,
    /// The candidates staged away from the current anchor.
    pub(super) candidates: Vec<Candidate>,
    /// The answers that wait for their rows, one for each member that asked.
    pub(super) answering: OrderedMap<AgentId, Answering>,
    /// What each member that asks was answered lately.
    pub(super) asked: Vec<(AgentId, Asked)>,
    /// The author of its GENESIS; none while no GENESIS is locked or certified.
    pub(super) begun_by: Option<AgentId>,
    /// Whether the local agent ever posted in it.
    pub(super) is_asked_for: bool,
    /// The record whose absence began the last run that a record began.
    pub(super) missed: Option<RecordHash>,
    /// The members whose votes made an empty conversation ask again.
    pub(super) missed_by: OrderedSet<AgentId>,
    /// What whoever watches was told last.
    pub(super) told: Told,
}

impl Conversation {
    /// A conversation that has only its foundation.
    pub(super) fn founded(membership: Membership, anchor: VerifiedRouterAnchor) -> Self {
        Conversation {
            membership,
            chain: Chain::new(anchor.clone()),
            anchor,
            head: None,
            next_ordinal: 0,
            locked: None,
            folds: OrderedMap::new(),
            retained: VecDeque::new(),
            posts: BTreeMap::new(),
            intents: VecDeque::new(),
            proposal: None,
            recovery: Recovery::Recovered,
            candidates: Vec::new(),
            answering: OrderedMap::new(),
            asked: Vec::new(),
            begun_by: None,
            is_asked_for: false,
            missed: None,
            missed_by: OrderedSet::new(),
            told: Told::default(),
        }
    }

    /// Where the next record belongs.
    pub(super) fn position(&self) -> Position {
        Position {
            record_hash: self.head_record().copied(),
            anchor_hash: *self.anchor.hash(),
        }
    }

    /// The head's record.
    pub(super) fn head_record(&self) -> Option<&RecordHash> {
        self.head_fold().map(|fold| fold.record.hash())
    }

    /// The head's fold.
    pub(super) fn head_fold(&self) -> Option<&Fold> {
        self.folds.get(self.head.as_ref()?)
    }

    /// The locked action's fold.
    pub(super) fn locked_fold(&self) -> Option<&Fold> {
        self.folds.get(self.locked.as_ref()?)
    }

    /// The fold of a record.
    pub(super) fn action_of(&self, record: &RecordHash) -> Option<ActionHash> {
        self.folds
            .iter()
            .find(|(_, fold)| fold.record.hash() == record)
            .map(|(action, _)| *action)
    }

    /// The Router instance of the current anchor.
    pub(super) fn anchored_instance(&self) -> RouterInstanceId {
        *self.anchor.value().to_body().router_instance_id()
    }

    pub(super) fn is_recovered(&self) -> bool {
        matches!(self.recovery, Recovery::Recovered)
    }

    pub(super) fn status(&self) -> ConversationStatus {
        match &self.recovery {
            Recovery::Recovered => ConversationStatus::Recovered,
            Recovery::Running(run) => ConversationStatus::Recovering { reason: run.reason },
        }
    }

    /// A post is made once: neither again nor with another content. One in the local agent's name is one it bound.
    pub(super) fn require_new_post(&self, intent: &PostIntent, local: &AgentId) -> Result<(), Ignored> {
        if self.posts.contains_key(&(intent.author_agent_id, intent.post_id)) {
            return Err(Ignored::PostExists);
        }
        let bound = || self.intents.iter().any(|held| held.intent == *intent);
        if intent.author_agent_id == *local && !bound() {
            return Err(Ignored::NotOurPost);
        }
        Ok(())
    }

    /// Moves the head to a fold that was just certified, and forgets the folds that fall out of memory.
    pub(super) fn advance_head(&mut self, action_hash: ActionHash) {
        let Some(fold) = self.folds.get_mut(&action_hash) else {
            return;
        };
        fold.staged = true;
        fold.ordinal = Some(self.next_ordinal);
        let (position, record_hash) = (fold.record.position(), *fold.record.hash());
        self.chain.push_record(position, record_hash, action_hash);
        let intent = fold.record.core().post_intent();
        if self.next_ordinal == 0 {
            self.begun_by = Some(intent.author_agent_id);
        }
        let made = Made {
            intent: intent.hash(),
            ordinal: self.next_ordinal,
        };
        self.posts.insert((intent.author_agent_id, intent.post_id), made);
        self.next_ordinal += 1;
        self.head = Some(action_hash);
        self.locked = None;
        self.retained.push_back(action_hash);
        if self.retained.len() > RETAINED_FOLDS_MAX
            && let Some(oldest) = self.retained.pop_front()
        {
            self.folds.remove(&oldest);
        }
    }
}

/// The rows of a conversation's foundation.
pub(super) fn foundation(membership: &Membership, anchor: &VerifiedRouterAnchor) -> Foundation {
    let conversation_id = membership.conversation_id().to_string();
    Foundation {
        membership: MembershipRow {
            conversation_id: conversation_id.clone(),
            membership_hash: membership.hash().to_string(),
            canonical_membership: canonical(membership.descriptor()),
        },
        anchor: AnchorRow {
            conversation_id,
            anchor_hash: anchor.hash().to_string(),
            position: 0,
            previous_anchor_hash: None,
            selected_record_hash: None,
            canonical_anchor: utf8(anchor.value().encode()),
        },
    }
}

/// Whether messages can be sealed to every member. A card may hold a key that is no point of the curve.
pub(super) fn sealable(membership: &Membership) -> bool {
    membership
        .cards()
        .iter()
        .all(|card| card.public_key().x25519().is_some())
}
