//! One page of a history: planned from the chain in memory, read from the store, verified as start-up verifies it.
//!
//! A page costs what it holds and not what the conversation holds: its rows alone are read, its statements alone verified,
//! and those verified lately not again. It is read within a snapshot, which is no more than the place where it ends: a
//! chain only grows, so what is certified later stands behind that place.

use conclave_harness::AgentId;

use crate::engine::Engine;
use crate::engine::chain::{Chain, Next};
use crate::engine::conversation::{Conversation, foundation};
use crate::engine::error::Corruption;
use crate::engine::stored::{Trust, corrupt, require, required};
use crate::membership::Membership;
use crate::store::rows::{ConversationStateRow, MembershipRow};
use crate::store::{Key, Read, Row, Snapshot};
use crate::values::{CatchUpItem, ConversationId, PostId, RecordHash};
use crate::verification::Position;

/// Most statements of members that one page makes verify: a page of a large group holds fewer items, and never none.
pub const HISTORY_PAGE_STATEMENTS_MAX: usize = 1_024;

/// A place in a chain: how many records stand before it, and which of the anchors is current there, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryPlace {
    /// Records before it.
    pub records: u64,
    /// Re-anchors before it.
    pub reanchors: u64,
}

/// A history as it was when it was first asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySnapshot {
    /// Where it ends.
    pub end: HistoryPlace,
    /// The last record before the end; none in an empty conversation. It tells the snapshot of one history from another's.
    pub head: Option<RecordHash>,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryStart {
    /// At a place, as a page before it said.
    Place(HistoryPlace),
    /// After so many records.
    AfterRecords(u64),
    /// After this record.
    After(RecordHash),
    /// At this post; of two authors' posts with one id at the first, unless the author is named.
    Post(PostId, Option<AgentId>),
}

/// Why there is no such page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// Nothing of the conversation is held.
    #[error("no conversation is held at this address")]
    UnknownConversation,
    /// The conversation has no such record.
    #[error("the conversation has no such record")]
    UnknownRecord,
    /// The conversation has no such post, or it is not certified yet.
    #[error("the conversation has no such certified post")]
    UnknownPost,
    /// The snapshot is not one of this history.
    #[error("the continuation is not of this history")]
    ForeignSnapshot,
}

/// What a page will hold, and what must be read for it in one consistent state of the store.
#[derive(Clone, Debug)]
pub struct HistoryPlan {
    conversation_id: ConversationId,
    snapshot: HistorySnapshot,
    start: HistoryPlace,
    next: HistoryPlace,
    items: Vec<Next>,
    reads: Vec<Read>,
}

impl HistoryPlan {
    /// What must be read.
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }
}

/// Some verified items of a history, in order.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    /// The members.
    pub membership: Membership,
    /// The snapshot the page belongs to.
    pub snapshot: HistorySnapshot,
    /// Where it begins.
    pub start: HistoryPlace,
    /// Where the next page begins; at the snapshot's end when there is none.
    pub next: HistoryPlace,
    /// Certified records and completed re-anchors.
    pub items: Vec<CatchUpItem>,
}

impl Engine {
    /// Plans a page of at most `items_max` items from `start` on, within a snapshot; a new one without it.
    ///
    /// # Errors
    /// [`HistoryError`] says what there is not.
    pub fn plan_history(
        &self,
        conversation_id: &ConversationId,
        snapshot: Option<HistorySnapshot>,
        start: HistoryStart,
        items_max: usize,
    ) -> Result<HistoryPlan, HistoryError> {
        let conversation = self
            .conversations
            .get(conversation_id)
            .ok_or(HistoryError::UnknownConversation)?;
        let chain = &conversation.chain;
        let (records, anchors) = (conversation.next_ordinal, chain.anchors().len() as u64);
        let now = HistoryPlace {
            records,
            reanchors: anchors - 1,
        };
        let snapshot = snapshot.unwrap_or(HistorySnapshot {
            end: now,
            head: head_before(chain, now),
        });
        let is_of_it = snapshot.end.records <= now.records
            && snapshot.end.reanchors <= now.reanchors
            && head_before(chain, snapshot.end) == snapshot.head;
        if !is_of_it {
            return Err(HistoryError::ForeignSnapshot);
        }
        let start = conversation.history_place(start)?;
        let items_max = items_of_a_page(items_max, conversation.membership.len());
        let (mut items, mut next) = (Vec::new(), start);
        while items.len() < items_max
            && let Some(item) = next_at(chain, next)
        {
            match item {
                Next::Record(ordinal) if ordinal < snapshot.end.records => next.records += 1,
                Next::Anchor(place) if place as u64 <= snapshot.end.reanchors => next.reanchors += 1,
                Next::Record(_) | Next::Anchor(_) => break,
            }
            items.push(item);
        }
        let key = Key::new([&conversation_id.to_string()]);
        let mut reads = vec![
            Read::Row(MembershipRow::TABLE, key.clone()),
            Read::Row(ConversationStateRow::TABLE, key),
        ];
        reads.extend(items.iter().flat_map(|item| conversation.item_reads(*item)));
        Ok(HistoryPlan {
            conversation_id: *conversation_id,
            snapshot,
            start,
            next,
            items,
            reads,
        })
    }

    /// The page of a plan, from the answers to its [reads](HistoryPlan::reads); more rows do no harm.
    ///
    /// # Errors
    /// [`Corruption`] for the first row that disagrees with what it holds or does not verify.
    pub fn read_history(&mut self, plan: HistoryPlan, rows: &Snapshot) -> Result<HistoryPage, Corruption> {
        let (conversations, shared) = (&self.conversations, &mut self.shared);
        let key = Key::new([&plan.conversation_id.to_string()]);
        let stored: MembershipRow = required(rows, &key)?;
        let state: ConversationStateRow = required(rows, &key)?;
        let held = conversations.get(&plan.conversation_id);
        let held = held.filter(|held| foundation(&held.membership, &held.anchor).membership == stored);
        // The bytes are those of the descriptor that was verified when the conversation was taken.
        let Some(conversation) = held else {
            return Err(corrupt(&stored, "it is not the membership the conversation has"));
        };
        require(
            &state,
            state.membership_hash == stored.membership_hash,
            "the membership is another",
        )?;
        require(
            &state,
            u64::try_from(state.head_ordinal + 1).is_ok_and(|records| records >= plan.snapshot.end.records),
            "the head lies before records that are certified",
        )?;
        let mut trust = Trust {
            registry: &shared.local.registry,
            history: &shared.local.history,
            memory: &mut shared.memory,
        };
        let mut items = Vec::new();
        for item in &plan.items {
            items.extend(conversation.load_item(rows, *item, &mut trust)?);
        }
        Ok(HistoryPage {
            membership: conversation.membership.clone(),
            snapshot: plan.snapshot,
            start: plan.start,
            next: plan.next,
            items,
        })
    }
}

impl Conversation {
    fn history_place(&self, start: HistoryStart) -> Result<HistoryPlace, HistoryError> {
        let chain = &self.chain;
        let after = |records: u64| {
            let anchor_of = |ordinal| chain.link(ordinal).and_then(|link| chain.place_of_anchor(link));
            let reanchors = records.checked_sub(1).map_or(Some(0), anchor_of);
            HistoryPlace {
                records,
                // Behind the end there is nothing, under whichever anchor.
                reanchors: reanchors.unwrap_or_default(),
            }
        };
        match start {
            HistoryStart::Place(place) => Ok(place),
            HistoryStart::AfterRecords(records) => Ok(after(records)),
            HistoryStart::After(record) => {
                let ordinal = chain.ordinal(&record).ok_or(HistoryError::UnknownRecord)?;
                Ok(after(ordinal + 1))
            }
            HistoryStart::Post(post, author) => {
                let authors = self.membership.agent_ids().into_iter();
                let ordinal = authors
                    .filter(|member| author.is_none_or(|author| author == *member))
                    .filter_map(|member| Some(self.posts.get(&(member, post))?.ordinal))
                    .min()
                    .ok_or(HistoryError::UnknownPost)?;
                let link = chain.link(ordinal).ok_or(HistoryError::UnknownPost)?;
                Ok(HistoryPlace {
                    records: ordinal,
                    reanchors: chain.place_of_anchor(link).ok_or(HistoryError::UnknownPost)?,
                })
            }
        }
    }
}

/// What follows a place.
fn next_at(chain: &Chain, place: HistoryPlace) -> Option<Next> {
    let Some(last) = place.records.checked_sub(1) else {
        return chain.next(None);
    };
    let anchor = chain.anchors().get(usize::try_from(place.reanchors).ok()?)?;
    chain.next(Some(&Position {
        record_hash: Some(chain.link(last)?.record_hash),
        anchor_hash: *anchor.hash(),
    }))
}

fn head_before(chain: &Chain, place: HistoryPlace) -> Option<RecordHash> {
    let last = place.records.checked_sub(1)?;
    chain.link(last).map(|link| link.record_hash)
}

/// How many of the items that are asked for fit into a page among so many members: each carries two statements of each.
fn items_of_a_page(items_max: usize, members: usize) -> usize {
    items_max.min(HISTORY_PAGE_STATEMENTS_MAX / (2 * members)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{MEMBERS_MAX, MEMBERS_MIN};

    #[test]
    fn a_page_is_bounded_by_its_statements_and_never_empty() {
        assert_eq!(items_of_a_page(10, MEMBERS_MIN), 10);
        assert_eq!(items_of_a_page(usize::MAX, MEMBERS_MIN), 256);
        assert_eq!(items_of_a_page(usize::MAX, MEMBERS_MAX), 16);
        assert_eq!(items_of_a_page(0, MEMBERS_MAX), 1);
    }
}
