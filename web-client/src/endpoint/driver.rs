//! The loop around the engine: messages in, one commit a batch, then the effects.
//!
//! What the engine wants durable before something is sent is durable because effects are carried out after the commit of
//! their step. A commit that fails ends the endpoint: the engine's memory is then ahead of the store, and opening again is
//! the only way on.

use std::rc::Rc;
use std::time::Duration;

use conclave_conversation::binding::{Attendance, ConversationTopic, WelcomeTopic, parse_outer_message};
use conclave_conversation::engine::{
    Context, Delivered, Effect, Engine, Feed, Input, ReadId, SendOutcome, SendRequest, Step, Transmit,
};
use conclave_conversation::store::Read;
use conclave_conversation::values::DeliveryToken;
use conclave_harness::{AgentId, PublicKey};
use futures_channel::oneshot;
use serde_json::json;

use super::handle::Shared;
use super::invitations::Looked;
use super::owner_reads::Asked;
use super::pending::{Pending, PendingSend, SendResult, fatal, send_failure};
use super::timers::{Timers, has_slept};
use crate::failure::{Failure, Operation};
use crate::observer::Observer;
use crate::platform::scope::{Scope, TaskHandle};
use crate::platform::{chance::BrowserRandomness, queue, timer};
use crate::store::{IndexedDbStore, StoreFailure};
use crate::transport::{Deployment, FeedCommand, FeedEnvelope, FeedEvent, publish};

/// The most messages that share one commit. It bounds how long the first of them waits for the last.
const BATCH_MAX: usize = 64;

/// What the driver takes.
pub(super) enum Message {
    /// An input of the engine.
    Input(Input),
    /// The earliest of the engine's timers may be due.
    Alarm,
    /// The page woke up, or its network changed: deadlines are looked at afresh, and so is the connection.
    Wake,
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
    /// The owner reads its history.
    Owner(Asked),
    /// Something outside has ended the endpoint.
    Ended(Failure),
    /// The host closes the endpoint.
    Close,
}

/// The engine and everything it is connected to.
pub(super) struct Driver {
    pub(super) engine: Engine,
    pub(super) store: Rc<IndexedDbStore>,
    pub(super) deployment: Deployment,
    pub(super) shared: Rc<Shared>,
    pub(super) observer: Rc<Observer>,
    pub(super) scope: Scope,
    pub(super) inbox: queue::Sender<Message>,
    pub(super) feed: queue::Sender<FeedCommand>,
    pub(super) invitations: queue::Sender<FeedEnvelope>,
    pub(super) local_id: AgentId,
    pub(super) local_key: PublicKey,
    pub(super) pending: Pending,
    pub(super) attendance: Attendance,
    pub(super) timers: Timers,
    /// The browser's timer for the earliest deadline, and that deadline.
    pub(super) alarm: Option<(u64, TaskHandle)>,
}

/// Whether the loop goes on.
enum Next {
    GoOn,
    Stop,
}

impl Driver {
    /// Runs until the endpoint is closed or fails, then answers everyone who waits.
    pub(super) async fn run(mut self, mut messages: queue::Receiver<Message>) {
        let outcome = self.take_all(&mut messages).await;
        let failure = outcome.err();
        drop(messages);
        let Driver {
            store,
            shared,
            observer,
            scope,
            pending,
            ..
        } = self;
        pending.answer_everyone(failure.as_ref());
        shared.close(failure.as_ref());
        // First whatever may still use the store, then the store: the next owner must find it free.
        drop(scope);
        store.close();
        observer.tell_closed(failure.as_ref());
        shared.tell_closing();
    }

    async fn take_all(&mut self, messages: &mut queue::Receiver<Message>) -> Result<(), Failure> {
        while let Some(first) = messages.next().await {
            let (mut step, mut taken, mut message) = (Step::default(), 0, Some(first));
            while let Some(current) = message.take() {
                let (part, next) = self.take_into(current)?;
                step.transitions.extend(part.transitions);
                step.effects.extend(part.effects);
                if let Next::Stop = next {
                    return self.carry_out(step).await;
                }
                taken += 1;
                if taken < BATCH_MAX {
                    message = messages.try_next();
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
            let stored = transitions.len() as u32;
            self.store.apply(transitions).await?;
            self.observer.stored(stored);
        }
        for (conversation, author, post) in news {
            self.show_post(&(conversation, author, post));
        }
        effects
            .into_iter()
            .try_for_each(|effect| self.carry_out_one(effect))?;
        self.arm();
        Ok(())
    }

    fn take_into(&mut self, message: Message) -> Result<(Step, Next), Failure> {
        let step = match message {
            Message::Input(input) => self.handle(input),
            Message::Alarm => {
                let due_ms = self.alarm.take().map(|(at_ms, _)| at_ms);
                if due_ms.is_some_and(|at_ms| has_slept(at_ms, timer::now_ms())) {
                    self.deployment.reconnect_now();
                }
                self.ring()
            }
            Message::Wake => {
                self.deployment.reconnect_now();
                self.ring()
            }
            Message::Feed(FeedEvent::Refused { detail }) => {
                return Err(Failure::new(Operation::Listen, "transport-failed", detail));
            }
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
                self.pending.acknowledgments.push((delivery_token, answer));
                self.handle(Input::Acknowledge { delivery_token })
            }
            Message::Conversations(answer) => {
                // Whoever asked may have gone.
                let _ = answer.send(self.conversations_json());
                Step::default()
            }
            Message::Owner(asked) => {
                self.answer_owner(asked);
                Step::default()
            }
            Message::Close => return Ok((Step::default(), Next::Stop)),
        };
        Ok((step, Next::GoOn))
    }

    pub(super) fn handle(&mut self, input: Input) -> Step {
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
                let mut step = self.handle(Input::RouterInstance { router_instance_id });
                self.attend(&mut step);
                step
            }
            FeedEvent::Offline { detail, retry_in } => {
                self.follow();
                self.observer.tell_progress(&json!({
                    "kind": "connection", "state": "offline", "detail": detail,
                    "retryInMs": retry_in.as_millis() as u64,
                }));
                Step::default()
            }
            // It ends the endpoint before it comes here.
            FeedEvent::Refused { .. } => Step::default(),
            FeedEvent::Envelopes(envelopes) => {
                self.follow();
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
            self.invitations.send(envelope);
            return Step::default();
        };
        self.learn_retention(&envelope);
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
            Effect::SetTimer { id, at_ms } => self.timers.set(id, at_ms),
            Effect::CancelTimer { id } => self.timers.cancel(&id),
            Effect::Bound { request_id, .. } => {
                if let Some(send) = self.pending.sends.get_mut(&request_id) {
                    send.is_bound = true;
                }
            }
            Effect::Sent { request_id, result } => {
                if let Some(send) = self.pending.sends.remove(&request_id) {
                    let _ = send
                        .answer
                        .send(result.map(drop).map_err(|error| send_failure(&error)));
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
                let waiting = &mut self.pending.acknowledgments;
                if let Some(place) = waiting.iter().position(|(token, _)| *token == delivery_token) {
                    let (_, answer) = waiting.remove(place);
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
            Effect::Recovery {
                conversation_id,
                recovery,
            } => self.show_recovery(&conversation_id, recovery.as_ref()),
            Effect::Stalled {
                conversation_id,
                stall,
            } => self.show_stall(&conversation_id, stall.as_ref()),
            Effect::Fatal { reason } => return Err(fatal(&reason)),
        }
        Ok(())
    }

    /// Reads rows the engine asks for. A store that cannot be read ends the endpoint.
    fn read(&self, read_id: ReadId, reads: Vec<Read>) {
        let (store, inbox) = (self.store.clone(), self.inbox.clone());
        self.scope.spawn(Box::pin(async move {
            inbox.send(match store.read(reads).await {
                Ok(rows) => Message::Input(Input::Rows {
                    read_id,
                    rows: Box::new(rows),
                }),
                Err(failure) => Message::Ended(failure.into()),
            });
        }));
    }

    fn transmit(&self, transmit: Transmit) {
        let (deployment, inbox, feed) = (self.deployment.clone(), self.inbox.clone(), self.feed.clone());
        let outbound_id = transmit.outbound_id;
        self.scope.spawn(Box::pin(async move {
            let outcome = publish(&deployment, transmit).await;
            if let SendOutcome::RouterRestarted { router_instance_id } = outcome {
                // The stream may be one of the instance that is gone.
                feed.send(FeedCommand::Instance(router_instance_id));
            }
            inbox.send(Message::Input(Input::SendOutcome { outbound_id, outcome }));
        }));
    }

    fn command(&self, command: FeedCommand) {
        self.feed.send(command);
    }

    /// Lets every timer that is due go off.
    fn ring(&mut self) -> Step {
        // The browser's timer is set anew: its delay may have been measured by a clock that stood still.
        self.disarm();
        let mut all = Step::default();
        for id in self.timers.due(timer::now_ms()) {
            let step = self.handle(Input::Timer(id));
            all.transitions.extend(step.transitions);
            all.effects.extend(step.effects);
        }
        all
    }

    /// Sets the browser's timer for the earliest deadline, unless it is.
    fn arm(&mut self) {
        let next_ms = self.timers.next_ms();
        if next_ms == self.alarm.as_ref().map(|(at_ms, _)| *at_ms) {
            return;
        }
        self.disarm();
        let Some(at_ms) = next_ms else { return };
        let delay = Duration::from_millis(at_ms.saturating_sub(timer::now_ms()));
        let inbox = self.inbox.clone();
        let task = self.scope.spawn(Box::pin(async move {
            timer::Delay::new(delay).await;
            inbox.send(Message::Alarm);
        }));
        self.alarm = Some((at_ms, task));
    }

    fn disarm(&mut self) {
        if let Some((_, task)) = self.alarm.take() {
            task.end();
        }
    }
}

/// Tells the driver when the store is taken away.
pub(super) async fn watch_store(taken: oneshot::Receiver<StoreFailure>, inbox: queue::Sender<Message>) {
    if let Ok(failure) = taken.await {
        inbox.send(Message::Ended(failure.into()));
    }
}
