//! A Subscribe stream starts with Started (API-250), acknowledges every update in order with targets read after it
//! (API-252), keeps registrations apart (API-253), delivers each topic's envelopes once, in order and without a gap
//! (API-254), lets no registration wait for another's history (API-261), pings only when it may (API-257) and ends only for
//! a reason (API-259).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::EnvelopeMeta;

use super::{Violation, facts::Facts, violation};
use crate::backend::{
    history::{History, Moment, id_of, short, topic_of},
    subscription::{Asked, Event, Subscription},
};

pub(super) fn check(history: &History, facts: &Facts) -> Vec<Violation> {
    let subscriptions = history.subscriptions.iter();
    subscriptions
        .flat_map(|subscription| {
            let mut replay = Replay::new(facts, history.is_output_short);
            replay.run(subscription);
            let found = replay.found.into_iter();
            found.map(move |(text, ids)| violation(format!("{text}: {subscription}"), ids))
        })
        .collect()
}

/// What an open stream still owes its client when everything has come to rest.
pub(in crate::backend) fn missing(subscription: &Subscription, facts: &Facts) -> Vec<String> {
    let mut replay = Replay::new(facts, false);
    replay.run(subscription);
    let late = replay.registered.iter().filter(|(topic, known)| {
        let log = facts.logs.get(*topic).and_then(|log| log.last());
        known.last < log.map_or(0, id_of)
    });
    let mut missing: Vec<String> = late
        .map(|(topic, known)| format!("{} stays at {}", short(topic), known.last))
        .collect();
    let pending = replay.pending.iter();
    missing.extend(pending.map(|(_, asked)| format!("update {} stays unanswered", asked.id)));
    missing
}

/// A registration.
struct Registered {
    number: u64,
    /// Everything up to this id was delivered, or lies below the cursor.
    last: u64,
    target: u64,
    /// Registrations that must get history before this one gets any again.
    waits_for: BTreeSet<u64>,
}

impl Registered {
    fn has_history(&self) -> bool {
        self.last < self.target
    }
}

/// What a stream came to, event by event.
struct Replay<'a> {
    facts: &'a Facts,
    is_output_short: bool,
    is_started: bool,
    registered: BTreeMap<Bytes, Registered>,
    last_number: u64,
    pending: VecDeque<(Moment, Asked)>,
    /// Pings that came and went unanswered.
    unanswered: Option<u64>,
    own_pings: VecDeque<u64>,
    has_ended_its_half: bool,
    found: Vec<(String, Vec<u64>)>,
}

impl<'a> Replay<'a> {
    fn new(facts: &'a Facts, is_output_short: bool) -> Self {
        Self {
            facts,
            is_output_short,
            is_started: false,
            registered: BTreeMap::new(),
            last_number: 0,
            pending: VecDeque::new(),
            unanswered: None,
            own_pings: VecDeque::new(),
            has_ended_its_half: false,
            found: Vec::new(),
        }
    }

    fn find(&mut self, text: String, ids: &[u64]) {
        self.found.push((text, ids.to_vec()));
    }

    fn run(&mut self, subscription: &Subscription) {
        for (moment, _, event) in &subscription.events {
            let is_frame = !matches!(
                event,
                Event::Sent(_) | Event::SentPing(_) | Event::SentPong(_) | Event::EndedItsHalf
            );
            if is_frame && self.is_started == matches!(event, Event::Started) {
                self.find(format!("at {moment} Started is not the first frame"), &[]);
            }
            match event {
                Event::Started => self.is_started = true,
                Event::Sent(asked) => self.pending.push_back((*moment, asked.clone())),
                Event::Applied(id, targets) => self.apply(*moment, *id, targets),
                Event::Messages(metas) => self.deliver(*moment, metas),
                Event::Pinged(nonce) => {
                    if let Some(earlier) = self.unanswered.replace(*nonce) {
                        self.find(
                            format!("at {moment} a Ping came while {earlier} was unanswered"),
                            &[],
                        );
                    }
                }
                Event::SentPong(_) => self.unanswered = None,
                Event::SentPing(nonce) => self.own_pings.push_back(*nonce),
                Event::Ponged(nonce) => {
                    if self.own_pings.pop_front() != Some(*nonce) {
                        self.find(format!("at {moment} a Pong answers nothing"), &[]);
                    }
                }
                Event::EndedItsHalf => self.has_ended_its_half = true,
            }
        }
        self.end(subscription);
    }

    fn apply(&mut self, moment: Moment, id: u64, targets: &[(Bytes, u64)]) {
        let Some((sent, asked)) = self.pending.pop_front().filter(|(_, asked)| asked.id == id) else {
            return self.find(format!("at {moment} Applied {id} answers another update"), &[]);
        };
        for topic in &asked.removes {
            if let Some(removed) = self.registered.remove(topic) {
                self.settle(removed.number);
            }
        }
        let added: Vec<&(Bytes, u64)> = asked
            .adds
            .iter()
            .filter(|(topic, _)| !self.registered.contains_key(topic))
            .collect();
        let topics = |list: Vec<&Bytes>| list.iter().map(|topic| short(topic)).collect::<Vec<_>>();
        let (wanted, got) = (
            topics(added.iter().map(|(topic, _)| topic).collect()),
            topics(targets.iter().map(|(topic, _)| topic).collect()),
        );
        if wanted != got {
            return self.find(format!("Applied {id} lists {got:?} and not {wanted:?}"), &[]);
        }
        for ((topic, cursor), (_, target)) in added.into_iter().zip(targets) {
            self.check_target(moment, sent, topic, *target);
            self.last_number += 1;
            let registered = Registered {
                number: self.last_number,
                last: *cursor,
                target: *target,
                waits_for: BTreeSet::new(),
            };
            self.registered.insert(topic.clone(), registered);
        }
    }

    /// A target is an envelope of its topic, none above it was seen before the update was sent, and it was sent before the
    /// target was told.
    fn check_target(&mut self, moment: Moment, sent: Moment, topic: &Bytes, target: u64) {
        let log = self.facts.logs.get(topic).map_or(&[][..], Vec::as_slice);
        let known = log.iter().find(|meta| id_of(meta) == target);
        if target != 0 && known.is_none() {
            self.find(
                format!("the target {target} of {} is no envelope", short(topic)),
                &[target],
            );
        }
        let seen = |id: u64| self.facts.first_seen.get(&id).copied();
        let above = log
            .iter()
            .map(id_of)
            .find(|id| *id > target && seen(*id).is_some_and(|seen| seen < sent));
        if let Some(id) = above {
            let text = format!(
                "the target of {} at {moment} is {target}, and {id} was known by {sent}",
                short(topic)
            );
            self.find(text, &[target, id]);
        }
    }

    fn deliver(&mut self, moment: Moment, metas: &[EnvelopeMeta]) {
        let mut history_of = BTreeSet::new();
        let mut wrong = Vec::new();
        for meta in metas {
            let (topic, id) = (topic_of(meta), id_of(meta));
            let Some(known) = self.registered.get_mut(&topic) else {
                wrong.push((
                    format!("at {moment} {id} of {} comes unasked", short(&topic)),
                    vec![id],
                ));
                continue;
            };
            let next = self.facts.ids_between(&topic, known.last, id);
            if next != [id] {
                let text = format!(
                    "at {moment} {id} of {} follows {}, and the topic holds {next:?} there",
                    short(&topic),
                    known.last
                );
                wrong.push((text, vec![id]));
            }
            if id <= known.target {
                history_of.insert(known.number);
            }
            known.last = known.last.max(id);
        }
        self.found.extend(wrong);
        for number in &history_of {
            self.settle(*number);
        }
        self.check_fairness(moment, &history_of);
    }

    /// Nobody waits any more for this registration to get history.
    fn settle(&mut self, number: u64) {
        for known in self.registered.values_mut() {
            known.waits_for.remove(&number);
        }
    }

    fn check_fairness(&mut self, moment: Moment, history_of: &BTreeSet<u64>) {
        // One that the client has asked to remove may be gone before that is acknowledged.
        let is_leaving = |topic: &Bytes| {
            let mut pending = self.pending.iter();
            pending.any(|(_, asked)| asked.removes.contains(topic))
        };
        let others = self.registered.iter().filter(|(topic, known)| {
            known.has_history() && !history_of.contains(&known.number) && !is_leaving(topic)
        });
        let behind: BTreeSet<u64> = others.map(|(_, known)| known.number).collect();
        let mut unfair = Vec::new();
        for (topic, known) in &mut self.registered {
            // One whose history was delivered by pushes of what was stored meanwhile waits for nothing.
            known.waits_for.retain(|number| behind.contains(number));
            if !history_of.contains(&known.number) {
                continue;
            }
            if !known.waits_for.is_empty() {
                unfair.push(format!(
                    "at {moment} {} gets history twice before another got any",
                    short(topic)
                ));
            }
            known.waits_for.clone_from(&behind);
        }
        for text in unfair {
            self.find(text, &[]);
        }
    }

    fn end(&mut self, subscription: &Subscription) {
        let Some(code) = subscription.ended else { return };
        let is_fair = match code {
            Code::Unavailable => true,
            Code::Ok => self.has_ended_its_half && (self.pending.is_empty() || subscription.breaks_rules),
            Code::InvalidArgument => subscription.breaks_rules,
            // A Pong did not come, or a shard that is asked for heads waited for the Sequencer too long.
            Code::DeadlineExceeded => {
                !self.pending.is_empty() || !subscription.manner.answers_pings && self.unanswered.is_some()
            }
            Code::ResourceExhausted => self.is_output_short,
            _ => false,
        };
        if !is_fair {
            self.find(format!("it ends with {code} for no reason"), &[]);
        }
    }
}
