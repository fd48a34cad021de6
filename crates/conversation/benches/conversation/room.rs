//! Engines in one process around one order, with nothing between them: no faults, no delays, no timers.

use std::collections::{BTreeMap, VecDeque};

use conclave_conversation::engine::{
    Context, ConversationStatus, Delivered, Effect, Engine, Input, InvitationDelivered, Local, RequestId,
    SendOutcome, SendRequest, Step,
};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::{MemoryStore, Read, Snapshot};
use conclave_conversation::test_support::{Agent, history, registry, router_instance};
use conclave_conversation::values::{Content, ConversationId};
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{AgentId, EncodedSignedMessage, RouterInstanceId};

pub(crate) struct Member {
    pub(crate) agent: Agent,
    engine: Engine,
    store: MemoryStore,
    randomness: SeededRandomness,
    statuses: BTreeMap<ConversationId, ConversationStatus>,
}

pub(crate) struct Room {
    pub(crate) members: Vec<Member>,
    places: BTreeMap<AgentId, usize>,
    /// Everything ordered.
    pub(crate) log: Vec<EncodedSignedMessage>,
    instance: RouterInstanceId,
    inputs: VecDeque<(usize, Input)>,
    requests: u64,
    finished: u64,
}

impl Room {
    pub(crate) fn new(members: usize) -> Self {
        let mut room = Room {
            members: Vec::new(),
            places: BTreeMap::new(),
            log: Vec::new(),
            instance: router_instance(0),
            inputs: VecDeque::new(),
            requests: 0,
            finished: 0,
        };
        for place in 0..members {
            let agent = Agent::new(place);
            room.places.insert(agent.id(), place);
            let store = MemoryStore::new();
            let mut randomness = SeededRandomness::new(place as u64);
            let context = Context {
                now_ms: 0,
                randomness: &mut randomness,
            };
            let opened = Engine::open(local(&agent), &store.snapshot(), context);
            let (engine, step) = opened.unwrap_or_else(|error| panic!("{error}"));
            room.members.push(Member {
                agent,
                engine,
                store,
                randomness,
                statuses: BTreeMap::new(),
            });
            room.carry_out(place, step);
        }
        room.attach();
        room
    }

    pub(crate) fn membership(&self, places: &[usize]) -> Membership {
        let cards = places
            .iter()
            .map(|place| self.members[*place].agent.card.clone())
            .collect();
        Membership::from_cards(cards, &history()).expect("a membership")
    }

    pub(crate) fn everyone(&self) -> Membership {
        self.membership(&(0..self.members.len()).collect::<Vec<_>>())
    }

    /// Posts, and lets everything happen that follows.
    pub(crate) fn post(&mut self, author: usize, membership: &Membership, text: &str) {
        self.requests += 1;
        let request = SendRequest {
            request_id: RequestId(self.requests),
            membership: membership.clone(),
            content: Content::text(text).expect("a content"),
            post_id: None,
        };
        self.inputs.push_back((author, Input::Send(Box::new(request))));
        self.run();
        assert_eq!(self.finished, self.requests, "every post is certified");
    }

    /// The Router comes back as another instance, and everything follows.
    pub(crate) fn restart_router(&mut self) {
        self.instance = router_instance(1);
        self.attach();
    }

    pub(crate) fn require_recovered(&self) {
        let statuses = self.members.iter().flat_map(|member| member.statuses.values());
        assert!(
            statuses
                .into_iter()
                .all(|status| *status == ConversationStatus::Recovered)
        );
    }

    /// Who a member is, and what its store holds.
    pub(crate) fn stored(&self, place: usize) -> (Local, Snapshot) {
        let member = &self.members[place];
        (local(&member.agent), member.store.snapshot())
    }

    pub(crate) fn place_of(&self, agent: &AgentId) -> usize {
        self.places[agent]
    }

    fn attach(&mut self) {
        let router_instance_id = self.instance;
        for place in 0..self.members.len() {
            self.inputs
                .push_back((place, Input::RouterInstance { router_instance_id }));
        }
        self.run();
    }

    fn run(&mut self) {
        while let Some((place, input)) = self.inputs.pop_front() {
            let member = &mut self.members[place];
            let context = Context {
                now_ms: 0,
                randomness: &mut member.randomness,
            };
            let step = member.engine.handle(input, context);
            self.carry_out(place, step);
        }
    }

    fn carry_out(&mut self, place: usize, step: Step) {
        let store = self.members[place].store.clone();
        store
            .apply(&step.transitions)
            .unwrap_or_else(|error| panic!("{error}"));
        for effect in step.effects {
            match effect {
                Effect::Transmit(transmit) => {
                    let position = self.log.len() as u64 + 1;
                    self.log.push(transmit.message.clone());
                    for invitation in &transmit.invitations {
                        let message = EncodedSignedMessage::from_canonical_bytes(&invitation.message);
                        let delivered = InvitationDelivered {
                            message: message.ok(),
                            sender_card: Some(self.members[place].agent.card.clone()),
                            position,
                            router_instance_id: self.instance,
                        };
                        let to = self.places[&invitation.recipient_agent_id];
                        self.inputs
                            .push_back((to, Input::InvitationDelivered(Box::new(delivered))));
                    }
                    let outcome = SendOutcome::Accepted {
                        router_instance_id: self.instance,
                        digest: transmit.message.digest(),
                    };
                    let outbound_id = transmit.outbound_id;
                    self.inputs
                        .push_back((place, Input::SendOutcome { outbound_id, outcome }));
                    for recipient in transmit.message.recipients() {
                        let delivered = Delivered {
                            conversation_id: transmit.conversation_id,
                            message: Some(transmit.message.clone()),
                            position,
                            router_instance_id: self.instance,
                        };
                        let to = self.places[recipient];
                        self.inputs.push_back((to, Input::Delivered(Box::new(delivered))));
                    }
                }
                Effect::Read { read_id, reads } => {
                    let whole = store.snapshot();
                    let mut rows = Snapshot::new();
                    for read in &reads {
                        let (Read::Row(table, _) | Read::Prefix(table, _)) = read;
                        for (key, bytes) in whole.read(read) {
                            rows.insert(*table, key, bytes);
                        }
                    }
                    let rows = Box::new(rows);
                    self.inputs.push_back((place, Input::Rows { read_id, rows }));
                }
                Effect::Sent { result, .. } => {
                    result.unwrap_or_else(|error| panic!("{error}"));
                    self.finished += 1;
                }
                Effect::ConversationState {
                    conversation_id,
                    status,
                } => {
                    self.members[place].statuses.insert(conversation_id, status);
                }
                Effect::Fatal { reason } => panic!("{reason}"),
                _ => {}
            }
        }
    }
}

fn local(agent: &Agent) -> Local {
    Local::new(agent.card.clone(), agent.key.clone(), registry())
}
