//! A small world for engines: members with stores, hosts and timers, and one Router with an order that can be made to
//! lose answers. Everything is deterministic and under the test's control.
//!
//! | file | what it has |
//! | - | - |
//! | `router` | the order, and how a transmission is answered |
//! | `member` | one agent, and what became of its effects |
//! | `transport` | what moves messages and time |
//! | `seen` | what was sent and what is stored, opened for a test to look at; and messages that no engine made |
//! | `invariants` | what must hold whatever happens |

mod invariants;
mod member;
mod router;
mod seen;
mod transport;

use std::collections::BTreeMap;

use conclave_conversation::engine::{Context, Delivery, Engine, Input, RequestId, SendRequest, Step};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::{Read, Snapshot};
use conclave_conversation::test_support::{self, router_instance};
use conclave_conversation::values::{Content, PostId};

pub(crate) use self::member::{Member, Release, text_of};
pub(crate) use self::router::{Ordered, OrderedFeed, Router};
pub(crate) use self::seen::kind_of;

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
    /// Members that a test speaks for, and that nothing is asked of.
    pub(crate) deviants: Vec<usize>,
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
        let members = (0..members).map(Member::new);
        let mut world = World {
            now_ms: 1_000_000,
            crash_at: BTreeMap::new(),
            deviants: Vec::new(),
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
        let current = self.router.instance;
        for effect in step.effects {
            self.members[member].carry_out(effect, current);
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

    /// Posts a text.
    pub(crate) fn send(&mut self, member: usize, membership: &Membership, text: &str) -> RequestId {
        self.send_as(None, member, membership, text)
    }

    /// Posts a text under an id that the host minted.
    pub(crate) fn send_as(
        &mut self,
        post_id: Option<PostId>,
        member: usize,
        membership: &Membership,
        text: &str,
    ) -> RequestId {
        self.next_request += 1;
        let request_id = RequestId(self.next_request);
        let content = Content::text(text).expect("content");
        let request = SendRequest {
            request_id,
            membership: membership.clone(),
            content,
            post_id,
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
}
