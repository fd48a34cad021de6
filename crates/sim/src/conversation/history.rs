//! What happened, in order: what became durable, what left an endpoint, what its host was given.
//!
//! Messages are kept as what they say ([`Said`]), with the actions, records and re-anchors they speak of beside them.

use std::{collections::BTreeMap, fmt};

use conclave_conversation::{
    engine::{Delivery, Feed, RequestId, SendError, SentPost},
    store::{Transition, rows::StagedRecordRow},
    test_support::history as history_versions,
    values::{
        ActionCore, ActionHash, AnchorBody, AnchorHash, CatchUpItem, ClosedValue, ConversationId,
        DirectPacket, EvidenceStatement, Plaintext, PostId, RecordCore, RecordHash,
    },
};
use conclave_harness::{AgentId, MessageId, RouterInstanceId};

/// Where a record belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) conversation: ConversationId,
    /// None for GENESIS.
    pub(super) previous: Option<RecordHash>,
    pub(super) anchor: AnchorHash,
}

/// An action, as far as checkers compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Action {
    pub(super) place: Place,
    pub(super) author: AgentId,
    pub(super) post: PostId,
}

/// A re-anchor body, as far as checkers compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reanchor {
    pub(super) previous: AnchorHash,
    pub(super) instance: RouterInstanceId,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Proposal(ActionHash),
    Signature {
        signer: AgentId,
        action: ActionHash,
    },
    Copy(RecordHash),
    Vote {
        signer: AgentId,
        record: RecordHash,
    },
    Certified(RecordHash),
    ReanchorVote {
        signer: AgentId,
        anchor: AnchorHash,
    },
    Completed(AnchorHash),
    Request(Option<RecordHash>),
    PageOfRecord(RecordHash),
    PageOfAnchor(AnchorHash),
    Incomplete,
    /// Nothing that opens, or nothing that is evidence.
    Junk,
}

/// One event.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// An engine was opened.
    Opened,
    /// An engine is gone, with what was not durable.
    Crashed,
    /// Transitions are durable.
    Durable(Vec<Transition>),
    /// An envelope was handed to the network, for the first or another time.
    Left {
        id: MessageId,
        conversation: ConversationId,
        said: Said,
    },
    /// A message of a feed, or that there is something else, was handed over.
    Handed {
        feed: Feed,
        instance: RouterInstanceId,
        position: u64,
    },
    /// What a feed goes on with is not what follows: what lies between is no longer kept.
    Gap(Feed),
    /// A post was bound.
    Bound {
        request: RequestId,
        post: PostId,
        text: String,
    },
    /// A send ended.
    Sent {
        request: RequestId,
        result: Result<SentPost, SendError>,
    },
    /// A conversation began or ended to recover.
    Fenced {
        conversation: ConversationId,
        is_fenced: bool,
    },
    /// The host was given something.
    Delivered(Delivery),
    /// The host accepted it.
    Acknowledged(String),
    /// Something that must never happen did.
    Broken { what: &'static str, text: String },
}

/// One event with its time and member.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub(super) at_us: u64,
    pub(super) member: usize,
    pub(super) event: Event,
}

/// How the run ended, for the checkers of what must have come about.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    /// Nothing went on by itself any more.
    pub(super) is_at_rest: bool,
    /// How many stages it took.
    pub(super) stages: usize,
    /// What kept each conversation from its end: a member and why; empty when nothing did.
    pub(super) unfinished: BTreeMap<ConversationId, Vec<String>>,
    /// For each conversation and member: the certified records its store holds, verified, in order.
    pub(super) chains: BTreeMap<(ConversationId, usize), Vec<Certified>>,
    /// Posts still bound, by member.
    pub(super) bound: BTreeMap<usize, Vec<PostId>>,
}

/// A certified record as a member's store holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certified {
    pub(super) record: RecordHash,
    pub(super) action: ActionHash,
    pub(super) place: Place,
    pub(super) author: AgentId,
    pub(super) post: PostId,
    pub(super) text: String,
    pub(super) signers: Vec<AgentId>,
    pub(super) voters: Vec<AgentId>,
}

/// A conversation of the simulation.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) id: ConversationId,
    /// Numbers of its members.
    pub(super) members: Vec<usize>,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) agents: Vec<AgentId>,
    /// The members that run an engine and nothing else.
    pub(super) honest: Vec<bool>,
    pub(super) conversations: Vec<Known>,
    /// Faults lost, repeated, broke or forgot something.
    pub(super) is_disturbed: bool,
    /// Nothing went wrong and nothing was late, up to an event: counts of messages are exact.
    pub(super) is_exact: bool,
    pub(super) exact_until: usize,
    pub(super) events: Vec<Happened>,
    pub(super) actions: BTreeMap<ActionHash, Action>,
    pub(super) records: BTreeMap<RecordHash, (ActionHash, Place)>,
    pub(super) reanchors: BTreeMap<AnchorHash, Reanchor>,
    /// What happened around the engines, for people.
    pub(super) notes: Vec<(u64, String)>,
    pub(super) end: End,
}

impl History {
    pub(super) fn push(&mut self, at_us: u64, member: usize, event: Event) {
        self.events.push(Happened { at_us, member, event });
    }

    pub(super) fn note(&mut self, at_us: u64, text: impl Into<String>) {
        self.notes.push((at_us, text.into()));
    }

    /// The number of an agent.
    pub(super) fn number(&self, id: &AgentId) -> Option<usize> {
        self.agents.iter().position(|known| known == id)
    }

    pub(super) fn is_honest(&self, id: &AgentId) -> bool {
        self.number(id).is_some_and(|number| self.honest[number])
    }

    /// How many members are Byzantine.
    pub(super) fn byzantine(&self) -> usize {
        self.honest.iter().filter(|is_honest| !**is_honest).count()
    }

    /// A stored record.
    pub(super) fn learn_row(&mut self, row: &StagedRecordRow) {
        let Ok(record) = row.record_hash.parse() else {
            return;
        };
        if self.records.contains_key(&record) {
            return;
        }
        if let Ok(core) = RecordCore::decode_over(&history_versions(), row.canonical_record_core.as_bytes()) {
            self.learn_record(record, &core);
        }
    }

    /// A record core, and the action in it.
    pub(super) fn learn_record(&mut self, record: RecordHash, core: &RecordCore) {
        let action = self.learn_action(&core.to_action());
        let place = self.actions[&action].place;
        self.records.insert(record, (action, place));
    }

    pub(super) fn learn_action(&mut self, core: &ActionCore) -> ActionHash {
        let anchor = match core {
            ActionCore::Genesis(genesis) => AnchorBody::from(genesis.anchor.clone()).hash(),
            ActionCore::Post(post) => post.anchor_hash,
        };
        let intent = core.post_intent();
        let action = Action {
            place: Place {
                conversation: *core.conversation_id(),
                previous: core.previous_record_hash().copied(),
                anchor,
            },
            author: intent.author_agent_id,
            post: intent.post_id,
        };
        let hash = core.hash();
        self.actions.insert(hash, action);
        hash
    }

    /// What a plaintext says; what it speaks of is remembered. `statement` is what its evidence states, if it is any.
    pub(super) fn learn(&mut self, plaintext: &Plaintext, statement: Option<EvidenceStatement>) -> Said {
        match plaintext {
            Plaintext::Packet(DirectPacket::ActionProposal(proposal)) => {
                Said::Proposal(self.learn_action(&proposal.action))
            }
            Plaintext::Packet(DirectPacket::ActionCertifiedRecord(record)) => {
                self.learn_record(record.record_hash, &record.record_core);
                Said::Copy(record.record_hash)
            }
            Plaintext::Packet(DirectPacket::CertifiedRecord(record)) => {
                let inner = &record.action_certified_record;
                self.learn_record(inner.record_hash, &inner.record_core);
                Said::Certified(inner.record_hash)
            }
            Plaintext::Packet(DirectPacket::CompletedReanchor(completed)) => {
                Said::Completed(completed.anchor_hash)
            }
            Plaintext::Packet(DirectPacket::CatchUpRequest(request)) => {
                Said::Request(request.known_record_hash)
            }
            Plaintext::Packet(DirectPacket::CatchUpPage(page)) => match &page.item {
                CatchUpItem::CertifiedRecord(record) => {
                    Said::PageOfRecord(record.action_certified_record.record_hash)
                }
                CatchUpItem::CompletedReanchor(completed) => Said::PageOfAnchor(completed.anchor_hash),
            },
            Plaintext::Packet(DirectPacket::CatchUpIncomplete(_)) => Said::Incomplete,
            Plaintext::Evidence(_) => {
                statement.map_or(Said::Junk, |statement| self.learn_statement(&statement))
            }
        }
    }

    pub(super) fn learn_statement(&mut self, statement: &EvidenceStatement) -> Said {
        match statement {
            EvidenceStatement::ActionSignature(statement) => Said::Signature {
                signer: statement.signer_agent_id,
                action: statement.action_hash,
            },
            EvidenceStatement::DurabilityVote(statement) => Said::Vote {
                signer: statement.signer_agent_id,
                record: statement.record_hash,
            },
            EvidenceStatement::ReanchorVote(statement) => {
                let body = &statement.reanchor;
                self.reanchors.insert(
                    statement.anchor_hash,
                    Reanchor {
                        previous: body.previous_anchor_hash,
                        instance: body.router_instance_id,
                    },
                );
                Said::ReanchorVote {
                    signer: statement.signer_agent_id,
                    anchor: statement.anchor_hash,
                }
            }
            EvidenceStatement::CatchUpAttestation(_) => Said::Junk,
        }
    }
}

/// What a signed statement states, without asking who signed it.
pub(super) fn statement_of(body: &[u8]) -> Option<EvidenceStatement> {
    EvidenceStatement::decode(body).ok()
}

/// The first letters of a long name.
pub(super) fn short(name: &impl ToString) -> String {
    name.to_string().chars().take(10).collect()
}

impl fmt::Display for Said {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proposal(action) => write!(out, "proposal {}", short(action)),
            Self::Signature { action, .. } => write!(out, "signature on {}", short(action)),
            Self::Copy(record) => write!(out, "copy of {}", short(record)),
            Self::Vote { record, .. } => write!(out, "vote for {}", short(record)),
            Self::Certified(record) => write!(out, "certified record {}", short(record)),
            Self::ReanchorVote { anchor, .. } => write!(out, "re-anchor vote for {}", short(anchor)),
            Self::Completed(anchor) => write!(out, "completed re-anchor {}", short(anchor)),
            Self::Request(known) => {
                write!(
                    out,
                    "request after {}",
                    known.map_or("nothing".to_owned(), |known| short(&known))
                )
            }
            Self::PageOfRecord(record) => write!(out, "page with {}", short(record)),
            Self::PageOfAnchor(anchor) => write!(out, "page with {}", short(anchor)),
            Self::Incomplete => out.write_str("incomplete"),
            Self::Junk => out.write_str("junk"),
        }
    }
}
