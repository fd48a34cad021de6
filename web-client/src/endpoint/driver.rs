//! The loop around the engine: messages in, one commit a batch, then the effects.
//!
//! What the engine wants durable before something is sent is durable because effects are carried out after the commit of
//! their step. A commit that fails ends the endpoint: the engine's memory is then ahead of the store, and opening again is
//! the only way on.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use conclave_conversation::address::canonical_address;
use conclave_conversation::binding::{ConversationTopic, WelcomeTopic, parse_outer_message};
use conclave_conversation::engine::{
    Context, ConversationStatus, Delivered, Effect, Engine, Fatal, Feed, Input, ReadId, RequestId, SendError,
    SendOutcome, SendRequest, Stall, Step, TimerId, Transmit, WaitingFor,
};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::Read;
use conclave_conversation::values::{ConversationId, DeliveryToken, PostId};
use conclave_harness::{AgentId, PublicKey};
use futures_channel::{mpsc, oneshot};
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, abortable};
use serde_json::json;

use super::handle::Shared;
use super::invitations::Looked;
use crate::failure::{Failure, Operation, corrupt};
use crate::observer::Observer;
use crate::platform::{chance::BrowserRandomness, scope::Scope, timer};
use crate::store::{IndexedDbStore, StoreFailure};
use crate::transport::{Deployment, FeedCommand, FeedEnvelope, FeedEvent, publish};

/// The most messages that share one commit. It bounds how long the first of them waits for the last.
const BATCH_MAX: usize = 64;

/// How a send ended.
pub(super) type SendResult = Result<PostId, Failure>;

/// What the driver takes.
pub(super) enum Message {
    /// An input of the engine.
    Input(Input),
    /// A timer went off, if it is still the one of this number.
    TimerElapsed(TimerId, u64),
    /// The feed has something to say.
    Feed(FeedEvent),
    /// An invitation's sender was looked up.
    Invitation(Looked),
    /// The host posts.
    Send(SendRequest, oneshot::Sender<SendResult>),
    /// The host accepted a delivery.
    Acknowledge(DeliveryToken, oneshot::Sender<Result<(), Failure>>),
    /// The host asks for its conversations, as JSON.
    Conversations(oneshot::Sender<String>),
    /// The host asks for the conversation of a canonical address.
    Locate(String, oneshot::Sender<Option<ConversationId>>),
    /// Something outside has ended the endpoint.
    Ended(Failure),
    /// The host closes the endpoint.
    Close,
}

/// A send that was not answered yet.
struct PendingSend {
    answer: oneshot::Sender<SendResult>,
    /// Its post is durable.
    is_bound: bool,
}

/// The engine and everything it is connected to.
pub(super) struct Driver {
    pub(super) engine: Engine,
    pub(super) store: Rc<IndexedDbStore>,
    pub(super) deployment: Deployment,
    pub(super) shared: Rc<Shared>,
    pub(super) observer: Rc<Observer>,
    pub(super) scope: Scope,
    pub(super) inbox: mpsc::UnboundedSender<Message>,
    pub(super) feed: mpsc::UnboundedSender<FeedCommand>,
    pub(super) invitations: mpsc::UnboundedSender<FeedEnvelope>,
    pub(super) local_id: AgentId,
    pub(super) local_key: PublicKey,
    pub(super) pending: Pending,
}

/// What waits for an answer or an end.
#[derive(Default)]
pub(super) struct Pending {
    sends: BTreeMap<RequestId, PendingSend>,
    acknowledgments: BTreeMap<DeliveryToken, VecDeque<oneshot::Sender<Result<(), Failure>>>>,
    timers: BTreeMap<TimerId, (u64, AbortHandle)>,
    timers_set: u64,
}

/// Whether the loop goes on.
enum Next {
    GoOn,
    Stop,
}

impl Driver {
    /// Runs until the endpoint is closed or fails, then answers everyone who waits.
    pub(super) async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let outcome = self.take_all(&mut messages).await;
        let failure = outcome.err();
        messages.close();
        self.answer_everyone(failure.as_ref());
        self.shared.close();
        let Driver {
            store,
            shared,
            observer,
            scope,
            ..
        } = self;
        // First whatever may still use the store, then the store: the next owner must find it free.
        drop(scope);
        store.close();
        observer.tell_closed(failure.as_ref());
        shared.tell_closing();
    }

    async fn take_all(&mut self, messages: &mut mpsc::UnboundedReceiver<Message>) -> Result<(), Failure> {
        while let Some(first) = messages.next().await {
            let (mut step, mut next) = (Step::default(), self.take_into(first));
            let mut taken = 1;
            loop {
                let (part, go_on) = next?;
                step.transitions.extend(part.transitions);
                step.effects.extend(part.effects);
                if let Next::Stop = go_on {
                    self.carry_out(step).await?;
                    return Ok(());
                }
                match messages.try_recv() {
                    Ok(message) if taken < BATCH_MAX => {
                        taken += 1;
                        next = self.take_into(message);
                    }
                    Ok(message) => {
                        // The batch is full: this one begins the next.
                        self.carry_out(std::mem::take(&mut step)).await?;
                        taken = 1;
                        next = self.take_into(message);
                    }
                    Err(_) => break,
                }
            }
            self.carry_out(step).await?;
        }
        Ok(())
    }

    /// Commits a step, then carries out its effects.
    pub(super) async fn carry_out(&mut self, step: Step) -> Result<(), Failure> {
        let Step {
            transitions, effects, ..
        } = step;
        let news = self.shared.progress.borrow_mut().see_transitions(&transitions);
        if !transitions.is_empty() {
            self.store.apply(transitions).await?;
        }
        for (conversation, author, post) in news {
            self.show_post(&(conversation, author, post));
        }
        effects
            .into_iter()
            .try_for_each(|effect| self.carry_out_one(effect))
    }

    fn take_into(&mut self, message: Message) -> Result<(Step, Next), Failure> {
        let step = match message {
            Message::Input(input) => self.handle(input),
            Message::TimerElapsed(id, number) => match self.pending.timers.get(&id) {
                Some((current, _)) if *current == number => {
                    self.pending.timers.remove(&id);
                    self.handle(Input::Timer(id))
                }
                _ => Step::default(),
            },
            Message::Feed(event) => self.take_feed(event),
            Message::Invitation(Looked::Up(input)) => self.handle(input),
            Message::Invitation(Looked::Failed(failure)) | Message::Ended(failure) => return Err(failure),
            Message::Send(request, answer) => {
                self.pending.sends.insert(
                    request.request_id,
                    PendingSend {
                        answer,
                        is_bound: false,
                    },
                );
                self.handle(Input::Send(Box::new(request)))
            }
            Message::Acknowledge(delivery_token, answer) => {
                self.pending
                    .acknowledgments
                    .entry(delivery_token)
                    .or_default()
                    .push_back(answer);
                self.handle(Input::Acknowledge { delivery_token })
            }
            Message::Conversations(answer) => {
                // Whoever asked may have gone; so below.
                let _ = answer.send(self.conversations_json());
                Step::default()
            }
            Message::Locate(address, answer) => {
                let _ = answer.send(self.locate(&address));
                Step::default()
            }
            Message::Close => return Ok((Step::default(), Next::Stop)),
        };
        Ok((step, Next::GoOn))
    }

    fn handle(&mut self, input: Input) -> Step {
        let context = Context {
            now_ms: timer::now_ms(),
            randomness: &mut BrowserRandomness,
        };
        self.engine.handle(input, context)
    }

    fn take_feed(&mut self, event: FeedEvent) -> Step {
        match event {
            FeedEvent::Online { router_instance_id } => {
                self.observer
                    .tell_progress(&json!({ "kind": "connection", "state": "online" }));
                self.handle(Input::RouterInstance { router_instance_id })
            }
            FeedEvent::Offline { detail } => {
                self.observer
                    .tell_progress(&json!({ "kind": "connection", "state": "offline", "detail": detail }));
                Step::default()
            }
            FeedEvent::Envelopes(envelopes) => {
                let mut all = Step::default();
                for envelope in envelopes {
                    let step = self.take_envelope(envelope);
                    all.transitions.extend(step.transitions);
                    all.effects.extend(step.effects);
                }
                all
            }
        }
    }

    fn take_envelope(&mut self, envelope: FeedEnvelope) -> Step {
        let Feed::Conversation(conversation_id) = envelope.feed else {
            // The task that looks senders up lives as long as this driver.
            let _ = self.invitations.unbounded_send(envelope);
            return Step::default();
        };
        let topic = ConversationTopic::of(&conversation_id);
        let message = envelope
            .payload
            .and_then(|data| parse_outer_message(&topic, &data).ok());
        self.handle(Input::Delivered(Box::new(Delivered {
            conversation_id,
            message,
            position: envelope.position,
            router_instance_id: envelope.router_instance_id,
        })))
    }

    fn carry_out_one(&mut self, effect: Effect) -> Result<(), Failure> {
        match effect {
            Effect::Transmit(transmit) => self.transmit(*transmit),
            Effect::Watch { feed, after } => {
                let topic = match feed {
                    Feed::Conversation(id) => ConversationTopic::of(&id).as_bytes().to_vec(),
                    Feed::Invitations => WelcomeTopic::of(&self.local_key).as_bytes().to_vec(),
                };
                self.command(FeedCommand::Watch {
                    feed,
                    topic,
                    after: after.unwrap_or(0),
                });
            }
            Effect::Unwatch { feed } => self.command(FeedCommand::Unwatch { feed }),
            Effect::SetTimer { id, at_ms } => self.set_timer(id, at_ms),
            Effect::CancelTimer { id } => self.cancel_timer(id),
            Effect::Bound { request_id, .. } => {
                if let Some(send) = self.pending.sends.get_mut(&request_id) {
                    send.is_bound = true;
                }
            }
            Effect::Sent { request_id, result } => {
                if let Some(send) = self.pending.sends.remove(&request_id) {
                    let _ = send.answer.send(
                        result
                            .map(|post| post.post_id)
                            .map_err(|error| send_failure(&error)),
                    );
                }
            }
            Effect::Deliver(delivery) => self.shared.deliveries.borrow_mut().add(delivery),
            Effect::Acknowledged {
                delivery_token,
                result,
            } => {
                if result.is_ok() {
                    self.shared.deliveries.borrow_mut().acknowledged(&delivery_token);
                }
                let waiting = self.pending.acknowledgments.get_mut(&delivery_token);
                if let Some(answer) = waiting.and_then(VecDeque::pop_front) {
                    let failure = |error: conclave_conversation::engine::AcknowledgeError| {
                        Failure::new(Operation::Acknowledge, "unknown-delivery", error.to_string())
                    };
                    let _ = answer.send(result.map_err(failure));
                }
            }
            Effect::Progress {
                conversation_id,
                author_agent_id,
                post_id,
                stage,
            } => {
                let seen = self.shared.progress.borrow_mut().see_stage(
                    conversation_id,
                    author_agent_id,
                    post_id,
                    stage,
                );
                if let Some(key) = seen {
                    self.show_post(&key);
                }
            }
            Effect::ConversationState {
                conversation_id,
                status,
            } => self.show_conversation(&conversation_id, status),
            Effect::Read { read_id, reads } => self.read(read_id, reads),
            Effect::Stalled {
                conversation_id,
                stall,
            } => self.show_stall(&conversation_id, &stall),
            Effect::Fatal { reason } => return Err(fatal(&reason)),
        }
        Ok(())
    }

    /// Reads rows the engine asks for. A store that cannot be read ends the endpoint.
    fn read(&self, read_id: ReadId, reads: Vec<Read>) {
        let (store, inbox) = (self.store.clone(), self.inbox.clone());
        self.scope.spawn(Box::pin(async move {
            let message = match store.read(reads).await {
                Ok(rows) => Message::Input(Input::Rows {
                    read_id,
                    rows: Box::new(rows),
                }),
                Err(failure) => Message::Ended(failure.into()),
            };
            // The driver may have ended meanwhile.
            let _ = inbox.unbounded_send(message);
        }));
    }

    fn transmit(&self, transmit: Transmit) {
        let (deployment, inbox, feed) = (self.deployment.clone(), self.inbox.clone(), self.feed.clone());
        let outbound_id = transmit.outbound_id;
        self.scope.spawn(Box::pin(async move {
            let outcome = publish(&deployment, transmit).await;
            if let SendOutcome::RouterRestarted { router_instance_id } = outcome {
                // The stream may be one of the instance that is gone.
                let _ = feed.unbounded_send(FeedCommand::Instance(router_instance_id));
            }
            let _ = inbox.unbounded_send(Message::Input(Input::SendOutcome { outbound_id, outcome }));
        }));
    }

    fn command(&self, command: FeedCommand) {
        // The feed lives as long as this driver.
        let _ = self.feed.unbounded_send(command);
    }

    fn set_timer(&mut self, id: TimerId, at_ms: u64) {
        self.cancel_timer(id);
        self.pending.timers_set += 1;
        let number = self.pending.timers_set;
        let delay = Duration::from_millis(at_ms.saturating_sub(timer::now_ms()));
        let inbox = self.inbox.clone();
        let (task, handle) = abortable(async move {
            timer::Delay::new(delay).await;
            let _ = inbox.unbounded_send(Message::TimerElapsed(id, number));
        });
        self.pending.timers.insert(id, (number, handle));
        self.scope.spawn(Box::pin(async move {
            // Aborted or elapsed, both are its end.
            let _ = task.await;
        }));
    }

    fn cancel_timer(&mut self, id: TimerId) {
        if let Some((_, handle)) = self.pending.timers.remove(&id) {
            handle.abort();
        }
    }

    // ── what onlookers and owners see ───────────────────────────────────────────────────────────────────────────────

    fn membership_of(&self, conversation: &ConversationId) -> Option<&Membership> {
        self.engine
            .conversations()
            .map(|view| view.membership)
            .find(|held| held.conversation_id() == conversation)
    }

    fn show_post(&self, key: &(ConversationId, AgentId, PostId)) {
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

    fn show_conversation(&self, id: &ConversationId, status: ConversationStatus) {
        let Some(membership) = self.membership_of(id) else {
            return;
        };
        let address = canonical_address(membership, &self.local_id);
        let (state, detail) = match status {
            ConversationStatus::Recovered => ("ready", None),
            ConversationStatus::Recovering { reason } => ("unavailable", Some(reason.to_string())),
        };
        self.observer.tell_progress(&json!({
            "kind": "conversation", "address": address, "state": state, "detail": detail,
        }));
    }

    fn show_stall(&self, id: &ConversationId, stall: &Stall) {
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
        let members: Vec<_> = members
            .map(|card| conclave_conversation::address::agent_address(card.agent_name()))
            .collect();
        self.observer.tell_progress(&json!({
            "kind": "stalled", "address": canonical_address(membership, &self.local_id),
            "waitingFor": waiting_for, "members": members, "behindAnother": stall.behind_another,
        }));
    }

    fn conversations_json(&self) -> String {
        let conversations: Vec<_> = self
            .engine
            .conversations()
            .map(|view| {
                let names = view.membership.names().into_iter();
                let (state, detail) = match view.status {
                    ConversationStatus::Recovered => ("ready", None),
                    ConversationStatus::Recovering { reason } => ("unavailable", Some(reason.to_string())),
                };
                json!({
                    "address": canonical_address(view.membership, &self.local_id),
                    "members": names.map(conclave_conversation::address::agent_address).collect::<Vec<_>>(),
                    "posts": view.records,
                    "unfinished": view.unfinished,
                    "state": state,
                    "detail": detail,
                })
            })
            .collect();
        serde_json::Value::from(conversations).to_string()
    }

    fn locate(&self, address: &str) -> Option<ConversationId> {
        self.engine
            .conversations()
            .map(|view| view.membership)
            .find(|membership| canonical_address(membership, &self.local_id).as_deref() == Some(address))
            .map(|membership| *membership.conversation_id())
    }

    // ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    fn answer_everyone(&mut self, failure: Option<&Failure>) {
        let because = |answer: Failure| match failure {
            Some(failure) => answer.because(failure.clone()),
            None => answer,
        };
        for (_, send) in std::mem::take(&mut self.pending.sends) {
            let answer = if send.is_bound {
                let words = "the endpoint ended before the post was certified; it goes on when the endpoint is opened again";
                Failure::new(Operation::Send, "delivery-pending", words)
            } else if failure.is_some() {
                Failure::new(
                    Operation::Send,
                    "persistence-failed",
                    "the endpoint failed before the post was recorded",
                )
            } else {
                Failure::new(
                    Operation::Send,
                    "closed",
                    "the endpoint was closed before the post was recorded",
                )
            };
            let _ = send.answer.send(Err(because(answer)));
        }
        for answer in std::mem::take(&mut self.pending.acknowledgments)
            .into_values()
            .flatten()
        {
            let words = "the endpoint ended before the acknowledgment was stored";
            let _ = answer.send(Err(because(Failure::new(
                Operation::Acknowledge,
                "persistence-failed",
                words,
            ))));
        }
    }
}

/// Tells the driver when the store is taken away.
pub(super) async fn watch_store(
    taken: oneshot::Receiver<StoreFailure>,
    inbox: mpsc::UnboundedSender<Message>,
) {
    if let Ok(failure) = taken.await {
        let _ = inbox.unbounded_send(Message::Ended(failure.into()));
    }
}

/// The reason a host is given for a refused send.
fn send_failure(error: &SendError) -> Failure {
    let failure = |code| Failure::new(Operation::Send, code, error.to_string());
    match error {
        SendError::NetworkUnavailable => failure("network-unavailable").retryable(),
        SendError::TooManyUnfinished => failure("certification-unavailable").retryable(),
        SendError::NotAMember
        | SendError::MembershipDiffers
        | SendError::NotSealable
        | SendError::Stopped(_) => failure("certification-unavailable"),
    }
}

fn fatal(reason: &Fatal) -> Failure {
    match reason {
        Fatal::OwnValue(_) => corrupt(reason.to_string()),
        Fatal::RouterContract { .. } => {
            Failure::new(Operation::Listen, "transport-failed", reason.to_string())
        }
    }
}
