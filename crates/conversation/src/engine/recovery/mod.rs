//! Recovery of one conversation: a fence, behind which it catches up, re-anchors where its Router instance is gone, and
//! from which it leaves by itself ("Catch-up and Router restart", `harness-client.md` 4.5 to 4.8).
//!
//! A run begins when
//! - the Router's instance is not the one the conversation is anchored to (it re-anchors), or is, but changed while the
//!   endpoint was attached or since the feed was last read (it catches up);
//! - the transport says that its cursor lies below what the Router kept ([`Input::FeedGap`](super::Input::FeedGap));
//! - a verified certified record arrives that this endpoint lacks and that does not extend its head.
//!
//! A cold start whose anchor and cursor name the Router's instance begins none: the feed goes on where its durable cursor
//! stands, so nothing can be missing. For the same reason a fenced conversation's cursor is durable only when its run ends:
//! a crash within a run finds the gap again.
//!
//! | file | what it decides |
//! | - | - |
//! | `request` | what is asked for, when again, and when everyone asked has answered enough |
//! | `answer` | what a member that asks is given |
//! | `successor` | which records are staged while the conversation re-anchors |
//! | `reanchor` | which re-anchor is voted for, and when it is complete |
//! | `anchor` | what goes with an anchor that is left |
//! | `picture` | what a run waits for, for whoever watches |

mod anchor;
mod answer;
mod picture;
mod reanchor;
mod request;
mod successor;

use conclave_harness::AgentId;

use super::conversation::{Conversation, Recovery};
use super::draft::Draft;
use super::effect::{Effect, RecoveryReason};
use super::ignored::Ignored;
use super::input::TimerId;
use super::run::Resume;
use super::shared::Shared;
use crate::certificates::{Subject, VerifiedEvidence, verify_evidence};
use crate::ordered::{OrderedMap, OrderedSet};
use crate::values::{ActionProposal, CatchUpRequest, DirectPacket, EvidenceStatement, Plaintext, RecordHash};

pub(super) use self::answer::{Answering, Asked};
pub(super) use self::reanchor::{Candidate, reanchor_row};
use self::successor::Hold;

/// How many answers settle the position that was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// `q(n) - 1` others.
    Quorum,
    /// All others, because a vote for an earlier instance's re-anchor here is known, while retries last.
    EveryMember,
    /// `q(n) - 1` others: the retries are spent.
    RetriesSpent,
    /// It is settled.
    Ready,
}

/// One recovery run of one conversation.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) reason: RecoveryReason,
    /// What was asked last.
    request: CatchUpRequest,
    /// Who answered that it cannot supply what follows.
    answered: OrderedSet<AgentId>,
    readiness: Readiness,
    retries: u32,
    /// The retries ran out: nothing is asked until something stirs.
    pub(super) paused: bool,
    hold: Hold,
    /// The latest re-anchor vote of each other member that cannot be counted yet.
    votes: OrderedMap<AgentId, VerifiedEvidence>,
    /// Whose input made this position be asked about again: once each.
    prompted: OrderedSet<AgentId>,
    /// What a restart found to be sent again.
    resume: Option<Resume>,
    /// Whether the anchor was left in this run.
    left_anchor: bool,
    /// The latest proposal of each member, with its place in the order of arrival. Nothing comes of it behind the fence; it
    /// is judged when the fence goes, so that a member that recovers late locks what those before it locked, and not its own
    /// post at the same head.
    set_aside: OrderedMap<AgentId, (u64, ActionProposal)>,
    /// The next place in that order.
    arrivals: u64,
}

impl Run {
    /// Whether the run began because the conversation is anchored to another instance.
    fn is_reanchoring(&self) -> bool {
        matches!(self.reason, RecoveryReason::RouterInstanceChanged { .. })
    }

    /// How many messages of members are kept for later.
    pub(super) fn kept_for_later(&self) -> usize {
        self.hold.len() + self.votes.len() + self.set_aside.len()
    }
}

impl Conversation {
    /// Fences the conversation and asks for what it lacks. Replaces an older run.
    pub(super) fn begin_run(
        &mut self,
        reason: RecoveryReason,
        resume: Option<Resume>,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) {
        let conversation_id = *self.membership.conversation_id();
        draft.effect(Effect::CancelTimer {
            id: TimerId::Resend(conversation_id),
        });
        shared.outbox.fence(conversation_id, draft);
        let mut run = Run {
            reason,
            request: self.catch_up_request(shared),
            answered: OrderedSet::new(),
            readiness: Readiness::Quorum,
            retries: 0,
            paused: false,
            hold: Hold::default(),
            votes: OrderedMap::new(),
            prompted: OrderedSet::new(),
            resume,
            left_anchor: false,
            set_aside: OrderedMap::new(),
            arrivals: 0,
        };
        if let Recovery::Running(before) = &mut self.recovery {
            run.resume = run.resume.or(before.resume.take());
        }
        if run.is_reanchoring() {
            // They bind an instance that is gone. What still matters of them is made again.
            shared.outbox.discard(conversation_id, draft);
            if let Some(resume) = &mut run.resume {
                resume.pending.clear();
            }
        }
        let is_reanchoring = run.is_reanchoring();
        self.recovery = Recovery::Running(Box::new(run));
        if is_reanchoring && self.head.is_none() && self.locked.is_none() {
            // A GENESIS that the local agent did not sign is certified nowhere: there is nothing to ask for.
            return self.settle(shared, draft);
        }
        self.ask(shared, draft);
    }

    pub(super) fn run(&self) -> Option<&Run> {
        match &self.recovery {
            Recovery::Running(run) => Some(run),
            Recovery::Recovered => None,
        }
    }

    fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.recovery {
            Recovery::Running(run) => Some(run),
            Recovery::Recovered => None,
        }
    }

    /// A member's message while the conversation is fenced.
    pub(super) fn on_fenced(
        &mut self,
        sender: AgentId,
        plaintext: Plaintext,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        // A settled position waits for votes, not for answers: only a member that asks may lack what it waits with.
        let asks = matches!(plaintext, Plaintext::Packet(DirectPacket::CatchUpRequest(_)));
        if sender != shared.local_id && (asks || self.run().is_some_and(|run| !run.is_ready())) {
            self.rearm(shared, draft);
        }
        match plaintext {
            Plaintext::Evidence(message) => {
                let evidence = verify_evidence(&message, &self.membership, &mut shared.memory)?;
                match evidence.subject() {
                    Subject::Action(_) => Err(Ignored::NotRecovered),
                    Subject::Record { record_hash, .. } => {
                        self.on_successor_vote(record_hash, evidence, shared, draft)
                    }
                    Subject::Reanchor(_) => self.on_reanchor_vote(evidence, shared, draft),
                    Subject::CatchUp => Err(Ignored::NoSubject),
                }
            }
            Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => {
                self.set_aside(sender, *proposal);
                Err(Ignored::NotRecovered)
            }
            Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)) => {
                self.on_successor(*record, shared, draft)
            }
            Plaintext::Packet(DirectPacket::CertifiedRecord(record)) => {
                self.on_certified(*record, shared, draft)
            }
            Plaintext::Packet(DirectPacket::CatchUpRequest(request)) => {
                self.on_catch_up_request(sender, *request, shared, draft)
            }
            Plaintext::Packet(DirectPacket::CatchUpPage(page)) => self.on_page(sender, *page, shared, draft),
            Plaintext::Packet(DirectPacket::CatchUpIncomplete(incomplete)) => {
                self.on_incomplete(sender, *incomplete, shared, draft)
            }
            Plaintext::Packet(DirectPacket::CompletedReanchor(completed)) => {
                self.on_completed_reanchor(sender, *completed, shared, draft)
            }
        }
    }

    fn set_aside(&mut self, sender: AgentId, proposal: ActionProposal) {
        let Some(run) = self.run_mut() else { return };
        match run.set_aside.get(&sender) {
            // A resend keeps the place of the first.
            Some((_, held)) if *held == proposal => {}
            _ => {
                run.set_aside.insert(sender, (run.arrivals, proposal));
                run.arrivals += 1;
            }
        }
    }

    /// A verified record that is certified elsewhere and unknown here: the conversation missed something.
    ///
    /// Each record begins one run at most, so that a fork, which takes more than `f` faulty members, cannot begin them
    /// without end.
    pub(super) fn on_missed(&mut self, record: RecordHash, shared: &mut Shared, draft: &mut Draft<'_>) {
        if self.is_recovered() && self.missed != Some(record) {
            self.missed = Some(record);
            self.begin_run(RecoveryReason::HistoryMissing, None, shared, draft);
            self.show_status(draft);
        }
    }

    /// A vote to re-anchor, in a conversation that is recovered. It counts for nothing; but its member holds a record, so an
    /// empty conversation that began again without it asks once more.
    pub(super) fn on_vote_after_recovery(
        &mut self,
        vote: &VerifiedEvidence,
        shared: &mut Shared,
        draft: &mut Draft<'_>,
    ) -> Result<(), Ignored> {
        let EvidenceStatement::ReanchorVote(statement) = vote.statement() else {
            return Err(Ignored::NotRecovering);
        };
        let of_it = statement.reanchor.membership_hash == *self.membership.hash();
        let is_new = of_it && self.head.is_none() && *vote.signer() != shared.local_id;
        if !is_new || !self.missed_by.insert(*vote.signer()) {
            return Err(Ignored::NotRecovering);
        }
        self.begin_run(RecoveryReason::HistoryMissing, None, shared, draft);
        self.show_status(draft);
        Ok(())
    }

    /// The head or the anchor moved: what was held for the position goes, and the next one is asked about.
    pub(super) fn move_on(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        if let Some(run) = self.run_mut() {
            run.hold = Hold::default();
            run.prompted.clear();
            self.ask(shared, draft);
        }
    }

    /// The conversation carries traffic again.
    fn recovered(&mut self, shared: &mut Shared, draft: &mut Draft<'_>) {
        let conversation_id = *self.membership.conversation_id();
        let Recovery::Running(run) = std::mem::replace(&mut self.recovery, Recovery::Recovered) else {
            return;
        };
        draft.effect(Effect::CancelTimer {
            id: TimerId::CatchUp(conversation_id),
        });
        shared.outbox.release(conversation_id);
        shared.recovered.push(conversation_id);
        self.show_status(draft);
        if self.staged_successor().is_some() {
            self.show_successor(None, shared, draft);
        }
        let pending = match run.resume {
            Some(Resume { owed, pending }) => {
                for action_hash in owed {
                    if self.folds.contains_key(&action_hash) {
                        self.send_copy(action_hash, shared, draft);
                    }
                }
                self.resend_evidence(&pending, shared, draft);
                pending
            }
            None => OrderedSet::new(),
        };
        if let Some(locked) = self.locked {
            self.evaluate(locked, shared, draft);
        }
        let mut set_aside: Vec<_> = run.set_aside.into_iter().collect();
        set_aside.sort_by_key(|(_, (place, _))| *place);
        for (sender, (_, proposal)) in set_aside {
            if self.is_recovered() && self.locked.is_none() {
                // A proposal that is none here is ignored, as it was before.
                let _ = self.on_proposal(sender, proposal, shared, draft);
            }
        }
        if self.is_recovered() {
            self.resume_open_proposal(&pending, shared, draft);
        }
    }

    /// Tells what the conversation's status is.
    pub(super) fn show_status(&self, draft: &mut Draft<'_>) {
        draft.effect(Effect::ConversationState {
            conversation_id: *self.membership.conversation_id(),
            status: self.status(),
        });
    }
}
