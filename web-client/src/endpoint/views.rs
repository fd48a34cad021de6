//! What onlookers and owners see of a running endpoint.

use conclave_conversation::address::{agent_address, canonical_address};
use conclave_conversation::engine::{ConversationStatus, RecoveryPhase, RecoveryState, Stall, WaitingFor};
use conclave_conversation::membership::Membership;
use conclave_conversation::values::ConversationId;
use conclave_harness::AgentId;
use serde_json::json;

use super::driver::Driver;
use super::progress::PostKey;

impl Driver {
    fn membership_of(&self, conversation: &ConversationId) -> Option<&Membership> {
        self.engine
            .conversations()
            .map(|view| view.membership)
            .find(|held| held.conversation_id() == conversation)
    }

    pub(super) fn show_post(&self, key: &PostKey) {
        let Some(membership) = self.membership_of(&key.0) else {
            return;
        };
        let mut tracker = self.shared.progress.borrow_mut();
        if let Some(picture) = tracker.picture(key, membership) {
            self.observer.tell_progress(&picture);
        }
        let pictures = tracker.pictures(|id| self.membership_of(id));
        *self.shared.open_posts.borrow_mut() = pictures;
    }

    pub(super) fn show_conversation(&self, id: &ConversationId, status: ConversationStatus) {
        let Some(membership) = self.membership_of(id) else {
            return;
        };
        let address = canonical_address(membership, &self.local_id);
        let (state, detail) = state(status);
        self.observer.tell_progress(&json!({
            "kind": "conversation", "address": address, "state": state, "detail": detail,
        }));
    }

    pub(super) fn show_stall(&self, id: &ConversationId, stall: Option<&Stall>) {
        self.show_waits("stall", id, stall, |membership, stall| {
            let waiting_for = match stall.waiting_for {
                WaitingFor::Signatures => "signatures",
                WaitingFor::Votes => "votes",
                WaitingFor::Answers => "answers",
                WaitingFor::ReanchorVotes => "reanchor-votes",
            };
            json!({
                "for": waiting_for, "missing": addresses(membership, &stall.members),
                "behindAnother": stall.behind_another,
            })
        });
    }

    pub(super) fn show_recovery(&self, id: &ConversationId, recovery: Option<&RecoveryState>) {
        self.show_waits("recovery", id, recovery, |membership, state| {
            let phase = match state.phase {
                RecoveryPhase::CatchUp => "catch-up",
                RecoveryPhase::EveryMember => "every-member",
                RecoveryPhase::Reanchor => "reanchor",
                RecoveryPhase::StagedSuccessor => "staged-successor",
            };
            json!({
                "phase": phase, "heard": state.heard, "needed": state.needed,
                "missing": addresses(membership, &state.missing),
                "retriesLeft": state.retries_left, "paused": state.paused,
                "detail": state.reason.to_string(),
            })
        });
    }

    /// Tells what a conversation waits for, as `picture` shows it; that it waits no longer, where there is nothing.
    fn show_waits<T>(
        &self,
        kind: &str,
        id: &ConversationId,
        waited_for: Option<T>,
        picture: impl FnOnce(&Membership, T) -> serde_json::Value,
    ) {
        let Some(membership) = self.membership_of(id) else {
            return;
        };
        let waits = waited_for.map(|waited_for| picture(membership, waited_for));
        self.observer.tell_progress(&json!({
            "kind": kind, "address": canonical_address(membership, &self.local_id), "waits": waits,
        }));
    }

    pub(super) fn conversations_json(&self) -> String {
        let conversations: Vec<_> = self
            .engine
            .conversations()
            .map(|view| {
                let names = view.membership.names().into_iter();
                let (state, detail) = state(view.status);
                json!({
                    "address": canonical_address(view.membership, &self.local_id),
                    "members": names.map(agent_address).collect::<Vec<_>>(),
                    "posts": view.records,
                    "unfinished": view.unfinished,
                    "state": state,
                    "detail": detail,
                })
            })
            .collect();
        serde_json::Value::from(conversations).to_string()
    }

    pub(super) fn locate(&self, address: &str) -> Option<&Membership> {
        self.engine
            .conversations()
            .map(|view| view.membership)
            .find(|membership| canonical_address(membership, &self.local_id).as_deref() == Some(address))
    }
}

fn addresses(membership: &Membership, members: &[AgentId]) -> Vec<String> {
    let cards = members.iter().filter_map(|member| membership.card(member));
    cards.map(|card| agent_address(card.agent_name())).collect()
}

/// A conversation's status in the package's words, and why it is so.
fn state(status: ConversationStatus) -> (&'static str, Option<String>) {
    match status {
        ConversationStatus::Recovered => ("ready", None),
        ConversationStatus::Recovering { reason } => ("unavailable", Some(reason.to_string())),
    }
}
