//! Whether a store may be trusted, and the engine it gives (`harness-client.md` 3.5).
//!
//! Everything stored is verified before anything is done with it. A row that does not verify refuses the start; nothing is
//! repaired, skipped or deleted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use conclave_harness::{AgentCard, AgentId, EncodedSignedMessage, MessageId, sealed_body};

use super::Local;
use super::conversation::{Conversation, Cursor, Intent};
use super::draft::Draft;
use super::effect::{Delivery, Effect, Step};
use super::error::{Corruption, OpenError};
use super::fold::{Fold, lock_row};
use super::input::{Context, Feed};
use super::invitation::Watched;
use super::outbox::{Envelope, Outbox};
use super::run::{Engine, Resume};
use super::shared::{DeliveryEntry, Numbers, Shared};
use super::stored::{
    Foundations, Trust, column, corrupt, held, load_membership, load_record, load_signatures, load_votes,
    require, require_held, surplus,
};
use super::text::canonical;
use crate::certificates::EvidenceMemory;
use crate::membership::Membership;
use crate::projection::Message;
use crate::store::rows::{
    AnchorRow, CertifiedRecordRow, ConversationStateRow, Disposition, EvidenceRow, IdentityBindingRow,
    ObligationRow, OutboundRow, PendingDeliveryRow, PostIntentRow, ProposalLockRow, ReanchorRow, Sequence,
    SequenceRow, StagedRecordRow, TransportCursorRow, WatchedConversationRow,
};
use crate::store::transition::BindIdentity;
use crate::store::{Key, Row, Snapshot, Table, Transition};
use crate::values::{ActionCore, ActionHash, ClosedValue, ConversationId, DeliveryToken, PostIntent};
use crate::verification::{VerifiedAction, VerifiedCertifiedRecord, VerifiedRecordCore};

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
            canonical_agent_card: super::text::utf8(local.card.encoded().to_canonical_bytes()),
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
        let mut conversations = BTreeMap::new();
        let mut unresumed = BTreeMap::new();
        for id in ids {
            let (conversation, resume) = load_conversation(rows, &id, &local, &mut trust)?;
            conversations.insert(id, conversation);
            unresumed.insert(id, resume);
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

/// No row may belong to a conversation that is not held.
fn require_every_row_held(rows: &Snapshot, ids: &[ConversationId]) -> Result<(), Corruption> {
    require_held::<ConversationStateRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<AnchorRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<PostIntentRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<ProposalLockRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<StagedRecordRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<EvidenceRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<CertifiedRecordRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<PendingDeliveryRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<OutboundRow>(rows, ids, |row| &row.conversation_id)?;
    require_held::<ObligationRow>(rows, ids, |row| &row.conversation_id)?;
    // Candidates come with recovery. A store that holds one was written by a release that this one must not vote beside.
    match rows.rows::<ReanchorRow>()?.first() {
        Some(row) => Err(corrupt(row, "re-anchoring is not built yet")),
        None => Ok(()),
    }
}

/// Verifies everything of one conversation.
fn load_conversation(
    rows: &Snapshot,
    id: &ConversationId,
    local: &Local,
    trust: &mut Trust<'_>,
) -> Result<(Conversation, Resume), Corruption> {
    let key = Key::new([&id.to_string()]);
    let foundations = Foundations::load(rows, id, trust)?;
    let mut conversation =
        Conversation::founded(foundations.membership.clone(), foundations.current().clone());
    let mut certified: BTreeMap<String, String> = BTreeMap::new();
    let mut completions = Completions::load(rows, id, local)?;
    let end = foundations.walk(rows, trust, &mut |_, record| {
        certified.insert(
            record.record().action_hash().to_string(),
            record.record().hash().to_string(),
        );
        completions.take(record, &foundations.membership)?;
        let mut fold = Fold::new(record.record().clone());
        fold.signatures = record.signatures().clone();
        fold.votes = record.votes().clone();
        let action_hash = *record.record().action_hash();
        conversation.folds.insert(action_hash, fold);
        conversation.advance_head(action_hash);
        Ok(())
    })?;
    let live = load_lock(rows, &key, &conversation, &certified, trust)?;
    let staged_count = rows.below::<StagedRecordRow>(&key)?.len() as u64;
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
    if rows.below::<EvidenceRow>(&key)?.len() != end.evidence + live_evidence {
        return Err(surplus(
            Table::ProtocolEvidence,
            &key,
            "a statement is about nothing that is held",
        ));
    }
    if let Some(fold) = live {
        let action_hash = *fold.record.action_hash();
        conversation.locked = Some(action_hash);
        conversation.folds.insert(action_hash, fold);
    }
    conversation.intents = completions.unfinished()?;
    let owed = load_obligations(rows, &key, &conversation)?;
    Ok((
        conversation,
        Resume {
            owed,
            pending: BTreeSet::new(),
        },
    ))
}

/// Verifies the locks, and returns the fold of the one at the head. Every certified action holds the lock at its
/// predecessor; at most one more is locked, at the head.
fn load_lock(
    rows: &Snapshot,
    key: &Key,
    conversation: &Conversation,
    certified: &BTreeMap<String, String>,
    trust: &mut Trust<'_>,
) -> Result<Option<Fold>, Corruption> {
    let membership = &conversation.membership;
    let mut live = None;
    let mut of_certified = 0;
    for row in rows.below::<ProposalLockRow>(key)? {
        let core = ActionCore::decode_over(trust.history, row.canonical_action_core.as_bytes())
            .map_err(|error| corrupt(&row, error))?;
        let action = VerifiedAction::verify(core, membership).map_err(|error| corrupt(&row, error))?;
        let record = VerifiedRecordCore::of_action(action);
        require(
            &row,
            lock_row(&record) == row,
            "a column disagrees with the action",
        )?;
        if certified.get(&row.action_hash) == Some(&record.hash().to_string()) {
            of_certified += 1;
            continue;
        }
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
        live = Some(fold);
    }
    if of_certified != certified.len() {
        return Err(surplus(
            Table::ProposalLocks,
            key,
            "a certified action is not locked",
        ));
    }
    Ok(live)
}

/// The local posts and the deliveries of a conversation, each taken once by the record that finishes it.
struct Completions {
    local_id: AgentId,
    intents: BTreeMap<String, PostIntentRow>,
    deliveries: BTreeMap<String, PendingDeliveryRow>,
    unfinished: Vec<(u64, PostIntent)>,
}

impl Completions {
    fn load(rows: &Snapshot, id: &ConversationId, local: &Local) -> Result<Self, Corruption> {
        let conversation = id.to_string();
        let local_id = local.card.agent_id();
        let (mut intents, mut unfinished) = (BTreeMap::new(), Vec::new());
        for row in rows
            .rows::<PostIntentRow>()?
            .into_iter()
            .filter(|row| row.conversation_id == conversation)
        {
            let intent = PostIntent::decode_over(&local.history, row.canonical_intent.as_bytes())
                .map_err(|error| corrupt(&row, error))?;
            let agrees = row.author_agent_id == intent.author_agent_id.to_string()
                && row.post_id == intent.post_id.to_string()
                && row.conversation_id == intent.conversation_id.to_string()
                && row.membership_hash == intent.membership_hash.to_string()
                && intent.author_agent_id == local_id;
            require(&row, agrees, "a column disagrees with the intent")?;
            match &row.completed_record_hash {
                None => unfinished.push((row.intent_sequence, intent)),
                Some(record_hash) => {
                    intents.insert(record_hash.clone(), row);
                }
            }
        }
        unfinished.sort_by_key(|(sequence, _)| *sequence);
        let deliveries = rows
            .below::<PendingDeliveryRow>(&Key::new([&conversation]))?
            .into_iter()
            .map(|row| (row.record_hash.clone(), row))
            .collect();
        Ok(Completions {
            local_id,
            intents,
            deliveries,
            unfinished,
        })
    }

    /// A certified record finishes exactly one of the two, and the row says what the record says.
    fn take(
        &mut self,
        certified: &VerifiedCertifiedRecord,
        membership: &Membership,
    ) -> Result<(), Corruption> {
        let record_hash = certified.record().hash().to_string();
        let intent = certified.record_core().post_intent();
        if intent.author_agent_id == self.local_id {
            let Some(row) = self.intents.remove(&record_hash) else {
                let key = Key::new([&intent.author_agent_id.to_string(), &intent.post_id.to_string()]);
                return Err(surplus(
                    Table::PostIntents,
                    &key,
                    "a certified local post is not finished",
                ));
            };
            return require(
                &row,
                row.canonical_intent == canonical(intent),
                "the record carries another post",
            );
        }
        let Some(row) = self.deliveries.remove(&record_hash) else {
            let key = Key::new([&intent.conversation_id.to_string(), &record_hash]);
            return Err(surplus(
                Table::PendingDeliveries,
                &key,
                "a certified remote post has no delivery",
            ));
        };
        let message = Message::for_recipient(certified, membership, &self.local_id);
        let agrees = message.is_some_and(|message| canonical(&message) == row.canonical_message)
            && row.recipient_agent_id == self.local_id.to_string();
        require(&row, agrees, "the delivery is not the record's projection")
    }

    /// What is left is unfinished; a row that claims to be finished by no record is corrupt.
    fn unfinished(self) -> Result<VecDeque<Intent>, Corruption> {
        if let Some(row) = self.intents.values().next() {
            return Err(corrupt(row, "the record that finished it is not certified"));
        }
        if let Some(row) = self.deliveries.values().next() {
            return Err(corrupt(row, "its record is not certified"));
        }
        Ok(self
            .unfinished
            .into_iter()
            .map(|(_, intent)| Intent {
                intent,
                request_id: None,
            })
            .collect())
    }
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

/// Verifies the envelopes on their way, and notes what they carry.
fn load_outbox(
    rows: &Snapshot,
    local: &Local,
    conversations: &BTreeMap<ConversationId, Conversation>,
    unresumed: &mut BTreeMap<ConversationId, Resume>,
) -> Result<Outbox, OpenError> {
    let mut outbox = Outbox::default();
    for row in rows.rows::<OutboundRow>()? {
        if row.disposition != Disposition::Pending {
            continue;
        }
        let conversation_id: ConversationId = column(&row, &row.conversation_id)?;
        let conversation = conversations
            .get(&conversation_id)
            .ok_or_else(|| corrupt(&row, "the conversation is not held"))?;
        let message = EncodedSignedMessage::from_canonical_bytes(row.canonical_signed_message.as_bytes())
            .map_err(|error| corrupt(&row, error))?;
        require(
            &row,
            row.wire_version == message.version().to_string(),
            "the version is not the envelope's",
        )?;
        if !local.live.contains(message.version()) {
            return Err(OpenError::OutboxTooOld {
                outbound_id: row.outbound_id,
                version: row.wire_version,
            });
        }
        let outbound_id: MessageId = column(&row, &row.outbound_id)?;
        require(
            &row,
            outbound_id == message.message_id(),
            "the id is not the envelope's",
        )?;
        let recipients = conversation.membership.agent_ids();
        require(
            &row,
            message.recipients() == recipients,
            "the recipients are not the members",
        )?;
        let verified = message
            .verify(&local.card, &local.live)
            .map_err(|error| corrupt(&row, error))?;
        let plaintext =
            sealed_body::open(&local.card, &local.key, &verified).map_err(|error| corrupt(&row, error))?;
        verify_invitations(&row, &conversation.membership, local)?;
        unresumed
            .entry(conversation_id)
            .or_default()
            .pending
            .insert(plaintext);
        outbox.push(
            conversation_id,
            Envelope {
                sequence: row.outbound_sequence,
                outbound_id,
                digest: message.digest(),
                message,
                invitations: row.invitations,
                attempted: row.attempted,
            },
        );
    }
    Ok(outbox)
}

/// Every invitation is ours, and for exactly the member it names.
fn verify_invitations(row: &OutboundRow, membership: &Membership, local: &Local) -> Result<(), Corruption> {
    for invitation in &row.invitations {
        let recipient: AgentId = column(row, &invitation.recipient_agent_id)?;
        let message =
            EncodedSignedMessage::from_canonical_bytes(invitation.canonical_signed_message.as_bytes())
                .map_err(|error| corrupt(row, error))?;
        let named = membership.card(&recipient).map(AgentCard::agent_id) == Some(recipient);
        require(
            row,
            named && message.recipients() == [recipient],
            "an invitation is for another agent",
        )?;
        message
            .verify(&local.card, &local.live)
            .map_err(|error| corrupt(row, error))?;
    }
    Ok(())
}

fn load_watched(rows: &Snapshot, trust: &Trust<'_>) -> Result<BTreeMap<ConversationId, Watched>, Corruption> {
    let mut watched = BTreeMap::new();
    for row in rows.rows::<WatchedConversationRow>()? {
        let id: ConversationId = column(&row, &row.conversation_id)?;
        let held = rows.bytes(Table::Memberships, &row.key()).is_some();
        require(&row, !held, "a held conversation is not watched")?;
        let membership = load_membership(&row, &row.canonical_membership, &id, trust)?;
        let inviter = column(&row, &row.inviter_agent_id)?;
        watched.insert(
            id,
            Watched {
                membership,
                inviter,
                sequence: row.watch_sequence,
            },
        );
    }
    Ok(watched)
}

/// Every delivery by token; those not acknowledged are shown again, in the order of their commits.
fn load_deliveries(
    rows: &Snapshot,
    draft: &mut Draft<'_>,
) -> Result<BTreeMap<DeliveryToken, DeliveryEntry>, Corruption> {
    let mut deliveries = BTreeMap::new();
    let mut pending = Vec::new();
    for row in rows.rows::<PendingDeliveryRow>()? {
        let delivery = Delivery {
            delivery_token: column(&row, &row.delivery_token)?,
            delivery_sequence: row.delivery_sequence,
            conversation_id: column(&row, &row.conversation_id)?,
            record_hash: column(&row, &row.record_hash)?,
            canonical_message: row.canonical_message.clone(),
        };
        let entry = DeliveryEntry {
            conversation_id: delivery.conversation_id,
            record_hash: delivery.record_hash,
            acknowledged: row.acknowledged,
        };
        let token = delivery.delivery_token;
        require(
            &row,
            deliveries.insert(token, entry).is_none(),
            "the token is another delivery's",
        )?;
        if !row.acknowledged {
            pending.push(delivery);
        }
    }
    pending.sort_by_key(|delivery| delivery.delivery_sequence);
    draft
        .step
        .effects
        .extend(pending.into_iter().map(Effect::Deliver));
    Ok(deliveries)
}

fn load_cursors(rows: &Snapshot) -> Result<BTreeMap<Feed, Cursor>, Corruption> {
    let mut cursors = BTreeMap::new();
    for row in rows.rows::<TransportCursorRow>()? {
        let feed = match row.feed.as_str() {
            TransportCursorRow::INVITATIONS => Feed::Invitations,
            conversation => Feed::Conversation(column(&row, conversation)?),
        };
        let router_instance_id = column(&row, &row.router_instance_id)?;
        cursors.insert(
            feed,
            Cursor {
                router_instance_id,
                position: row.position,
            },
        );
    }
    Ok(cursors)
}

fn load_numbers(rows: &Snapshot) -> Result<Numbers, Corruption> {
    let next = |sequence: Sequence| -> Result<u64, Corruption> {
        Ok(rows
            .row::<SequenceRow>(&sequence.key())?
            .map_or(0, |row| row.next))
    };
    Ok(Numbers {
        intent: next(Sequence::Intent)?,
        delivery: next(Sequence::Delivery)?,
        outbound: next(Sequence::Outbound)?,
        obligation: next(Sequence::Obligation)?,
        watch: next(Sequence::Watch)?,
    })
}
