//! What an engine asks of its shell.

use conclave_harness::{AgentId, EncodedSignedMessage, MessageId, PublicKey, RouterInstanceId};

use super::error::{AcknowledgeError, Fatal, SendError};
use super::ignored::Ignored;
use super::input::{Feed, ReadId, RequestId, TimerId};
use crate::store::{Read, Transition};
use crate::values::{ConversationId, DeliveryToken, PostId, RecordHash};

/// The result of one input.
///
/// The shell commits `transitions` in one strict transaction, in order, and only then carries out `effects`, in order. What
/// must be durable before it is sent is so by construction. If the commit fails, the effects must not happen and the engine
/// must be dropped: its memory is ahead of the store. Open another from the store.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What is to become durable.
    pub transitions: Vec<Transition>,
    /// What is to happen afterwards.
    pub effects: Vec<Effect>,
    /// Why a delivered message changed nothing, when it did not. Never a local fault.
    pub ignored: Option<Ignored>,
}

/// How an envelope is offered to the Router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// The Router has not ordered it.
    Initial,
    /// The Router may have ordered it.
    Retry,
}

/// One invitation that travels with an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransmitInvitation {
    /// Whom it invites.
    pub recipient_agent_id: AgentId,
    /// The recipient's key, from which its welcome topic is derived.
    pub recipient_key: PublicKey,
    /// The canonical bytes of the signed message: the `data` of a Welcome.
    pub message: Vec<u8>,
}

/// One attempt to send, answered by one [`SendOutcome`](super::SendOutcome). Envelope and invitations are published
/// together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The envelope.
    pub outbound_id: MessageId,
    /// How it is offered.
    pub mode: SendMode,
    /// The instance that must order it.
    pub expected_router_instance_id: RouterInstanceId,
    /// The conversation, from which its topic is derived.
    pub conversation_id: ConversationId,
    /// The signed message, exactly as stored.
    pub message: EncodedSignedMessage,
    /// What is published with it.
    pub invitations: Vec<TransmitInvitation>,
}

/// A finished post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPost {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The post.
    pub post_id: PostId,
    /// The certified record that carries it.
    pub record_hash: RecordHash,
}

/// A remote post for the host, until it is acknowledged. The same delivery, token and bytes come again after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What acknowledges it.
    pub delivery_token: DeliveryToken,
    /// Number in the order of local commits. Deliveries are emitted in this order.
    pub delivery_sequence: u64,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The certified record.
    pub record_hash: RecordHash,
    /// The canonical JSON of the message projection ([`Message`](crate::projection::Message)).
    pub canonical_message: String,
}

/// How far a post has come, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It was proposed and its action verified.
    Proposed,
    /// A member signed the action.
    ActionSigned {
        /// The member.
        by: AgentId,
    },
    /// Enough members signed the action.
    ActionComplete,
    /// A member stored the record.
    Stored {
        /// The member.
        by: AgentId,
    },
    /// Enough members stored it, and it is the head of the local history.
    Certified {
        /// Its place in the history, from 0.
        ordinal: u64,
    },
}

/// Whether a conversation carries traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationStatus {
    /// It does.
    Recovered,
    /// Not yet: it recovers, and its own posts wait until it has.
    Recovering {
        /// Why.
        reason: RecoveryReason,
    },
}

/// Why a conversation recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryReason {
    /// The Router may have dropped messages that were never read, or certified records of others are missing here.
    #[error("the conversation's history is not complete here")]
    HistoryMissing,
    /// The conversation is anchored to another Router instance than the current one, so it is re-anchored.
    #[error("the conversation is anchored to {anchored} while the Router is {current}")]
    RouterInstanceChanged {
        /// The instance of its current anchor.
        anchored: RouterInstanceId,
        /// The Router's instance.
        current: RouterInstanceId,
    },
}

/// Which part of its recovery a conversation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// A quorum of the other members is to answer what follows the local history.
    CatchUp,
    /// As [`CatchUp`](Self::CatchUp), and all other members are to answer while retries last: one of them may hold a re-anchor
    /// to an earlier instance that was completed.
    EveryMember,
    /// A quorum is to vote for the re-anchor.
    Reanchor,
    /// A quorum is to vote for a record that is staged and not certified. Nothing else is voted for before.
    StagedSuccessor,
}

/// What a conversation that recovers waits for: a complete picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryState {
    /// Why it recovers.
    pub reason: RecoveryReason,
    /// Which part of recovery it is in.
    pub phase: RecoveryPhase,
    /// How many members answered or voted. In [`Reanchor`](RecoveryPhase::Reanchor) and
    /// [`StagedSuccessor`](RecoveryPhase::StagedSuccessor) the local agent is one of them.
    pub heard: usize,
    /// How many must.
    pub needed: usize,
    /// The members that have not, ascending by id. With Byzantine members or absent ones, not all of them ever need.
    pub missing: Vec<AgentId>,
    /// How often the open question, or what a settled position waits with, will be repeated.
    pub retries_left: u32,
    /// The retries are spent: it goes on when a member, the host or the transport stirs.
    pub paused: bool,
}

/// What a conversation cannot go on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// Members' signatures on the action that is locked at the head.
    Signatures,
    /// Members' votes for the record that is staged at the head.
    Votes,
    /// Members' answers to a catch-up request.
    Answers,
    /// Members' votes to re-anchor.
    ReanchorVotes,
}

/// A conversation that makes no progress by itself, and the members it waits for.
///
/// No single one of them need be at fault: a quorum is enough, and a member that locked another proposal can never sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// What is missing.
    pub waiting_for: WaitingFor,
    /// Of whom, ascending by id.
    pub members: Vec<AgentId>,
    /// Whether the local agent's own post waits behind a proposal that is not its own.
    pub behind_another: bool,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Offer an envelope to the Router.
    Transmit(Box<Transmit>),
    /// Read a feed from after a position (none: from its beginning). Asked again, it means the same reading.
    Watch {
        /// The feed.
        feed: Feed,
        /// The last position whose effects are durable.
        after: Option<u64>,
    },
    /// Read a feed no longer.
    Unwatch {
        /// The feed.
        feed: Feed,
    },
    /// Let a timer go off at a time of the context's clock, or at once if that has passed.
    SetTimer {
        /// The timer.
        id: TimerId,
        /// When, in the context's milliseconds.
        at_ms: u64,
    },
    /// Stop a timer.
    CancelTimer {
        /// The timer.
        id: TimerId,
    },
    /// A send's post is durable: from here on it will be made, whatever becomes of its caller.
    Bound {
        /// The send.
        request_id: RequestId,
        /// Its conversation.
        conversation_id: ConversationId,
        /// Its post.
        post_id: PostId,
    },
    /// A send ended. Success means that the certified record is stored.
    Sent {
        /// The send.
        request_id: RequestId,
        /// How.
        result: Result<SentPost, SendError>,
    },
    /// A remote post is there.
    Deliver(Delivery),
    /// An acknowledgment ended.
    Acknowledged {
        /// The delivery's token.
        delivery_token: DeliveryToken,
        /// How.
        result: Result<(), AcknowledgeError>,
    },
    /// A post went on.
    Progress {
        /// Its conversation.
        conversation_id: ConversationId,
        /// Its author.
        author_agent_id: AgentId,
        /// The post.
        post_id: PostId,
        /// How far.
        stage: Stage,
    },
    /// A conversation became held, or changed its status.
    ConversationState {
        /// The conversation.
        conversation_id: ConversationId,
        /// Its status.
        status: ConversationStatus,
    },
    /// Read rows of the store in one consistent state, and hand them in with [`Input::Rows`](super::Input::Rows).
    Read {
        /// What the answer names.
        read_id: ReadId,
        /// What to read.
        reads: Vec<Read>,
    },
    /// What a conversation that recovers waits for has changed, or its recovery has begun or ended.
    Recovery {
        /// The conversation.
        conversation_id: ConversationId,
        /// What it waits for now; none when it recovers no longer.
        recovery: Option<RecoveryState>,
    },
    /// A conversation has come to stand still, what it waits for has changed, or it goes on.
    ///
    /// It stands still when a proposal or a locked action has been open for
    /// [`STALL_WAIT_MS`](super::timing::STALL_WAIT_MS), a post that waits behind another member's proposal included; or when it
    /// recovers and its retries are spent. It goes on when the head moves or the lock does, or when the retries begin again,
    /// because a member, the host or the transport stirred. The local agent's resends go on meanwhile, while they last.
    Stalled {
        /// The conversation.
        conversation_id: ConversationId,
        /// What it waits for now; none when it goes on.
        stall: Option<Stall>,
    },
    /// The engine stopped for good. Nothing more is sent; every further input is answered with this again.
    Fatal {
        /// Why.
        reason: Fatal,
    },
}
