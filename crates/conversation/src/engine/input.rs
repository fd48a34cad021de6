//! What may happen to an engine.

use std::fmt;

use conclave_harness::{
    AgentCard, AgentId, EncodedSignedMessage, MessageId, Randomness, RouterInstanceId, SignedMessageDigest,
};

use crate::membership::Membership;
use crate::store::Snapshot;
use crate::values::{Content, ConversationId, DeliveryToken, PostId};

/// What the engine may use while it handles one input.
pub struct Context<'a> {
    /// The time, in milliseconds of any clock that does not run backwards by much. Only differences matter.
    pub now_ms: u64,
    /// Unpredictable bytes.
    pub randomness: &'a mut dyn Randomness,
}

/// A source of delivered messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feed {
    /// The messages of one conversation.
    Conversation(ConversationId),
    /// Invitations to the local agent.
    Invitations,
}

impl fmt::Display for Feed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Feed::Conversation(id) => id.fmt(formatter),
            Feed::Invitations => formatter.write_str(crate::store::rows::TransportCursorRow::INVITATIONS),
        }
    }
}

/// One message of a conversation's feed. Messages of one feed arrive in the Router's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The conversation whose topic brought it.
    pub conversation_id: ConversationId,
    /// The outer message; none when the transport's envelope holds none, so that the feed still moves past it.
    pub message: Option<EncodedSignedMessage>,
    /// Its place in the feed. Places rise; a place at or below the feed's cursor is a repetition and does nothing.
    pub position: u64,
    /// The Router instance whose order the place counts in.
    pub router_instance_id: RouterInstanceId,
}

/// One message of the feed of invitations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvitationDelivered {
    /// The outer message; none when the transport's envelope holds none.
    pub message: Option<EncodedSignedMessage>,
    /// The verified card of the message's sender, looked up by the shell; none when the Registry says that there is none. A Registry that does not answer is no answer.
    pub sender_card: Option<AgentCard>,
    /// Its place in the feed.
    pub position: u64,
    /// The Router instance whose order the place counts in.
    pub router_instance_id: RouterInstanceId,
}

/// How the shell names a send, so that it finds it again in the effects. Unique while the engine lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A post to be made.
#[derive(Clone, Debug)]
pub struct SendRequest {
    /// The shell's name for it.
    pub request_id: RequestId,
    /// The resolved and verified members, the local agent among them.
    pub membership: Membership,
    /// What is posted.
    pub content: Content,
    /// The post's id, when the shell minted it (32 random bytes): the same post asked for again is the one there is. Without
    /// it the engine mints one, so that each request is a post of its own.
    pub post_id: Option<PostId>,
}

/// A timer of the engine. Setting a timer replaces the one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerId {
    /// The next resend of a conversation's open proposal.
    Resend(ConversationId),
    /// The next attempt to send a conversation's first envelope.
    Drain(ConversationId),
    /// The end of a send's wait for the Router.
    Attach(RequestId),
    /// The end of a bound send's wait for the Router to take its envelopes.
    Delivery(RequestId),
    /// The next retry of a conversation's catch-up request, or of what a settled position waits with.
    CatchUp(ConversationId),
    /// The time after which what a conversation waits for is told as a stall.
    Stall(ConversationId),
}

/// What became of one [`Transmit`](super::Transmit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// The Router ordered the message.
    Accepted {
        /// The Router's instance.
        router_instance_id: RouterInstanceId,
        /// The digest of what it ordered.
        digest: SignedMessageDigest,
    },
    /// The Router is another instance than the one expected; it ordered nothing.
    RouterRestarted {
        /// The Router's instance.
        router_instance_id: RouterInstanceId,
    },
    /// The Router knows nothing of the message a `retry` repeated.
    RetryIdentityUnknown,
    /// The Router ordered a message of this id before.
    IdempotencyConflict,
    /// The Router refuses the message for what it is.
    MessageInvalid,
    /// The outcome is unknown: connection lost, deadline passed, or a passing state of the Router.
    TransportFailure,
}

/// What a [`Read`](super::Effect::Read) is for. One read of a name is under way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The member that asked for what is read.
    pub requester: AgentId,
}

/// One input.
#[derive(Clone, Debug)]
pub enum Input {
    /// The transport reached the Router and knows its instance: at attachment, and whenever the Router names another.
    RouterInstance {
        /// The instance.
        router_instance_id: RouterInstanceId,
    },
    /// A conversation's feed brought a message.
    Delivered(Box<Delivered>),
    /// What follows a conversation's cursor is no longer kept: messages may be lost between it and the next one delivered.
    FeedGap {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// The rows of a [`Read`](super::Effect::Read).
    Rows {
        /// Which read.
        read_id: ReadId,
        /// The rows, read in one consistent state of the store.
        rows: Box<Snapshot>,
    },
    /// The feed of invitations brought a message.
    InvitationDelivered(Box<InvitationDelivered>),
    /// The host posts.
    Send(Box<SendRequest>),
    /// The host accepted a delivery.
    Acknowledge {
        /// The delivery's token.
        delivery_token: DeliveryToken,
    },
    /// A timer went off.
    Timer(TimerId),
    /// A transmission ended.
    SendOutcome {
        /// Which envelope.
        outbound_id: MessageId,
        /// How.
        outcome: SendOutcome,
    },
}
