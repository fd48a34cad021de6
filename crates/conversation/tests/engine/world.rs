//! A small world for engines: members with stores, hosts and timers, and one Router with an order that can be made to
//! lose answers. Everything is deterministic and under the test's control.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use conclave_conversation::engine::{
    Context, ConversationStatus, Delivered, Delivery, Effect, Engine, Fatal, Feed, Ignored, Input,
    InvitationDelivered, Local, ReadId, RequestId, SendError, SendMode, SendOutcome, SendRequest, SentPost,
    Stage, Stall, Step, TimerId, Transmit, history,
};
use conclave_conversation::membership::Membership;
use conclave_conversation::outer_message::{open_outer_message, seal_outer_message};
use conclave_conversation::store::{MemoryStore, Read, Snapshot};
use conclave_conversation::test_support::{self, Agent, router_instance};
use conclave_conversation::values::{
    ActionCore, ActionHash, AnchorBody, AnchorHash, Content, ConversationId, DirectPacket, EvidenceStatement,
    Plaintext, PostId, RecordHash,
};
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{
    AgentId, EncodedSignedMessage, MessageId, RouterInstanceId, SignedMessage, WireVersions,
};

/// One ordered message.
#[derive(Clone)]
pub(crate) struct Ordered {
    /// The Router instance that ordered it.
    pub(crate) instance: RouterInstanceId,
    pub(crate) feed: OrderedFeed,
    pub(crate) position: u64,
    pub(crate) message: EncodedSignedMessage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OrderedFeed {
    Conversation(ConversationId),
    Welcome(AgentId),
}

/// The Router: one order, idempotent by sender and message id while it remembers.
pub(crate) struct Router {
    pub(crate) instance: RouterInstanceId,
    pub(crate) log: Vec<Ordered>,
    known: BTreeMap<(AgentId, MessageId), EncodedSignedMessage>,
}

impl Router {
    pub(crate) fn append(&mut self, feed: OrderedFeed, message: EncodedSignedMessage) {
        let of_instance = |ordered: &&Ordered| ordered.instance == self.instance;
        let position = self.log.iter().filter(of_instance).count() as u64 + 1;
        self.log.push(Ordered {
            instance: self.instance,
            feed,
            position,
            message,
        });
    }

    /// Another instance, with an order of its own.
    pub(crate) fn restart(&mut self, number: u8) {
        self.instance = router_instance(number);
        self.known.clear();
    }

    /// Forgets every retry identity, as eviction does.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    fn send(&mut self, transmit: &Transmit) -> SendOutcome {
        if transmit.expected_router_instance_id != self.instance {
            return SendOutcome::RouterRestarted {
                router_instance_id: self.instance,
            };
        }
        let key = (transmit.message.sender(), transmit.message.message_id());
        let accepted = SendOutcome::Accepted {
            router_instance_id: self.instance,
            digest: transmit.message.digest(),
        };
        match (self.known.get(&key), transmit.mode) {
            (Some(known), SendMode::Retry) if *known == transmit.message => accepted,
            (Some(_), _) => SendOutcome::IdempotencyConflict,
            (None, SendMode::Retry) => SendOutcome::RetryIdentityUnknown,
            (None, SendMode::Initial) => {
                self.known.insert(key, transmit.message.clone());
                self.append(
                    OrderedFeed::Conversation(transmit.conversation_id),
                    transmit.message.clone(),
                );
                for invitation in &transmit.invitations {
                    let message = EncodedSignedMessage::from_canonical_bytes(&invitation.message)
                        .expect("an invitation");
                    self.append(OrderedFeed::Welcome(invitation.recipient_agent_id), message);
                }
                accepted
            }
        }
    }
}

/// One agent with its engine, its store, its host and its timers.
pub(crate) struct Member {
    pub(crate) agent: Agent,
    pub(crate) store: MemoryStore,
    pub(crate) engine: Option<Engine>,
    pub(crate) randomness: SeededRandomness,
    /// Whether the transport works.
    pub(crate) online: bool,
    pub(crate) transmits: VecDeque<Transmit>,
    /// For each feed read: the last position handed over.
    pub(crate) feeds: BTreeMap<Feed, u64>,
    /// The instance whose order those positions count in.
    feeds_of: RouterInstanceId,
    /// Reads of the store that the engine waits for.
    reads: VecDeque<(ReadId, Vec<Read>)>,
    pub(crate) stalls: BTreeMap<ConversationId, Stall>,
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
    pub(crate) fn local(&self) -> Local {
        let mut local = Local::new(
            self.agent.card.clone(),
            self.agent.key.clone(),
            test_support::registry(),
        );
        local.history = test_support::history();
        local
    }

    pub(crate) fn id(&self) -> AgentId {
        self.agent.id()
    }

    /// The texts of everything the host was given.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.delivered
            .iter()
            .map(|delivery| text_of(&delivery.canonical_message))
            .collect()
    }
}

pub(crate) fn text_of(canonical_message: &str) -> String {
    let message: serde_json::Value = serde_json::from_str(canonical_message).expect("a message");
    message["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// Where a member crashes while it handles its next input.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CrashPoint {
    /// Nothing of the step is durable.
    BeforeCommit,
    /// Its transitions are durable, and none of its effects happened.
    AfterCommit,
}

pub(crate) struct World {
    pub(crate) now_ms: u64,
    /// Members that crash at their next input.
    pub(crate) crash_at: BTreeMap<usize, CrashPoint>,
    pub(crate) router: Router,
    pub(crate) members: Vec<Member>,
    next_request: u64,
}

impl World {
    /// Agents `0..members`, attached to the Router.
    pub(crate) fn new(members: usize) -> Self {
        let mut world = Self::detached(members);
        for member in 0..members {
            world.attach(member);
        }
        world
    }

    /// Agents `0..members`, not attached yet.
    pub(crate) fn detached(members: usize) -> Self {
        let router = Router {
            instance: router_instance(0),
            log: Vec::new(),
            known: BTreeMap::new(),
        };
        let members = (0..members).map(|number| Member {
            agent: Agent::new(number),
            store: MemoryStore::new(),
            engine: None,
            randomness: SeededRandomness::new(number as u64),
            online: true,
            transmits: VecDeque::new(),
            feeds: BTreeMap::new(),
            feeds_of: router_instance(0),
            reads: VecDeque::new(),
            stalls: BTreeMap::new(),
            timers: BTreeMap::new(),
            delivered: Vec::new(),
            acknowledged: BTreeSet::new(),
            sent: BTreeMap::new(),
            bound: BTreeMap::new(),
            progress: Vec::new(),
            ignored: Vec::new(),
            status: BTreeMap::new(),
            fatal: None,
        });
        let mut world = World {
            now_ms: 1_000_000,
            crash_at: BTreeMap::new(),
            router,
            members: members.collect(),
            next_request: 0,
        };
        for member in 0..world.members.len() {
            world.open(member);
        }
        world
    }

    /// The membership of some members.
    pub(crate) fn membership(&self, members: &[usize]) -> Membership {
        let cards = members
            .iter()
            .map(|member| self.members[*member].agent.card.clone())
            .collect();
        Membership::from_cards(cards, &test_support::history()).expect("a membership")
    }

    pub(crate) fn everyone(&self) -> Membership {
        self.membership(&(0..self.members.len()).collect::<Vec<_>>())
    }

    // ── engines ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Opens a member's engine from its store.
    pub(crate) fn open(&mut self, member: usize) {
        let this = &mut self.members[member];
        this.transmits.clear();
        this.feeds.clear();
        this.timers.clear();
        let local = this.local();
        let context = Context {
            now_ms: self.now_ms,
            randomness: &mut this.randomness,
        };
        let (engine, step) =
            Engine::open(local, &this.store.snapshot(), context).unwrap_or_else(|error| panic!("{error}"));
        this.engine = Some(engine);
        self.commit(member, step);
    }

    pub(crate) fn attach(&mut self, member: usize) {
        let router_instance_id = self.router.instance;
        self.handle(member, Input::RouterInstance { router_instance_id });
    }

    /// A crash and a restart: whatever was not committed is gone, and so is everything in memory.
    pub(crate) fn restart(&mut self, member: usize) {
        self.crash(member);
        self.open(member);
        self.attach(member);
    }

    pub(crate) fn crash(&mut self, member: usize) {
        let this = &mut self.members[member];
        this.engine = None;
        this.transmits.clear();
        this.feeds.clear();
        this.timers.clear();
    }

    /// One input, its commit and its effects.
    pub(crate) fn handle(&mut self, member: usize, input: Input) {
        let crash = self.crash_at.remove(&member);
        let step = self.step(member, input);
        match crash {
            None => self.commit(member, step),
            Some(CrashPoint::BeforeCommit) => self.crash(member),
            Some(CrashPoint::AfterCommit) => {
                self.members[member]
                    .store
                    .apply(&step.transitions)
                    .expect("a commit");
                self.crash(member);
            }
        }
    }

    /// One input, without its commit.
    pub(crate) fn step(&mut self, member: usize, input: Input) -> Step {
        let this = &mut self.members[member];
        let context = Context {
            now_ms: self.now_ms,
            randomness: &mut this.randomness,
        };
        this.engine
            .as_mut()
            .expect("an open engine")
            .handle(input, context)
    }

    /// Commits a step and carries out its effects.
    pub(crate) fn commit(&mut self, member: usize, step: Step) {
        let this = &mut self.members[member];
        this.store.apply(&step.transitions).unwrap_or_else(|error| {
            panic!("member {member}: {error}");
        });
        this.ignored.extend(step.ignored);
        for effect in step.effects {
            self.carry_out(member, effect);
        }
        while let Some((read_id, reads)) = self.members[member].reads.pop_front() {
            let whole = self.members[member].store.snapshot();
            let mut rows = Snapshot::new();
            for read in &reads {
                let (Read::Row(table, _) | Read::Prefix(table, _)) = read;
                for (key, bytes) in whole.read(read) {
                    rows.insert(*table, key, bytes);
                }
            }
            let rows = Box::new(rows);
            self.handle(member, Input::Rows { read_id, rows });
        }
    }

    /// The Router comes back as another instance, and everyone who is up learns of it.
    pub(crate) fn restart_router(&mut self, number: u8) {
        self.router.restart(number);
        for member in 0..self.members.len() {
            if self.members[member].engine.is_some() {
                self.attach(member);
            }
        }
    }

    /// A member loses what its feed of a conversation holds beyond what it read, and the transport says so.
    pub(crate) fn lose_unread(&mut self, member: usize, membership: &Membership) {
        let conversation_id = *membership.conversation_id();
        let last = self
            .router
            .log
            .iter()
            .filter(|ordered| ordered.instance == self.router.instance)
            .count() as u64;
        self.members[member]
            .feeds
            .insert(Feed::Conversation(conversation_id), last);
        self.handle(member, Input::FeedGap { conversation_id });
    }

    fn carry_out(&mut self, member: usize, effect: Effect) {
        let this = &mut self.members[member];
        match effect {
            Effect::Transmit(transmit) => this.transmits.push_back(*transmit),
            Effect::Watch { feed, after } => {
                if this.feeds_of != self.router.instance {
                    this.feeds_of = self.router.instance;
                    this.feeds.clear();
                }
                this.feeds.entry(feed).or_insert(after.unwrap_or(0));
            }
            Effect::Unwatch { feed } => {
                this.feeds.remove(&feed);
            }
            Effect::SetTimer { id, at_ms } => {
                this.timers.insert(id, at_ms);
            }
            Effect::CancelTimer { id } => {
                this.timers.remove(&id);
            }
            Effect::Bound {
                request_id, post_id, ..
            } => {
                this.bound.insert(request_id, post_id);
            }
            Effect::Sent { request_id, result } => {
                let before = this.sent.insert(request_id, result);
                assert!(before.is_none(), "a send ends once");
            }
            Effect::Deliver(delivery) => this.delivered.push(delivery),
            Effect::Acknowledged { .. } => {}
            Effect::Progress { post_id, stage, .. } => this.progress.push((post_id, stage)),
            Effect::ConversationState {
                conversation_id,
                status,
            } => {
                this.status.insert(conversation_id, status);
            }
            Effect::Read { read_id, reads } => this.reads.push_back((read_id, reads)),
            Effect::Stalled {
                conversation_id,
                stall,
            } => {
                this.stalls.insert(conversation_id, stall);
            }
            Effect::Fatal { reason } => this.fatal = Some(reason),
        }
    }

    // ── the host ────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Posts a text.
    pub(crate) fn send(&mut self, member: usize, membership: &Membership, text: &str) -> RequestId {
        self.next_request += 1;
        let request_id = RequestId(self.next_request);
        let content = Content::text(text).expect("content");
        let request = SendRequest {
            request_id,
            membership: membership.clone(),
            content,
        };
        self.handle(member, Input::Send(Box::new(request)));
        request_id
    }

    pub(crate) fn acknowledge(&mut self, member: usize, delivery: &Delivery) {
        self.members[member]
            .acknowledged
            .insert(delivery.delivery_token.to_string());
        self.handle(
            member,
            Input::Acknowledge {
                delivery_token: delivery.delivery_token,
            },
        );
    }

    // ── time and transport ──────────────────────────────────────────────────────────────────────────────────────────

    /// The Router answers a member's first transmission. False when there is none.
    pub(crate) fn transmit_one(&mut self, member: usize) -> bool {
        let Some(transmit) = self.members[member].transmits.pop_front() else {
            return false;
        };
        let outcome = if self.members[member].online {
            self.router.send(&transmit)
        } else {
            SendOutcome::TransportFailure
        };
        self.handle(
            member,
            Input::SendOutcome {
                outbound_id: transmit.outbound_id,
                outcome,
            },
        );
        true
    }

    /// The Router orders a member's first transmission, and the answer is lost.
    pub(crate) fn transmit_and_lose_the_answer(&mut self, member: usize) {
        let transmit = self.members[member]
            .transmits
            .pop_front()
            .expect("a transmission");
        self.router.send(&transmit);
        let outcome = SendOutcome::TransportFailure;
        self.handle(
            member,
            Input::SendOutcome {
                outbound_id: transmit.outbound_id,
                outcome,
            },
        );
    }

    /// Answers a member's first transmission with any outcome.
    pub(crate) fn answer(
        &mut self,
        member: usize,
        outcome: impl FnOnce(&Transmit) -> SendOutcome,
    ) -> Transmit {
        let transmit = self.members[member]
            .transmits
            .pop_front()
            .expect("a transmission");
        let outcome = outcome(&transmit);
        self.handle(
            member,
            Input::SendOutcome {
                outbound_id: transmit.outbound_id,
                outcome,
            },
        );
        transmit
    }

    /// Hands a member the next message of one of its feeds. False when it has read everything.
    pub(crate) fn deliver_one(&mut self, member: usize) -> bool {
        let this = &self.members[member];
        if !this.online || this.engine.is_none() {
            return false;
        }
        let next = self.router.log.iter().find(|ordered| {
            ordered.instance == self.router.instance
                && feed_of(ordered, this.id())
                    .is_some_and(|feed| this.feeds.get(&feed).is_some_and(|read| ordered.position > *read))
        });
        let Some(ordered) = next.cloned() else {
            return false;
        };
        self.deliver(member, &ordered);
        true
    }

    /// Hands a member one message, wherever it stands.
    pub(crate) fn deliver(&mut self, member: usize, ordered: &Ordered) {
        let feed = feed_of(ordered, self.members[member].id()).expect("a message for the member");
        self.members[member].feeds.insert(feed, ordered.position);
        let input = self.input(ordered);
        self.handle(member, input);
    }

    /// A message as the transport hands it over.
    pub(crate) fn input(&self, ordered: &Ordered) -> Input {
        let (message, position) = (Some(ordered.message.clone()), ordered.position);
        let router_instance_id = ordered.instance;
        match ordered.feed {
            OrderedFeed::Conversation(conversation_id) => Input::Delivered(Box::new(Delivered {
                conversation_id,
                message,
                position,
                router_instance_id,
            })),
            OrderedFeed::Welcome(_) => {
                let sender = ordered.message.sender();
                let sender_card = self
                    .members
                    .iter()
                    .find(|other| other.id() == sender)
                    .map(|other| other.agent.card.clone());
                Input::InvitationDelivered(Box::new(InvitationDelivered {
                    message,
                    sender_card,
                    position,
                    router_instance_id,
                }))
            }
        }
    }

    /// Lets everything happen that needs no timer, fairly, until nothing does.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut moved = false;
            for member in 0..self.members.len() {
                if self.members[member].engine.is_none() {
                    continue;
                }
                moved |= self.transmit_one(member);
                moved |= self.deliver_one(member);
            }
            if !moved {
                return;
            }
        }
        panic!("the world does not settle");
    }

    /// Moves the clock to the next timer of any member and lets it go off. False when there is none.
    pub(crate) fn next_timer(&mut self) -> bool {
        let next = (0..self.members.len())
            .filter(|member| self.members[*member].engine.is_some())
            .flat_map(|member| {
                self.members[member]
                    .timers
                    .iter()
                    .map(move |(id, at_ms)| (*at_ms, member, *id))
            })
            .min();
        let Some((at_ms, member, id)) = next else {
            return false;
        };
        self.now_ms = self.now_ms.max(at_ms);
        self.members[member].timers.remove(&id);
        self.handle(member, Input::Timer(id));
        true
    }

    /// Lets everything happen, timers included, until no timer is left.
    pub(crate) fn run_out(&mut self) {
        for _ in 0..10_000 {
            self.settle();
            if !self.next_timer() {
                return;
            }
        }
        panic!("the timers do not run out");
    }

    // ── what members sent ───────────────────────────────────────────────────────────────────────────────────────────

    /// Every ordered message of a conversation, opened as its sender, who is a recipient.
    pub(crate) fn opened(&self, membership: &Membership) -> Vec<(usize, Plaintext)> {
        let conversation = OrderedFeed::Conversation(*membership.conversation_id());
        self.router
            .log
            .iter()
            .filter(|ordered| ordered.feed == conversation)
            .filter_map(|ordered| {
                let sender = self
                    .members
                    .iter()
                    .position(|member| member.id() == ordered.message.sender())?;
                let agent = &self.members[sender].agent;
                let live = WireVersions::live();
                let outer =
                    open_outer_message(&ordered.message, membership, &agent.card, &agent.key, &live).ok()?;
                Some((sender, outer.plaintext))
            })
            .collect()
    }

    /// What each ordered message of a conversation is, for tests that count.
    pub(crate) fn kinds(&self, membership: &Membership) -> Vec<(usize, &'static str)> {
        self.opened(membership)
            .into_iter()
            .map(|(sender, plaintext)| (sender, kind_of(&plaintext)))
            .collect()
    }

    pub(crate) fn count(&self, membership: &Membership, kind: &str) -> usize {
        self.kinds(membership)
            .iter()
            .filter(|(_, found)| *found == kind)
            .count()
    }

    /// A member's verified history of a conversation.
    pub(crate) fn history(&self, member: usize, membership: &Membership) -> Vec<history::HistoryEntry> {
        history::read(
            &self.members[member].store.snapshot(),
            membership.conversation_id(),
            &test_support::registry(),
            &test_support::history(),
        )
        .expect("a verified history")
        .map_or_else(Vec::new, |history| history.entries)
    }

    pub(crate) fn chain(&self, member: usize, membership: &Membership) -> Vec<RecordHash> {
        self.history(member, membership)
            .iter()
            .map(|entry| entry.record_hash)
            .collect()
    }

    /// Puts a message into the Router's order, as a member that runs no engine of ours does.
    pub(crate) fn inject(&mut self, membership: &Membership, message: EncodedSignedMessage) {
        self.router
            .append(OrderedFeed::Conversation(*membership.conversation_id()), message);
    }

    /// A plaintext sealed to everyone by a member.
    pub(crate) fn outer(
        &mut self,
        sender: usize,
        membership: &Membership,
        plaintext: &[u8],
    ) -> EncodedSignedMessage {
        let this = &mut self.members[sender];
        let version = conclave_harness::WIRE_VERSION;
        let Agent { card, key } = &this.agent;
        seal_outer_message(plaintext, membership, card, key, version, &mut this.randomness)
            .expect("a sealed message")
            .into_encoded()
    }

    /// As [`outer`](Self::outer), but some members cannot open it.
    pub(crate) fn outer_sealed_away(
        &mut self,
        sender: usize,
        membership: &Membership,
        plaintext: &[u8],
        away: &[usize],
    ) -> EncodedSignedMessage {
        let whole = self.outer(sender, membership, plaintext);
        let Agent { card, key } = &self.members[sender].agent;
        let verified = whole.verify(card, &WireVersions::live()).expect("own message");
        let mut body: serde_json::Value = serde_json::from_slice(verified.body()).expect("a sealed body");
        for member in away {
            let id = self.members[*member].id();
            let place = membership
                .agent_ids()
                .iter()
                .position(|member| *member == id)
                .expect("a member");
            let key = body["recipients"][place]["encrypted_key"]
                .as_str()
                .expect("a key")
                .to_owned();
            let other = if key.starts_with('A') { "B" } else { "A" };
            body["recipients"][place]["encrypted_key"] = format!("{other}{}", &key[1..]).into();
        }
        let body = serde_jcs::to_vec(&body).expect("a body");
        SignedMessage::sign(
            card,
            key,
            &membership.agent_ids(),
            verified.message_id(),
            &body,
            verified.version(),
        )
        .expect("a signed message")
        .into_encoded()
    }

    // ── what must always hold ───────────────────────────────────────────────────────────────────────────────────────

    /// Safety of a conversation of honest members, from the Router's whole order and from every store.
    pub(crate) fn check(&self, membership: &Membership) {
        type Place = (Option<RecordHash>, AnchorHash);
        let mut predecessor: BTreeMap<ActionHash, Place> = BTreeMap::new();
        let mut record_predecessor: BTreeMap<RecordHash, Place> = BTreeMap::new();
        let mut signed: BTreeMap<(usize, Place), ActionHash> = BTreeMap::new();
        let mut voted: BTreeMap<(usize, Place), RecordHash> = BTreeMap::new();
        let mut reanchored: BTreeMap<(usize, AnchorHash, RouterInstanceId), AnchorHash> = BTreeMap::new();
        let mut copies: BTreeSet<(usize, RecordHash)> = BTreeSet::new();
        for (sender, plaintext) in self.opened(membership) {
            match plaintext {
                Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => {
                    let previous = (
                        proposal.action.previous_record_hash().copied(),
                        anchor_of(&proposal.action),
                    );
                    predecessor.insert(proposal.action.hash(), previous);
                }
                Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)) => {
                    let previous = (
                        record.record_core.previous_record_hash().copied(),
                        *record.record_core.anchor_hash(),
                    );
                    record_predecessor.insert(record.record_hash, previous);
                    copies.insert((sender, record.record_hash));
                }
                Plaintext::Evidence(evidence) => match statement(&evidence) {
                    EvidenceStatement::ActionSignature(statement) => {
                        let place = (sender, predecessor[&statement.action_hash]);
                        let before = signed.insert(place, statement.action_hash);
                        assert!(
                            before.is_none_or(|before| before == statement.action_hash),
                            "two actions signed"
                        );
                    }
                    EvidenceStatement::DurabilityVote(statement) => {
                        assert!(
                            copies.contains(&(sender, statement.record_hash)),
                            "a vote before its copy"
                        );
                        let place = (sender, record_predecessor[&statement.record_hash]);
                        let before = voted.insert(place, statement.record_hash);
                        assert!(
                            before.is_none_or(|before| before == statement.record_hash),
                            "two records voted"
                        );
                    }
                    EvidenceStatement::ReanchorVote(statement) => {
                        let body = &statement.reanchor;
                        let place = (sender, body.previous_anchor_hash, body.router_instance_id);
                        let before = reanchored.insert(place, statement.anchor_hash);
                        assert!(
                            before.is_none_or(|before| before == statement.anchor_hash),
                            "two re-anchors voted"
                        );
                    }
                    EvidenceStatement::CatchUpAttestation(_) => {}
                },
                Plaintext::Packet(_) => {}
            }
        }
        let chains: Vec<_> = (0..self.members.len())
            .map(|member| self.chain(member, membership))
            .collect();
        let longest = chains.iter().max_by_key(|chain| chain.len()).expect("a member");
        for (member, chain) in chains.iter().enumerate() {
            assert_eq!(
                chain[..],
                longest[..chain.len()],
                "member {member} has another history"
            );
        }
        for member in &self.members {
            let mut tokens: BTreeMap<RecordHash, String> = BTreeMap::new();
            for delivery in &member.delivered {
                let token = delivery.delivery_token.to_string();
                let before = tokens.insert(delivery.record_hash, token.clone());
                assert!(
                    before.is_none_or(|before| before == token),
                    "one record, two tokens"
                );
            }
        }
    }
}

pub(crate) fn statement(message: &EncodedSignedMessage) -> EvidenceStatement {
    use conclave_conversation::values::ClosedValue;
    let card = (0..64)
        .map(Agent::new)
        .find(|agent| agent.id() == message.sender())
        .expect("an agent")
        .card;
    let message = message
        .verify(&card, &test_support::history())
        .expect("a signed statement");
    EvidenceStatement::decode(message.body()).expect("a statement")
}

/// The anchor an action binds.
fn anchor_of(action: &ActionCore) -> AnchorHash {
    match action {
        ActionCore::Genesis(genesis) => AnchorBody::from(genesis.anchor.clone()).hash(),
        ActionCore::Post(post) => post.anchor_hash,
    }
}

pub(crate) fn kind_of(plaintext: &Plaintext) -> &'static str {
    match plaintext {
        Plaintext::Packet(DirectPacket::ActionProposal(_)) => "proposal",
        Plaintext::Packet(DirectPacket::ActionCertifiedRecord(_)) => "copy",
        Plaintext::Packet(DirectPacket::CertifiedRecord(_)) => "head",
        Plaintext::Packet(DirectPacket::CatchUpRequest(_)) => "request",
        Plaintext::Packet(DirectPacket::CatchUpPage(_)) => "page",
        Plaintext::Packet(DirectPacket::CatchUpIncomplete(_)) => "incomplete",
        Plaintext::Packet(DirectPacket::CompletedReanchor(_)) => "completed",
        Plaintext::Evidence(message) => match statement(message) {
            EvidenceStatement::ActionSignature(_) => "signature",
            EvidenceStatement::DurabilityVote(_) => "vote",
            EvidenceStatement::ReanchorVote(_) => "reanchor",
            EvidenceStatement::CatchUpAttestation(_) => "attestation",
        },
    }
}

fn feed_of(ordered: &Ordered, member: AgentId) -> Option<Feed> {
    match ordered.feed {
        OrderedFeed::Conversation(conversation) => Some(Feed::Conversation(conversation)),
        OrderedFeed::Welcome(recipient) => (recipient == member).then_some(Feed::Invitations),
    }
}
