//! Until when the feeds were read: kept in the store, and what follows when it was too long ago.

use std::rc::Rc;

use conclave_conversation::engine::{Input, Step};
use conclave_conversation::store::Key;
use conclave_conversation::values::ConversationId;

use super::driver::{Driver, Message};
use crate::platform::timer;
use crate::transport::FeedEnvelope;

/// The store's name for it.
pub(super) const ATTENDANCE: &str = "attendance";

impl Driver {
    /// The Router was reached. Whoever was away for longer than envelopes are kept may have missed some in every conversation.
    pub(super) fn attend(&mut self, step: &mut Step) {
        let now_ms = timer::now_ms();
        if self.attendance.may_have_missed(now_ms) {
            let held: Vec<ConversationId> = self
                .engine
                .conversations()
                .map(|view| *view.membership.conversation_id())
                .collect();
            for conversation_id in held {
                let gap = self.handle(Input::FeedGap { conversation_id });
                step.transitions.extend(gap.transitions);
                step.effects.extend(gap.effects);
            }
        }
        self.follow();
    }

    /// The feeds are read up to now.
    pub(super) fn follow(&mut self) {
        if !self.attendance.follow(timer::now_ms()) {
            return;
        }
        let (store, inbox) = (Rc::clone(&self.store), self.inbox.clone());
        let saved = vec![(Key::new([ATTENDANCE]), self.attendance.encode())];
        self.scope.spawn(Box::pin(async move {
            if let Err(failure) = store.put_local(saved).await {
                inbox.send(Message::Ended(failure.into()));
            }
        }));
    }

    /// Learns from an envelope how long envelopes are kept.
    pub(super) fn learn_retention(&mut self, envelope: &FeedEnvelope) {
        let (server_ns, expiry_ns) = envelope.kept;
        self.attendance.see_envelope(server_ns, expiry_ns);
    }
}
