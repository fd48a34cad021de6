//! Looks up who sent an invitation, before the engine sees it. Which and how many is the queue's to say; a Registry that does
//! not answer delays invitations only.

use std::pin::pin;
use std::rc::Rc;

use conclave_conversation::binding::{InvitationQueue, WelcomeTopic};
use conclave_conversation::engine::{Feed, Input, InvitationDelivered};
use conclave_harness::{AgentCard, AgentId, EncodedSignedMessage, PublicKey, RouterInstanceId};
use futures_util::future::{Either, select};

use super::registry::{Registry, RegistryError};
use crate::failure::Failure;
use crate::platform::{chance, queue, scope::Scope, timer};
use crate::transport::{BackOff, FeedCommand, FeedEnvelope};

/// What became of an envelope of the feed of invitations.
pub(super) enum Looked {
    /// It is for the engine.
    Up(Input),
    /// The store failed.
    Failed(Failure),
}

/// One sender, looked up.
type Answer = (AgentId, Result<Option<AgentCard>, Failure>);

/// Runs until the sender of envelopes is dropped.
pub(super) async fn run_invitations(
    registry: Rc<Registry>,
    local_key: PublicKey,
    feed: queue::Sender<FeedCommand>,
    mut envelopes: queue::Receiver<FeedEnvelope>,
    tell: impl Fn(Looked),
) {
    let mut waiting = InvitationQueue::default();
    let (answer, mut answers) = queue::queue::<Answer>();
    let lookups = Scope::default();
    let mut place = Place::default();
    loop {
        while let Some(sender) = waiting.next_lookup() {
            let (registry, answer) = (Rc::clone(&registry), answer.clone());
            lookups.spawn(Box::pin(async move {
                answer.send((sender, card_of(&registry, sender).await));
            }));
        }
        while let Some((delivered, sender_card)) = waiting.next_ready() {
            let delivered = InvitationDelivered {
                sender_card,
                ..delivered
            };
            tell(Looked::Up(Input::InvitationDelivered(Box::new(delivered))));
        }
        if place.is_behind && waiting.is_empty() {
            place.read_again();
            feed.send(FeedCommand::Unwatch {
                feed: Feed::Invitations,
            });
            feed.send(FeedCommand::Watch {
                feed: Feed::Invitations,
                topic: WelcomeTopic::of(&local_key).as_bytes().to_vec(),
                after: place.taken,
            });
        }
        match select(pin!(envelopes.next()), pin!(answers.next())).await {
            Either::Left((None, _)) => return,
            Either::Left((Some(envelope), _)) if !place.sees(&envelope) => {}
            Either::Left((Some(envelope), _)) => {
                // What does not parse moves the feed and does nothing else.
                let message = envelope
                    .payload
                    .and_then(|bytes| EncodedSignedMessage::from_canonical_bytes(&bytes).ok());
                let sender = message.as_ref().map(EncodedSignedMessage::sender);
                let (position, reading) = (envelope.position, envelope.reading);
                let delivered = InvitationDelivered {
                    message,
                    sender_card: None,
                    position,
                    router_instance_id: envelope.router_instance_id,
                };
                match waiting.offer(delivered, sender, timer::now_ms()) {
                    Ok(()) => (place.taken, place.reading) = (position, reading),
                    Err(_) => place.is_behind = true,
                }
            }
            Either::Right((Some((sender, Ok(card))), _)) => waiting.answered(sender, card, timer::now_ms()),
            Either::Right((Some((_, Err(failure))), _)) => return tell(Looked::Failed(failure)),
            Either::Right((None, _)) => return,
        }
    }
}

/// How far invitations were taken.
#[derive(Debug, Default)]
struct Place {
    /// The Router instance whose order it counts in.
    instance: Option<RouterInstanceId>,
    /// The last position taken.
    taken: u64,
    /// The reading that brought it.
    reading: u64,
    /// An invitation behind it was refused.
    is_behind: bool,
    /// Readings up to this one bring nothing more that is wanted.
    given_up: u64,
}

impl Place {
    /// Whether an envelope may be taken. Behind what was refused none is: it would be read past.
    fn sees(&mut self, envelope: &FeedEnvelope) -> bool {
        // Another instance has an order of its own.
        if self.instance.replace(envelope.router_instance_id) != Some(envelope.router_instance_id) {
            self.taken = 0;
        }
        !self.is_behind && envelope.reading > self.given_up
    }

    fn read_again(&mut self) {
        self.is_behind = false;
        self.given_up = self.reading;
    }
}

/// A sender's card, asked for until the Registry answers.
async fn card_of(registry: &Registry, sender: AgentId) -> Result<Option<AgentCard>, Failure> {
    let mut back_off = BackOff::default();
    loop {
        match registry.card_of(sender).await {
            Ok(card) => return Ok(card),
            Err(RegistryError::Store(failure)) => return Err(failure.into()),
            // A card that cannot be trusted is none.
            Err(RegistryError::Untrusted(_)) => return Ok(None),
            Err(RegistryError::Unreachable(error)) if !error.is_transient() => return Ok(None),
            Err(RegistryError::Unreachable(_)) => {
                timer::Delay::new(back_off.next_delay(chance::unit_interval())).await
            }
        }
    }
}
