//! What waits for the engine, and what it is told when the engine can say nothing more. Pure.

use conclave_conversation::engine::{Fatal, RequestId, SendError};
use conclave_conversation::values::DeliveryToken;
use futures_channel::oneshot;

use crate::failure::{Failure, Operation, corrupt};
use crate::short_map::ShortMap;

/// How a send ended.
pub(super) type SendResult = Result<(), Failure>;

/// A send that was not answered yet.
pub(super) struct PendingSend {
    /// Who waits.
    pub(super) answer: oneshot::Sender<SendResult>,
    /// Its post is durable.
    pub(super) is_bound: bool,
}

/// What waits for an answer or an end.
#[derive(Default)]
pub(super) struct Pending {
    /// Sends, by the engine's name for them.
    pub(super) sends: ShortMap<RequestId, PendingSend>,
    /// In the order they were asked for, which is the order they are answered in.
    pub(super) acknowledgments: Vec<(DeliveryToken, oneshot::Sender<Result<(), Failure>>)>,
}

impl Pending {
    /// The endpoint has ended, with this failure if there was one.
    pub(super) fn answer_everyone(self, failure: Option<&Failure>) {
        let because = |answer: Failure| match failure {
            Some(failure) => answer.because(failure.clone()),
            None => answer,
        };
        for (_, send) in self.sends.into_entries() {
            let answer = if send.is_bound {
                let words = "the endpoint ended before the post was certified; it goes on when the endpoint is opened again";
                because(Failure::new(Operation::Send, "delivery-pending", words))
            } else {
                unrecorded(failure)
            };
            let _ = send.answer.send(Err(answer));
        }
        for (_, answer) in self.acknowledgments {
            let words = "the endpoint ended before the acknowledgment was stored";
            let _ = answer.send(Err(because(Failure::new(
                Operation::Acknowledge,
                "persistence-failed",
                words,
            ))));
        }
    }
}

/// A send that left nothing behind, because the endpoint had ended, with this failure if there was one.
pub(super) fn unrecorded(failure: Option<&Failure>) -> Failure {
    let refused = |code, words| Failure::new(Operation::Send, code, words);
    match failure {
        Some(failure) => refused(
            "persistence-failed",
            "the endpoint failed before the post was recorded",
        )
        .because(failure.clone()),
        None => refused("closed", "the endpoint was closed before the post was recorded"),
    }
}

/// The reason a host is given for a refused send.
pub(super) fn send_failure(error: &SendError) -> Failure {
    let failure = |code| Failure::new(Operation::Send, code, error.to_string());
    match error {
        SendError::NetworkUnavailable => failure("network-unavailable").retryable(),
        // Not to be repeated: it would be another post.
        SendError::DeliveryPending { .. } => failure("delivery-pending"),
        SendError::TooManyUnfinished => failure("certification-unavailable").retryable(),
        SendError::PostDiffers { .. } => failure("idempotency-conflict"),
        SendError::NotAMember
        | SendError::MembershipDiffers
        | SendError::NotSealable
        | SendError::Stopped(_) => failure("certification-unavailable"),
    }
}

/// Why an engine that stopped ends its endpoint.
pub(super) fn fatal(reason: &Fatal) -> Failure {
    match reason {
        Fatal::OwnValue(_) => corrupt(reason.to_string()),
        Fatal::RouterContract { .. } => {
            Failure::new(Operation::Listen, "transport-failed", reason.to_string())
        }
    }
}
