//! Whether a store may be trusted, and the engine it gives (`harness-client.md` 3.5).
//!
//! Everything stored is verified before anything is done with it. A row that does not verify refuses the start; nothing is
//! repaired, skipped or deleted.

mod completions;
mod transport;

use std::collections::VecDeque;

use conclave_harness::AgentId;

use self::completions::{Completions, posts_by_conversation};
use self::transport::{load_cursors, load_deliveries, load_numbers, load_outbox, load_watched};
use crate::certificates::EvidenceMemory;
use crate::engine::Local;
use crate::engine::conversation::Conversation;
use crate::engine::draft::Draft;
use crate::engine::effect::Step;
use crate::engine::error::{Corruption, OpenError};
use crate::engine::fold::{Fold, lock_row};
use crate::engine::input::Context;
use crate::engine::recovery::{Candidate, reanchor_row};
use crate::engine::run::{Engine, Resume};
use crate::engine::shared::Shared;
use crate::engine::stored::{
    Foundations, Trust, column, corrupt, held, load_record, require, required, surplus,
};
use crate::engine::stored_evidence::{load_reanchor_votes, load_signatures, load_votes};
use crate::engine::text::utf8;
use crate::ordered::{OrderedMap, OrderedSet};
use crate::store::rows::{
    ConversationStateRow, IdentityBindingRow, ObligationRow, PostIntentRow, ProposalLockRow, ReanchorRow,
    StagedRecordRow,
};
use crate::store::transition::BindIdentity;
use crate::store::{Key, KeyPart, Row, Snapshot, Table, Transition};
use crate::values::{ActionCore, ActionHash, ClosedValue, ConversationId, PostId, ReanchorBody};
use crate::verification::{VerifiedAction, VerifiedRecordCore};

impl Engine {
    /// Opens an engine over everything a store holds.
    ///
    /// The step binds the store to the agent and shows every delivery the host has not acknowledged, in order. Nothing is
    /// sent or read before [`Input::RouterInstance`](super::Input::RouterInstance) says that the Router is reached.
    ///
    /// # Errors
    /// [`OpenError`] when the key is not the card's, the store is another agent's, a row does not verify, or a pending
    /// envelope was signed under a version that is no longer live.
    pub fn open(local: Local, rows: &Snapshot, context: Context<'_>) -> Result<(Engine, Step), OpenError> {
        if local.key.public_key() != local.card.public_key() {
            return Err(OpenError::Identity("the key is not the card's"));
        }
        let mut draft = Draft::new(context);
        let identity = IdentityBindingRow {
            agent_id: local.card.agent_id().to_string(),
            canonical_agent_card: utf8(local.card.encoded().to_canonical_bytes()),
        };
        match rows.row::<IdentityBindingRow>(&IdentityBindingRow::singleton_key())? {
            Some(bound) if bound != identity => {
                return Err(OpenError::Identity("the store belongs to another agent or card"));
            }
            Some(_) => {}
            None if !rows.rows::<ConversationStateRow>()?.is_empty() => {
                return Err(OpenError::Identity("the store holds conversations of no agent"));
            }
            None => {}
        }
        draft.commit(Transition::BindIdentity(BindIdentity { identity }));

        let mut memory = EvidenceMemory::default();
        let mut trust = Trust {
            registry: &local.registry,
            history: &local.history,
            memory: &mut memory,
        };
        let ids = held(rows)?;
        require_every_row_held(rows, &ids)?;
        let mut conversations = OrderedMap::new();
        let mut unresumed = OrderedMap::new();
        let mut posts = posts_by_conversation(rows)?;
        for id in ids {
            let own = posts.remove(&id.to_string()).unwrap_or_default();
            let (conversation, resume) = load_conversation(rows, &id, own, &local, &mut trust)?;
            conversations.insert(id, conversation);
            unresumed.insert(id, resume);
        }
        if let Some(row) = posts.values().flatten().next() {
            return Err(corrupt(row, "the conversation is not held").into());
        }
        let outbox = load_outbox(rows, &local, &conversations, &mut unresumed)?;
        let watched = load_watched(rows, &trust)?;
        let deliveries = load_deliveries(rows, &mut draft)?;
        let shared = Shared {
            local_id: local.card.agent_id(),
            instance: None,
            numbers: load_numbers(rows)?,
            outbox,
            deliveries,
            recovered: Vec::new(),
            fatal: None,
            memory,
            local,
        };
        let cursors = load_cursors(rows)?;
        let waiting = VecDeque::new();
        let engine = Engine {
            shared,
            conversations,
            watched,
            cursors,
            waiting,
            unresumed,
        };
        Ok((engine, draft.step))
    }
}

/// The tables whose keys begin with a conversation that must be held.
const OF_HELD_CONVERSATIONS: [Table; 9] = [
    Table::ConversationState,
    Table::Anchors,
    Table::ProposalLocks,
    Table::StagedRecords,
    Table::ProtocolEvidence,
    Table::CertifiedRecords,
    Table::PendingDeliveries,
    Table::DisseminationObligations,
    Table::Reanchors,
];

/// No row may belong to a conversation that is not held.
fn require_every_row_held(rows: &Snapshot, ids: &[ConversationId]) -> Result<(), Corruption> {
    let held: OrderedSet<KeyPart> = ids.iter().map(|id| KeyPart::Text(id.to_string())).collect();
    for table in OF_HELD_CONVERSATIONS {
        for key in rows.keys(table) {
            if key.parts().first().is_none_or(|first| !held.contains(first)) {
                return Err(surplus(table, key, "the conversation is not held"));
            }
        }
    }
    Ok(())
}

/// Verifies everything of one conversation.
fn load_conversation(
    rows: &Snapshot,
    id: &ConversationId,
    posts: Vec<PostIntentRow>,
    local: &Local,
    trust: &mut Trust<'_>,
) -> Result<(Conversation, Resume), Corruption> {
    let key = Key::new([&id.to_string()]);
    let foundations = Foundations::load(rows, id, trust)?;
    let mut conversation = Conversation::founded(
        foundations.membership.clone(),
        foundations.anchors[0].anchor.clone(),
    );
    let mut certified = 0;
    let mut completions = Completions::load(rows, posts, &foundations.membership, local)?;
    let end = foundations.walk(rows, trust, &mut |_, record| {
        certified += 1;
        require_locked(rows, record.record())?;
        completions.take(&record, &foundations.membership)?;
        let (record, signatures, votes) = record.into_parts();
        let action_hash = *record.action_hash();
        let fold = Fold {
            signatures,
            votes,
            ..Fold::new(record)
        };
        conversation.folds.insert(action_hash, fold);
        conversation.advance_head(action_hash);
        Ok(())
    })?;
    for later in &foundations.anchors[1..] {
        conversation.chain.push_anchor(later.anchor.clone());
    }
    conversation.anchor = foundations.current().clone();
    conversation.candidates = load_candidates(rows, &key, &conversation, trust)?;
    let live = load_lock(rows, &key, &conversation, certified, trust)?;
    let staged_count = rows.count_below(Table::StagedRecords, &key) as u64;
    let live_staged = u64::from(live.as_ref().is_some_and(|fold| fold.staged));
    if staged_count != end.records + live_staged {
        return Err(surplus(
            Table::StagedRecords,
            &key,
            "a staged record is neither certified nor locked",
        ));
    }
    let live_evidence = live
        .as_ref()
        .map_or(0, |fold| fold.signatures.len() + fold.votes.len());
    let reanchor_votes: usize = conversation.candidates.iter().map(|held| held.votes.len()).sum();
    if rows.count_below(Table::ProtocolEvidence, &key) != end.evidence + live_evidence + reanchor_votes {
        return Err(surplus(
            Table::ProtocolEvidence,
            &key,
            "a statement is about nothing that is held",
        ));
    }
    if let Some(fold) = live {
        if conversation.head.is_none() {
            conversation.begun_by = Some(*fold.record.author());
        }
        let action_hash = *fold.record.action_hash();
        conversation.locked = Some(action_hash);
        conversation.folds.insert(action_hash, fold);
    }
    conversation.intents = completions.unfinished()?;
    let local_id = local.card.agent_id();
    let is_own = |post: &(AgentId, PostId)| post.0 == local_id;
    conversation.is_asked_for = !conversation.intents.is_empty() || conversation.posts.keys().any(is_own);
    let owed = load_obligations(rows, &key, &conversation)?;
    Ok((
        conversation,
        Resume {
            owed,
            pending: OrderedSet::new(),
        },
    ))
}

/// Verifies the re-anchor candidates: each leaves the current anchor, at a record of the chain, for an instance of its own.
fn load_candidates(
    rows: &Snapshot,
    key: &Key,
    conversation: &Conversation,
    trust: &mut Trust<'_>,
) -> Result<Vec<Candidate>, Corruption> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for row in rows.below::<ReanchorRow>(key)? {
        let body = ReanchorBody::decode_over(trust.history, row.canonical_body.as_bytes())
            .map_err(|error| corrupt(&row, error))?;
        require(
            &row,
            reanchor_row(&body, None) == row,
            "a column disagrees with the body",
        )?;
        let of_it = body.membership_hash == *conversation.membership.hash()
            && body.previous_anchor_hash == *conversation.anchor.hash()
            && conversation.chain.holds(&body.selected_record_hash);
        require(&row, of_it, "it does not leave the conversation's anchor")?;
        let claimed = candidates
            .iter()
            .any(|held| held.body.router_instance_id == body.router_instance_id);
        require(&row, !claimed, "another candidate is for the same instance")?;
        let mut candidate = Candidate::new(body);
        candidate.votes = load_reanchor_votes(rows, &candidate.body.hash(), &conversation.membership, trust)?;
        candidates.push(candidate);
    }
    Ok(candidates)
}

/// A certified action holds the lock at its predecessor.
fn require_locked(rows: &Snapshot, record: &VerifiedRecordCore) -> Result<(), Corruption> {
    let expected = lock_row(record);
    let held: ProposalLockRow = required(rows, &expected.key())?;
    require(&held, held == expected, "another action is certified there")
}

/// Verifies the lock at the head, and returns its fold. Beside it there are only those of the `certified` records.
fn load_lock(
    rows: &Snapshot,
    key: &Key,
    conversation: &Conversation,
    certified: usize,
    trust: &mut Trust<'_>,
) -> Result<Option<Fold>, Corruption> {
    let membership = &conversation.membership;
    let id = membership.conversation_id().to_string();
    let head = conversation.head_record().map(ToString::to_string);
    let row: Option<ProposalLockRow> = rows.row(&ProposalLockRow::key_of(&id, head.as_deref()))?;
    let locks = certified + usize::from(row.is_some());
    if rows.count_below(Table::ProposalLocks, key) != locks {
        return Err(surplus(
            Table::ProposalLocks,
            key,
            "a lock is neither at the head nor a certified action's",
        ));
    }
    let Some(row) = row else { return Ok(None) };
    let core = ActionCore::decode_over(trust.history, row.canonical_action_core.as_bytes())
        .map_err(|error| corrupt(&row, error))?;
    let action = VerifiedAction::verify(core, membership).map_err(|error| corrupt(&row, error))?;
    let record = VerifiedRecordCore::of_action(action);
    require(
        &row,
        lock_row(&record) == row,
        "a column disagrees with the action",
    )?;
    require(
        &row,
        record.position() == conversation.position(),
        "the lock is not at the head",
    )?;
    let mut fold = Fold::new(record);
    fold.signatures = load_signatures(rows, &fold.record, membership, trust)?;
    let staged_key = key.clone().with(&fold.record.hash().to_string());
    if let Some(staged) = rows.row::<StagedRecordRow>(&staged_key)? {
        load_record(&staged, membership)?;
        require(
            &staged,
            fold.action_complete(membership),
            "the action certificate is not complete",
        )?;
        fold.votes = load_votes(rows, &fold.record, membership, trust)?;
        fold.staged = true;
    }
    Ok(Some(fold))
}

/// Verifies the obligations, and returns the actions whose copy no envelope carries.
fn load_obligations(
    rows: &Snapshot,
    key: &Key,
    conversation: &Conversation,
) -> Result<Vec<ActionHash>, Corruption> {
    let mut owed = Vec::new();
    let mut obligations = rows.below::<ObligationRow>(key)?;
    obligations.sort_by_key(|row| row.obligation_sequence);
    for row in obligations {
        let staged = rows.bytes(Table::StagedRecords, &row.key()).is_some();
        require(&row, staged, "its record is not staged")?;
        if row.outbound_id.is_none() {
            let record_hash = column(&row, &row.record_hash)?;
            // A record whose fold is no longer kept was certified long ago; its copy helps nobody.
            owed.extend(conversation.action_of(&record_hash));
        }
    }
    Ok(owed)
}
