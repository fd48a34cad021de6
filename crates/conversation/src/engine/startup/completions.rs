//! What certified records finish: local posts and deliveries.

use std::collections::VecDeque;

use conclave_harness::AgentId;

use crate::engine::Local;
use crate::engine::conversation::Intent;
use crate::engine::error::Corruption;
use crate::engine::stored::{corrupt, require, surplus};
use crate::engine::text::canonical;
use crate::membership::Membership;
use crate::ordered::OrderedMap;
use crate::projection::Message;
use crate::store::rows::{PendingDeliveryRow, PostIntentRow};
use crate::store::{Key, Snapshot, Table};
use crate::values::{ClosedValue, PostIntent};
use crate::verification::VerifiedCertifiedRecord;

/// The local posts of each conversation.
pub(super) fn posts_by_conversation(
    rows: &Snapshot,
) -> Result<OrderedMap<String, Vec<PostIntentRow>>, Corruption> {
    let mut posts: OrderedMap<String, Vec<PostIntentRow>> = OrderedMap::new();
    for row in rows.rows::<PostIntentRow>()? {
        posts.or_default(row.conversation_id.clone()).push(row);
    }
    Ok(posts)
}

/// The local posts and the deliveries of a conversation, each taken once by the record that finishes it.
///
/// As many as the history is long, they are keyed as their rows are, so that each stands behind those before it, and what is
/// taken leaves its place: a sorted vector moves nothing then.
pub(super) struct Completions {
    local_id: AgentId,
    intents: OrderedMap<String, Option<PostIntentRow>>,
    deliveries: OrderedMap<String, Option<PendingDeliveryRow>>,
    unfinished: Vec<(u64, PostIntent)>,
}

impl Completions {
    /// `posts` are the rows of the conversation's local posts.
    pub(super) fn load(
        rows: &Snapshot,
        posts: Vec<PostIntentRow>,
        membership: &Membership,
        local: &Local,
    ) -> Result<Self, Corruption> {
        let local_id = local.card.agent_id();
        let (mut intents, mut unfinished) = (OrderedMap::new(), Vec::new());
        for row in posts {
            let intent = PostIntent::decode_over(&local.history, row.canonical_intent.as_bytes())
                .map_err(|error| corrupt(&row, error))?;
            let agrees = row.author_agent_id == intent.author_agent_id.to_string()
                && row.post_id == intent.post_id.to_string()
                && row.conversation_id == intent.conversation_id.to_string()
                && row.membership_hash == intent.membership_hash.to_string()
                && intent.membership_hash == *membership.hash()
                && intent.author_agent_id == local_id;
            require(&row, agrees, "a column disagrees with the intent")?;
            match &row.completed_record_hash {
                None => unfinished.push((row.intent_sequence, intent)),
                Some(_) => {
                    intents.insert(row.post_id.clone(), Some(row));
                }
            }
        }
        unfinished.sort_by_key(|(sequence, _)| *sequence);
        let deliveries = rows
            .below::<PendingDeliveryRow>(&Key::new([&membership.conversation_id().to_string()]))?
            .into_iter()
            .map(|row| (row.record_hash.clone(), Some(row)))
            .collect();
        Ok(Completions {
            local_id,
            intents,
            deliveries,
            unfinished,
        })
    }

    /// A certified record finishes exactly one of the two, and the row says what the record says.
    pub(super) fn take(
        &mut self,
        certified: &VerifiedCertifiedRecord,
        membership: &Membership,
    ) -> Result<(), Corruption> {
        let record_hash = certified.record().hash().to_string();
        let intent = certified.record_core().post_intent();
        if intent.author_agent_id == self.local_id {
            let held = self.intents.get_mut(&intent.post_id.to_string());
            let Some(row) = held.and_then(Option::take) else {
                let key = Key::new([&intent.author_agent_id.to_string(), &intent.post_id.to_string()]);
                return Err(surplus(
                    Table::PostIntents,
                    &key,
                    "a certified local post is not finished",
                ));
            };
            require(
                &row,
                row.completed_record_hash.as_ref() == Some(&record_hash),
                "the record that finished it is not certified",
            )?;
            return require(
                &row,
                row.canonical_intent == canonical(intent),
                "the record carries another post",
            );
        }
        let held = self.deliveries.get_mut(&record_hash);
        let Some(row) = held.and_then(Option::take) else {
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
    pub(super) fn unfinished(self) -> Result<VecDeque<Intent>, Corruption> {
        if let Some(row) = self.intents.values().flatten().next() {
            return Err(corrupt(row, "the record that finished it is not certified"));
        }
        if let Some(row) = self.deliveries.values().flatten().next() {
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
