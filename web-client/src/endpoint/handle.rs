//! What the owner of an open endpoint holds of it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;

use conclave_conversation::address::{AddressError, Destination};
use conclave_conversation::engine::{Delivery, RequestId, SendRequest};
use conclave_conversation::store::{Read, Snapshot};
use conclave_conversation::values::{Content, ContentPart, DeliveryToken, PostId};
use conclave_harness::{AgentCard, AgentName, WireVersions, canonical_json};
use futures_channel::oneshot;
use serde::Serialize;

use super::deliveries::{AlreadyListening, Deliveries, SubscriptionId};
use super::driver::Message;
use super::pending::unrecorded;
use super::progress::{PostProgress, ProgressTracker};
use super::registry::{Registry, RegistryError};
use crate::failure::{Failure, Operation, corrupt};
use crate::platform::{queue, scope};
use crate::store::{IndexedDbStore, StoreFailure};

/// What the driver and the handle both see.
pub(super) struct Shared {
    pub(super) deliveries: RefCell<Deliveries>,
    pub(super) progress: RefCell<ProgressTracker>,
    /// The pictures of the posts under way, as of the last change.
    pub(super) open_posts: RefCell<Vec<PostProgress>>,
    is_closed: Cell<bool>,
    /// What ended the endpoint, if it did not end because it was closed.
    failure: RefCell<Option<Failure>>,
    closing: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Shared {
    pub(super) fn new(progress: ProgressTracker, open_posts: Vec<PostProgress>) -> Self {
        Shared {
            deliveries: RefCell::default(),
            progress: RefCell::new(progress),
            open_posts: RefCell::new(open_posts),
            is_closed: Cell::new(false),
            failure: RefCell::default(),
            closing: RefCell::default(),
        }
    }

    /// The endpoint has ended, with this failure if there was one.
    pub(super) fn close(&self, failure: Option<&Failure>) {
        self.is_closed.set(true);
        *self.failure.borrow_mut() = failure.cloned();
        self.deliveries.borrow_mut().close();
    }

    /// Whoever waits for the end hears of it.
    pub(super) fn tell_closing(&self) {
        for waiting in self.closing.borrow_mut().drain(..) {
            // They may have gone.
            let _ = waiting.send(());
        }
    }
}

/// An open endpoint.
pub(crate) struct Handle {
    card: AgentCard,
    registry: Rc<Registry>,
    store: Rc<IndexedDbStore>,
    shared: Rc<Shared>,
    inbox: queue::Sender<Message>,
    requests: Cell<u64>,
}

impl Handle {
    pub(super) fn new(
        card: AgentCard,
        registry: Rc<Registry>,
        store: Rc<IndexedDbStore>,
        shared: Rc<Shared>,
        inbox: queue::Sender<Message>,
    ) -> Self {
        Handle {
            card,
            registry,
            store,
            shared,
            inbox,
            requests: Cell::new(0),
        }
    }

    /// Sends a post under this id, 32 bytes in base64url; returns when it is certified. Asked again it is the same post.
    /// `is_cancelled` is asked before anything is recorded.
    pub(crate) async fn send(
        &self,
        to: &str,
        content: &str,
        post_id: PostId,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let destination =
            Destination::parse(to, self.card.agent_name()).map_err(|error| address_failure(&error))?;
        let content = parse_content(content)?;
        let mut lookups: Vec<scope::Pending<'_, Result<Option<AgentCard>, RegistryError>>> = Vec::new();
        for name in destination.others() {
            lookups.push(Box::pin(self.registry.card_named(name)));
        }
        let mut cards: Vec<AgentCard> = Vec::new();
        for card in scope::all(lookups).await {
            cards.extend(card.map_err(|error| registry_failure(&error))?);
        }
        let membership = destination
            .resolve(&self.card, &WireVersions::history(), |name| {
                cards.iter().find(|card| card.agent_name() == name).cloned()
            })
            .map_err(|error| address_failure(&error))?;
        if is_cancelled() {
            return Err(Failure::new(
                Operation::Send,
                "closed",
                "the send was cancelled before anything was recorded",
            ));
        }
        let request_id = RequestId(self.requests.replace(self.requests.get() + 1));
        let (answer, outcome) = oneshot::channel();
        self.tell(Message::Send(
            SendRequest {
                request_id,
                membership,
                content,
                post_id: Some(post_id),
            },
            answer,
        ));
        outcome
            .await
            .unwrap_or_else(|_| Err(unrecorded(self.shared.failure.borrow().as_ref())))
    }

    /// The page woke up, or its network changed: what waits for a time or for the network is looked at afresh.
    pub(crate) fn wake(&self) {
        self.tell(Message::Wake);
    }

    /// Takes the one subscription to deliveries.
    pub(crate) fn subscribe(&self) -> Result<SubscriptionId, Failure> {
        self.shared
            .deliveries
            .borrow_mut()
            .subscribe()
            .map_err(|error: AlreadyListening| {
                Failure::new(Operation::Listen, "already-listening", error.to_string())
            })
    }

    /// The subscription's next delivery; none when it has ended.
    pub(crate) async fn next_delivery(&self, id: SubscriptionId) -> Option<Delivery> {
        poll_fn(|context| self.shared.deliveries.borrow_mut().poll_next(id, context.waker())).await
    }

    /// Gives the subscription back.
    pub(crate) fn unsubscribe(&self, id: SubscriptionId) {
        self.shared.deliveries.borrow_mut().cancel(id);
    }

    /// Marks a delivery as accepted.
    pub(crate) async fn acknowledge(&self, token: &str) -> Result<(), Failure> {
        let token: DeliveryToken = token.parse().map_err(|_| {
            Failure::new(
                Operation::Acknowledge,
                "unknown-delivery",
                "the token is malformed",
            )
        })?;
        let (answer, outcome) = oneshot::channel();
        self.tell(Message::Acknowledge(token, answer));
        outcome
            .await
            .unwrap_or_else(|_| Err(closed(Operation::Acknowledge, "persistence-failed")))
    }

    /// The rows of some reads.
    pub(super) async fn read(&self, reads: Vec<Read>) -> Result<Snapshot, StoreFailure> {
        self.store.read(reads).await
    }

    /// The local agent's name.
    pub(super) fn local_name(&self) -> &AgentName {
        self.card.agent_name()
    }

    /// The key of the Registry that signed every member's card.
    pub(super) fn registry_key(&self) -> String {
        // A key's encoding is canonical JSON.
        String::from_utf8_lossy(&self.registry.signer().jwk().to_canonical_bytes()).into_owned()
    }

    /// The held conversations, as JSON.
    pub(crate) async fn conversations(&self) -> Result<String, Failure> {
        let (answer, outcome) = oneshot::channel();
        self.tell(Message::Conversations(answer));
        outcome
            .await
            .map_err(|_| closed(Operation::History, "persistence-failed"))
    }

    /// The posts under way, as JSON.
    pub(crate) fn open_posts(&self) -> Result<String, Failure> {
        to_json(&*self.shared.open_posts.borrow())
    }

    /// Ends the endpoint; returns when the store is free.
    pub(crate) async fn close(&self) {
        if self.shared.is_closed.get() {
            return;
        }
        let (ended, end) = oneshot::channel();
        self.shared.closing.borrow_mut().push(ended);
        self.tell(Message::Close);
        // Dropped unsent means ended too.
        let _ = end.await;
    }

    pub(super) fn tell(&self, message: Message) {
        // A driver that has ended drops the message, and with it whatever waits for an answer.
        self.inbox.send(message);
    }
}

fn parse_content(json: &str) -> Result<Content, Failure> {
    let invalid = |message: String| Failure::new(Operation::Send, "content-invalid", message);
    let parts: Vec<ContentPart> = canonical_json::read(json.as_bytes())
        .map_err(|error| invalid(format!("the content is not a list of parts: {error}")))?;
    Content::new(parts).map_err(|error| invalid(error.to_string()))
}

fn address_failure(error: &AddressError) -> Failure {
    Failure::new(Operation::Send, error.refusal().code(), error.to_string())
}

fn registry_failure(error: &RegistryError) -> Failure {
    match error {
        RegistryError::Unreachable(call) if call.is_transient() => {
            Failure::new(Operation::Send, "network-unavailable", error.to_string()).retryable()
        }
        RegistryError::Unreachable(_) | RegistryError::Untrusted(_) => {
            Failure::new(Operation::Send, "certification-unavailable", error.to_string())
        }
        RegistryError::Store(failure) => {
            Failure::new(Operation::Send, "persistence-failed", error.to_string())
                .because(failure.clone().into())
        }
    }
}

pub(super) fn closed(operation: Operation, code: &'static str) -> Failure {
    Failure::new(operation, code, "the endpoint is closed")
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    // Views are made of texts and numbers: their encoding cannot fail.
    serde_json::to_string(value).map_err(|error| corrupt(error.to_string()))
}
