//! What onlookers and owners see of a running endpoint.

use conclave_conversation::address::{agent_address, canonical_address};
use conclave_conversation::engine::{ConversationStatus, Stall, WaitingFor};
use conclave_conversation::membership::Membership;
use conclave_conversation::values::ConversationId;
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

    pub(super) fn show_stall(&self, id: &ConversationId, stall: &Stall) {
        let Some(membership) = self.membership_of(id) else {
            return;
        };
        let waiting_for = match stall.waiting_for {
            WaitingFor::Signatures => "signatures",
            WaitingFor::Votes => "votes",
            WaitingFor::Answers => "answers",
            WaitingFor::ReanchorVotes => "reanchor-votes",
        };
        let members = stall.members.iter().filter_map(|member| membership.card(member));
        let members: Vec<_> = members.map(|card| agent_address(card.agent_name())).collect();
        self.observer.tell_progress(&json!({
            "kind": "stalled", "address": canonical_address(membership, &self.local_id),
            "waitingFor": waiting_for, "members": members, "behindAnother": stall.behind_another,
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

    pub(super) fn locate(&self, address: &str) -> Option<ConversationId> {
        self.engine
            .conversations()
            .map(|view| view.membership)
            .find(|membership| canonical_address(membership, &self.local_id).as_deref() == Some(address))
            .map(|membership| *membership.conversation_id())
    }
}

/// A conversation's status in the package's words, and why it is so.
fn state(status: ConversationStatus) -> (&'static str, Option<String>) {
    match status {
        ConversationStatus::Recovered => ("ready", None),
        ConversationStatus::Recovering { reason } => ("unavailable", Some(reason.to_string())),
    }
}
