//! The Router: reached, changed, answering; and the timers that wait for it.

use conclave_harness::{MessageId, RouterInstanceId};

use super::draft::Draft;
use super::effect::{Effect, RecoveryReason};
use super::input::{Feed, SendOutcome, TimerId};
use super::outbox::Drained;
use super::run::{Engine, Resume};

impl Engine {
    /// The transport reached the Router, or learned that it is another instance.
    pub(super) fn attach(&mut self, instance: RouterInstanceId, draft: &mut Draft<'_>) {
        let before = self.shared.instance.replace(instance);
        if before == Some(instance) {
            self.shared.outbox.wake(draft);
            for conversation in self.conversations.values_mut() {
                conversation.rearm(&mut self.shared, draft);
            }
            return;
        }
        for (conversation_id, conversation) in &mut self.conversations {
            let anchored = conversation.anchored_instance();
            let cursor = self.cursors.get(&Feed::Conversation(*conversation_id));
            let read_elsewhere = cursor.is_some_and(|cursor| cursor.router_instance_id != instance);
            let reason = if anchored != instance {
                let current = instance;
                Some(RecoveryReason::RouterInstanceChanged { anchored, current })
            } else {
                (before.is_some() || read_elsewhere).then_some(RecoveryReason::HistoryMissing)
            };
            if let Some(reason) = reason {
                let resume = self.unresumed.remove(conversation_id);
                conversation.begin_run(reason, resume, &mut self.shared, draft);
            }
            conversation.show_status(draft);
        }
        self.watch_all(draft);
        if before.is_none() {
            self.resume(draft);
        }
        for request in std::mem::take(&mut self.waiting) {
            draft.effect(Effect::CancelTimer {
                id: TimerId::Attach(request.request_id),
            });
            self.bind(request, instance, draft);
        }
    }

    /// Asks for every feed that is to be read.
    pub(super) fn watch_all(&mut self, draft: &mut Draft<'_>) {
        let held = self.conversations.keys().chain(self.watched.keys());
        let feeds = held.copied().map(Feed::Conversation);
        for feed in std::iter::once(Feed::Invitations).chain(feeds) {
            draft.effect(Effect::Watch {
                feed,
                after: self.read_up_to(feed),
            });
        }
    }

    /// How far a feed was read in the order of the current instance.
    pub(super) fn read_up_to(&self, feed: Feed) -> Option<u64> {
        let cursor = self.cursors.get(&feed)?;
        (Some(cursor.router_instance_id) == self.shared.instance).then_some(cursor.position)
    }

    pub(super) fn outcome(&mut self, outbound_id: MessageId, outcome: SendOutcome, draft: &mut Draft<'_>) {
        if self.shared.outbox.settle(&outbound_id) {
            return;
        }
        // An outcome of an envelope that is no longer in flight is late: a timer or a new attachment came first.
        let Some(conversation_id) = self.shared.outbox.conversation_of(&outbound_id) else {
            return;
        };
        let Some(instance) = self.shared.instance else {
            return;
        };
        let Some(conversation) = self.conversations.get(&conversation_id) else {
            return;
        };
        let drained = self
            .shared
            .outbox
            .outcome(&conversation.membership, instance, outcome, draft);
        match drained {
            Ok(Drained::GoesOn) => {}
            Ok(Drained::RanOut) => self.stop_waiting(&conversation_id, draft),
            Err(reason) => return self.shared.fail(reason),
        }
        if let SendOutcome::RouterRestarted { router_instance_id } = outcome {
            self.attach(router_instance_id, draft);
        }
    }

    /// Begins every envelope that may go out.
    pub(super) fn begin_sending(&mut self, draft: &mut Draft<'_>) {
        let Some(instance) = self.shared.instance else {
            return;
        };
        for conversation_id in self.shared.outbox.to_begin() {
            if let Some(conversation) = self.conversations.get(&conversation_id) {
                self.shared
                    .outbox
                    .begin(&conversation.membership, instance, draft);
            }
        }
    }

    pub(super) fn timer(&mut self, timer: TimerId, draft: &mut Draft<'_>) {
        match timer {
            TimerId::Attach(request_id) => self.give_up_waiting(request_id, draft),
            TimerId::Delivery(request_id) => self.give_up_delivery(request_id, draft),
            TimerId::Resend(conversation_id) => {
                if let Some(conversation) = self.conversations.get_mut(&conversation_id) {
                    conversation.resend(&mut self.shared, draft);
                }
            }
            TimerId::CatchUp(conversation_id) => {
                if let Some(conversation) = self.conversations.get_mut(&conversation_id) {
                    conversation.retry_catch_up(&mut self.shared, draft);
                }
            }
            TimerId::Stall(conversation_id) => {
                if let Some(conversation) = self.conversations.get_mut(&conversation_id) {
                    conversation.wait_lasts();
                }
            }
            TimerId::Drain(conversation_id) => {
                if let (Some(conversation), Some(instance)) =
                    (self.conversations.get(&conversation_id), self.shared.instance)
                {
                    self.shared
                        .outbox
                        .timer(&conversation.membership, instance, draft);
                }
            }
        }
    }

    /// After a restart: the copies that are owed, the own evidence of what is not certified, the unfinished posts.
    pub(super) fn resume(&mut self, draft: &mut Draft<'_>) {
        let mut unresumed = std::mem::take(&mut self.unresumed);
        for (conversation_id, conversation) in &mut self.conversations {
            let Resume { owed, pending } = unresumed.remove(conversation_id).unwrap_or_default();
            if !conversation.is_recovered() {
                continue;
            }
            for action_hash in owed {
                conversation.send_copy(action_hash, &mut self.shared, draft);
            }
            conversation.resend_evidence(&pending, &mut self.shared, draft);
            if let Some(locked) = conversation.locked {
                conversation.evaluate(locked, &mut self.shared, draft);
            }
            conversation.resume_proposal(&pending, &mut self.shared, draft);
        }
    }
}
