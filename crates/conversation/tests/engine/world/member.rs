//! One agent with its engine, its store, its host and its timers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use conclave_conversation::engine::{
    ConversationStatus, Delivery, Effect, Engine, Fatal, Feed, Ignored, Local, ReadId, RecoveryState,
    RequestId, SendError, SentPost, Stage, Stall, TimerId, Transmit,
};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::{MemoryStore, Read};
use conclave_conversation::test_support::{self, Agent, router_instance};
use conclave_conversation::values::{ConversationId, PostId};
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{AgentId, RouterInstanceId, WIRE_VERSION, WireVersion, WireVersions};

/// The versions of the program a member runs. Every one reads the history of both versions of the tests.
#[derive(Clone)]
pub(crate) struct Release {
    /// What it writes.
    pub(crate) emits: WireVersion,
    /// What it takes on the wire.
    pub(crate) live: WireVersions,
}

impl Release {
    pub(crate) fn current() -> Self {
        Release {
            emits: WIRE_VERSION,
            live: WireVersions::live(),
        }
    }
}

/// One agent with its engine, its store, its host and its timers.
pub(crate) struct Member {
    pub(crate) agent: Agent,
    pub(crate) store: MemoryStore,
    pub(crate) engine: Option<Engine>,
    pub(crate) randomness: SeededRandomness,
    /// What it runs.
    pub(crate) release: Release,
    /// Whether the transport works.
    pub(crate) online: bool,
    pub(crate) transmits: VecDeque<Transmit>,
    /// For each feed read: the last position handed over.
    pub(crate) feeds: BTreeMap<Feed, u64>,
    /// The instance whose order those positions count in.
    pub(super) feeds_of: RouterInstanceId,
    /// Reads of the store that the engine waits for.
    pub(super) reads: VecDeque<(ReadId, Vec<Read>)>,
    /// Everything whoever watches was told, in order: what a recovery waits for, and which conversations stand still.
    pub(crate) recoveries: Vec<(ConversationId, Option<RecoveryState>)>,
    pub(crate) stalls: Vec<(ConversationId, Option<Stall>)>,
    pub(crate) timers: BTreeMap<TimerId, u64>,
    /// Everything the host was given, in order, repetitions after restarts included.
    pub(crate) delivered: Vec<Delivery>,
    pub(crate) acknowledged: BTreeSet<String>,
    pub(crate) sent: BTreeMap<RequestId, Result<SentPost, SendError>>,
    pub(crate) bound: BTreeMap<RequestId, PostId>,
    pub(crate) progress: Vec<(PostId, Stage)>,
    pub(crate) ignored: Vec<Ignored>,
    pub(crate) status: BTreeMap<ConversationId, ConversationStatus>,
    pub(crate) fatal: Option<Fatal>,
}

impl Member {
    /// Agent `number`, whose engine is not open yet.
    pub(super) fn new(number: usize) -> Self {
        Member {
            agent: Agent::new(number),
            store: MemoryStore::new(),
            engine: None,
            randomness: SeededRandomness::new(number as u64),
            release: Release::current(),
            online: true,
            transmits: VecDeque::new(),
            feeds: BTreeMap::new(),
            feeds_of: router_instance(0),
            reads: VecDeque::new(),
            recoveries: Vec::new(),
            stalls: Vec::new(),
            timers: BTreeMap::new(),
            delivered: Vec::new(),
            acknowledged: BTreeSet::new(),
            sent: BTreeMap::new(),
            bound: BTreeMap::new(),
            progress: Vec::new(),
            ignored: Vec::new(),
            status: BTreeMap::new(),
            fatal: None,
        }
    }

    pub(crate) fn local(&self) -> Local {
        let mut local = Local::new(
            self.agent.card.clone(),
            self.agent.key.clone(),
            test_support::registry(),
        );
        local.history = test_support::history();
        local.wire_version = self.release.emits;
        local.live = self.release.live.clone();
        local
    }

    pub(crate) fn id(&self) -> AgentId {
        self.agent.id()
    }

    /// One effect of a step, reported or left for the test to go on with.
    pub(super) fn carry_out(&mut self, effect: Effect, current: RouterInstanceId) {
        match effect {
            Effect::Transmit(transmit) => self.transmits.push_back(*transmit),
            Effect::Watch { feed, after } => {
                if self.feeds_of != current {
                    self.feeds_of = current;
                    self.feeds.clear();
                }
                self.feeds.entry(feed).or_insert(after.unwrap_or(0));
            }
            Effect::Unwatch { feed } => {
                self.feeds.remove(&feed);
            }
            Effect::SetTimer { id, at_ms } => {
                self.timers.insert(id, at_ms);
            }
            Effect::CancelTimer { id } => {
                self.timers.remove(&id);
            }
            Effect::Bound {
                request_id, post_id, ..
            } => {
                self.bound.insert(request_id, post_id);
            }
            Effect::Sent { request_id, result } => {
                let before = self.sent.insert(request_id, result);
                assert!(before.is_none(), "a send ends once");
            }
            Effect::Deliver(delivery) => self.delivered.push(delivery),
            Effect::Acknowledged { .. } => {}
            Effect::Progress { post_id, stage, .. } => self.progress.push((post_id, stage)),
            Effect::ConversationState {
                conversation_id,
                status,
            } => {
                self.status.insert(conversation_id, status);
            }
            Effect::Read { read_id, reads } => self.reads.push_back((read_id, reads)),
            Effect::Recovery {
                conversation_id,
                recovery,
            } => self.recoveries.push((conversation_id, recovery)),
            Effect::Stalled {
                conversation_id,
                stall,
            } => self.stalls.push((conversation_id, stall)),
            Effect::Fatal { reason } => self.fatal = Some(reason),
        }
    }

    /// The stall that was told last, unless its end was told.
    pub(crate) fn stall(&self, of: &Membership) -> Option<Stall> {
        last(&self.stalls, of).flatten()
    }

    /// What was told last of a conversation's recovery, unless its end was told.
    pub(crate) fn recovery(&self, of: &Membership) -> Option<RecoveryState> {
        last(&self.recoveries, of).flatten()
    }

    /// The texts of everything the host was given.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.delivered
            .iter()
            .map(|delivery| text_of(&delivery.canonical_message))
            .collect()
    }
}

fn last<T: Clone>(told: &[(ConversationId, T)], of: &Membership) -> Option<T> {
    let mut latest = told.iter().rev();
    latest
        .find(|(id, _)| id == of.conversation_id())
        .map(|(_, what)| what.clone())
}

pub(crate) fn text_of(canonical_message: &str) -> String {
    let message: serde_json::Value = serde_json::from_str(canonical_message).expect("a message");
    message["content"][0]["text"].as_str().expect("a text").to_owned()
}
