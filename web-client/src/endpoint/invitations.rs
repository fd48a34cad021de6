//! Looks up who sent an invitation, before the engine sees it. One invitation waits for the one before, and for nothing
//! else: a Registry that does not answer delays invitations only.

use std::rc::Rc;

use conclave_conversation::engine::{Input, InvitationDelivered};
use conclave_harness::{AgentCard, EncodedSignedMessage};

use super::registry::{Registry, RegistryError};
use crate::failure::Failure;
use crate::platform::{chance, queue, timer::Delay};
use crate::transport::{BackOff, FeedEnvelope};

/// What became of an envelope of the feed of invitations.
pub(super) enum Looked {
    /// It is for the engine.
    Up(Input),
    /// The store failed.
    Failed(Failure),
}

/// Runs until the sender of envelopes is dropped.
pub(super) async fn run_invitations(
    registry: Rc<Registry>,
    mut envelopes: queue::Receiver<FeedEnvelope>,
    tell: impl Fn(Looked),
) {
    while let Some(envelope) = envelopes.next().await {
        // What does not parse moves the feed and does nothing else.
        let message = envelope
            .payload
            .and_then(|bytes| EncodedSignedMessage::from_canonical_bytes(&bytes).ok());
        let sender_card = match &message {
            Some(message) => match card_of_sender(&registry, message).await {
                Ok(card) => card,
                Err(failure) => return tell(Looked::Failed(failure)),
            },
            None => None,
        };
        tell(Looked::Up(Input::InvitationDelivered(Box::new(
            InvitationDelivered {
                message,
                sender_card,
                position: envelope.position,
                router_instance_id: envelope.router_instance_id,
            },
        ))));
    }
}

/// The sender's card, asked for until the Registry answers.
async fn card_of_sender(
    registry: &Registry,
    message: &EncodedSignedMessage,
) -> Result<Option<AgentCard>, Failure> {
    let mut back_off = BackOff::default();
    loop {
        match registry.card_of(message.sender()).await {
            Ok(card) => return Ok(card),
            Err(RegistryError::Store(failure)) => return Err(failure.into()),
            // A card that cannot be trusted is none.
            Err(RegistryError::Untrusted(_)) => return Ok(None),
            Err(RegistryError::Unreachable(error)) if !error.is_transient() => return Ok(None),
            Err(RegistryError::Unreachable(_)) => {
                Delay::new(back_off.next_delay(chance::unit_interval())).await
            }
        }
    }
}
