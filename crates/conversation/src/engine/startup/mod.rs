//! Whether a store may be trusted, and the engine it gives (`harness-client.md` 3.5).
//!
//! Everything stored is verified before anything is done with it. A row that does not verify refuses the start; nothing is
//! repaired, skipped or deleted.

mod completions;
mod transport;

use std::collections::VecDeque;

use conclave_harness::{AgentId, UnverifiedSignature};

use self::completions::{Completions, posts_by_conversation};
use self::transport::{load_cursors, load_deliveries, load_numbers, load_outbox, load_watched};

pub use self::transport::admit_outbox;
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
    ChainWalk, Foundations, Trust, column, corrupt, held, load_record, require, required, surplus,
};
use crate::engine::stored_evidence::{StoredEvidence, load_reanchor_votes};
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
    /// Opens an engine over everything a store holds: [`Startup`] in one go.
    ///
    /// # Errors
    /// [`OpenError`], as [`Startup::begin`] and [`Startup::advance`] say.
    pub fn open(local: Local, rows: &Snapshot, context: Context<'_>) -> Result<(Engine, Step), OpenError> {
        let mut startup = Startup::begin(local, rows)?;
        while !startup.advance()? {}
        startup.finish(context)
    }
}

/// The verification of a store in steps of one certified record, so that a page can do something else in between.
///
/// Whoever drives it reads the clock; nothing here does. Dropping it leaves no trace.
pub struct Startup<'a> {
    rows: &'a Snapshot,
    local: Local,
    memory: EvidenceMemory,
    identity: IdentityBindingRow,
    posts: OrderedMap<String, Vec<PostIntentRow>>,
    unloaded: std::vec::IntoIter<ConversationId>,
    loading: Option<Loading>,
    conversations: OrderedMap<ConversationId, Conversation>,
    unresumed: OrderedMap<ConversationId, Resume>,
    verified: u64,
    total: u64,
}

impl<'a> Startup<'a> {
    /// Judges what can be judged at once: whose store it is, what waits to be sent, and that every row belongs to something.
    ///
    /// # Errors
    /// [`OpenError`] when the key is not the card's, the store is another agent's, a pending envelope was signed under a
    /// version that is no longer live, or a row belongs to no conversation.
    pub fn begin(local: Local, rows: &'a Snapshot) -> Result<Self, OpenError> {
        if local.key.public_key() != local.card.public_key() {
            return Err(OpenError::Identity("the key is not the card's"));
        }
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
        admit_outbox(rows, &local.live)?;
        let ids = held(rows)?;
        require_every_row_held(rows, &ids)?;
        Ok(Startup {
            rows,
            // What is stored is met once: a memory of it would be work and help nobody.
            memory: EvidenceMemory::new(0),
            identity,
            posts: posts_by_conversation(rows)?,
            unloaded: ids.into_iter(),
            loading: None,
            conversations: OrderedMap::new(),
            unresumed: OrderedMap::new(),
            verified: 0,
            total: rows.count_below(Table::CertifiedRecords, &Key::new::<u64>([])) as u64,
            local,
        })
    }

    /// How many certified records are verified, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.verified, self.total)
    }

    /// Decodes one more certified record ahead of [`advance`](Self::advance), and returns the signatures on it, so that the
    /// platform can verify them. Those nobody speaks for are verified in their turn.
    ///
    /// None at the end of a conversation, and beyond a record that cannot be decoded. The caller bounds how far it looks.
    pub fn look_ahead(&mut self) -> Option<Vec<UnverifiedSignature>> {
        let loading = self.loading.as_mut()?;
        loading.walk.look_ahead(&loading.foundations, self.rows)
    }

    /// Verifies one more certified record, or the rest of one conversation. Says whether everything is verified.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`] for the first row that disagrees with what it holds or does not verify.
    pub fn advance(&mut self) -> Result<bool, OpenError> {
        let mut trust = Trust {
            registry: &self.local.registry,
            history: &self.local.history,
            memory: &mut self.memory,
        };
        let mut loading = match self.loading.take() {
            Some(loading) => loading,
            None => {
                let Some(id) = self.unloaded.next() else {
                    return match self.posts.values().flatten().next() {
                        Some(row) => Err(corrupt(row, "the conversation is not held").into()),
                        None => Ok(true),
                    };
                };
                let posts = self.posts.remove(&id.to_string()).unwrap_or_default();
                Loading::begin(self.rows, id, posts, &self.local, &mut trust)?
            }
        };
        if loading.step(self.rows, &mut trust)? {
            self.verified += 1;
            self.loading = Some(loading);
        } else {
            let id = *loading.foundations.membership.conversation_id();
            let (conversation, resume) = loading.finish(self.rows, &self.local, &mut trust)?;
            self.conversations.insert(id, conversation);
            self.unresumed.insert(id, resume);
        }
        Ok(false)
    }

    /// The engine over the verified store.
    ///
    /// The step binds the store to the agent and shows every delivery the host has not acknowledged, in order. Nothing is
    /// sent or read before [`Input::RouterInstance`](super::Input::RouterInstance) says that the Router is reached.
    ///
    /// # Errors
    /// [`OpenError::Corrupt`] for what belongs to no one conversation: envelopes, deliveries, cursors. What `advance` has
    /// not verified yet is verified here first.
    pub fn finish(mut self, context: Context<'_>) -> Result<(Engine, Step), OpenError> {
        while !self.advance()? {}
        let Startup {
            rows,
            local,
            mut memory,
            identity,
            conversations,
            mut unresumed,
            ..
        } = self;
        let mut draft = Draft::new(context);
        draft.commit(Transition::BindIdentity(BindIdentity { identity }));
        let outbox = load_outbox(rows, &local, &conversations, &mut unresumed)?;
        let trust = Trust {
            registry: &local.registry,
            history: &local.history,
            memory: &mut memory,
        };
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
            memory: EvidenceMemory::default(),
            local,
        };
        let engine = Engine {
            shared,
            conversations,
            watched,
            cursors: load_cursors(rows)?,
            waiting: VecDeque::new(),
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

/// One conversation, verified as far as its chain was walked.
struct Loading {
    foundations: Foundations,
    walk: ChainWalk,
    completions: Completions,
    conversation: Conversation,
    certified: usize,
}

impl Loading {
    fn begin(
        rows: &Snapshot,
        id: ConversationId,
        posts: Vec<PostIntentRow>,
        local: &Local,
        trust: &mut Trust<'_>,
    ) -> Result<Self, Corruption> {
        let foundations = Foundations::load(rows, &id, trust)?;
        let membership = foundations.membership.clone();
        Ok(Loading {
            walk: ChainWalk::begin(&foundations, rows)?,
            completions: Completions::load(rows, posts, &membership, local)?,
            conversation: Conversation::founded(membership, foundations.anchors[0].anchor.clone()),
            certified: 0,
            foundations,
        })
    }

    /// Verifies the next certified record and what it finishes. Says whether there was one.
    fn step(&mut self, rows: &Snapshot, trust: &mut Trust<'_>) -> Result<bool, Corruption> {
        let Some((_, record)) = self.walk.step(&self.foundations, rows, trust)? else {
            return Ok(false);
        };
        self.certified += 1;
        require_locked(rows, record.record())?;
        self.completions.take(&record, &self.foundations.membership)?;
        let (record, signatures, votes) = record.into_parts();
        let action_hash = *record.action_hash();
        let fold = Fold {
            signatures,
            votes,
            ..Fold::new(record)
        };
        self.conversation.folds.insert(action_hash, fold);
        self.conversation.advance_head(action_hash);
        Ok(true)
    }

    /// Verifies what the conversation holds beside its chain.
    fn finish(
        self,
        rows: &Snapshot,
        local: &Local,
        trust: &mut Trust<'_>,
    ) -> Result<(Conversation, Resume), Corruption> {
        let Loading {
            foundations,
            walk,
            completions,
            mut conversation,
            certified,
        } = self;
        let end = walk.finish(&foundations)?;
        let key = Key::new([&foundations.membership.conversation_id().to_string()]);
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
    fold.signatures =
        StoredEvidence::signatures(rows, &fold.record, membership)?.verify(membership, trust)?;
    let staged_key = key.clone().with(&fold.record.hash().to_string());
    if let Some(staged) = rows.row::<StagedRecordRow>(&staged_key)? {
        load_record(&staged, membership)?;
        require(
            &staged,
            fold.action_complete(membership),
            "the action certificate is not complete",
        )?;
        fold.votes = StoredEvidence::votes(rows, &fold.record, membership)?.verify(membership, trust)?;
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
