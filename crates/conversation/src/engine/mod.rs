//! The conversation engine: one agent's side of all its conversations.
//!
//! The engine does no I/O and has no clock, no randomness and no tasks of its own. Each [`Input`] gives one [`Step`]: the
//! transitions to commit, then the effects to carry out. A shell around it (the browser library, the simulation) owns the
//! store, the transport and the timers, and runs this loop:
//!
//! 1. open: [`Engine::open`] over everything the store holds; handle the step it returns as any other;
//! 2. take one input, call [`Engine::handle`];
//! 3. commit the step's transitions in **one strict transaction**, in order;
//! 4. carry out the effects, in order; go to 2.
//!
//! **If a commit fails, the engine must be dropped**: its memory is ahead of the store. Open another from the store; the
//! effects of the failed step must not happen. Because effects leave only after the commit, whatever must be durable
//! before something is sent (`harness-client.md`, section 4) is durable. A crash at any point is the same as a failed
//! commit: nothing of the step, or its transitions without its effects; opening again resumes from there.
//!
//! Messages of one feed are handed in in the Router's order, each with its position. The feed's cursor moves in the same
//! transaction as every effect of the message.
//!
//! | file | what it decides |
//! | - | - |
//! | `run` | which part an input is for |
//! | `router` | what follows when the Router is reached, changes or answers |
//! | `feeds` | whose message was delivered, and that its feed moves on |
//! | `host` | which posts are bound, which deliveries acknowledged |
//! | `invitation` | what may be watched |
//! | `author` | binding a post, proposing it, resending it, proposing it again at a new head |
//! | `vote` | which action is locked and signed |
//! | `durability` | staging, voting, certifying, what the host is given |
//! | `recovery` | how a conversation catches up and re-anchors, behind its own fence |
//! | `stall` | what a conversation waits for, and whom |
//! | `outbox` | when an envelope is offered, and what its outcome means |
//! | `startup`, `stored`, `stored_evidence` | whether a store may be trusted |
//! | [`history`] | what an owner may read |
//! | `holdings` | how much others made the engine hold |
//!
//! May depend on everything else in this crate.

mod author;
mod chain;
mod conversation;
mod draft;
mod durability;
mod effect;
mod error;
mod feeds;
mod fold;
pub mod history;
mod holdings;
mod host;
mod ignored;
mod input;
mod invitation;
pub mod limits;
mod outbox;
mod recovery;
mod router;
mod run;
mod shared;
mod stall;
mod startup;
mod stored;
mod stored_evidence;
mod text;
pub mod timing;
mod vote;

use conclave_harness::{AgentCard, AgentKey, PublicKey, WireVersion, WireVersions};

pub use effect::{
    ConversationStatus, Delivery, Effect, RecoveryPhase, RecoveryReason, RecoveryState, SendMode, SentPost,
    Stage, Stall, Step, Transmit, TransmitInvitation, WaitingFor,
};
pub use error::{AcknowledgeError, Corruption, Fatal, OpenError, RouterFault, SendError};
pub use holdings::Holdings;
pub use ignored::Ignored;
pub use input::{
    Context, Delivered, Feed, Input, InvitationDelivered, ReadId, RequestId, SendOutcome, SendRequest,
    TimerId,
};
pub use run::{ConversationView, Engine, LockedPost};
pub use startup::{Startup, admit_outbox};

/// Who the engine acts for, and what it trusts.
#[derive(Clone)]
pub struct Local {
    /// The local agent's card, verified under `registry`.
    pub card: AgentCard,
    /// The local agent's key.
    pub key: AgentKey,
    /// The pinned key of the Registry.
    pub registry: PublicKey,
    /// What newly authored intents, packets and envelopes carry.
    pub wire_version: WireVersion,
    /// The versions an outer envelope may carry.
    pub live: WireVersions,
    /// The versions everything nested and stored may carry.
    pub history: WireVersions,
}

impl Local {
    /// An agent under the versions of this build.
    pub fn new(card: AgentCard, key: AgentKey, registry: PublicKey) -> Self {
        Local {
            card,
            key,
            registry,
            wire_version: conclave_harness::WIRE_VERSION,
            live: WireVersions::live(),
            history: WireVersions::history(),
        }
    }
}
