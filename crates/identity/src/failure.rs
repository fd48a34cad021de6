//! Every way an identity update can fail, with what the wire says about it. Depends on the errors of the steps.

use conclave_proto::xmtp::backend::v1::publish_error::Reason;

use crate::{
    choices::{BLOCK_NOT_FRESH, UNREADABLE_SIGNATURE},
    handle::HandleRefusal,
    signature::{SignatureError, wallet::AccountId},
    state::StateError,
    update::StructureError,
};

/// Why an identity update is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityFailure {
    /// It fails the admission table or a bound: INVALID_ARGUMENT with the reason of the refusal.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A chain gave no verdict, which is none: UNAVAILABLE (API-231).
    #[error("no verdict on a wallet signature of {} on chain {} at block {block_number}", account.address, account.chain_id)]
    NoVerdict {
        /// Whose signature it should be.
        account: AccountId,
        /// The block it should be judged at.
        block_number: u64,
    },
    /// A stored update does not decode or does not apply, which storage never held: INTERNAL.
    #[error("the stored identity update {entry} is damaged: {problem}")]
    DamagedHistory {
        /// Its index in the log.
        entry: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// A rule or bound that an identity update fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The log of the inbox is full (API-234).
    #[error("the inbox has {max} identity updates and may have no more")]
    LogFull {
        /// How many there may be.
        max: u32,
    },
    /// The request has another update of the inbox (API-233).
    #[error("the request has two identity updates for one inbox")]
    SecondOfInbox,
    /// The update has not the structure of one.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// A signature cannot be read or does not verify.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A wallet refuses the signature.
    #[error("a wallet refuses a signature")]
    WalletSignature,
    /// A wallet signature names a block in the future or one too old (IDENT-062).
    #[error("a wallet signature names a block that is not fresh")]
    BlockNotFresh,
    /// A claim that only a backend refuses.
    #[error(transparent)]
    Handle(#[from] HandleRefusal),
    /// The update does not fit the state of its inbox.
    #[error(transparent)]
    State(#[from] StateError),
}

impl Refusal {
    /// The reason the wire carries.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Refusal::LogFull { .. } | Refusal::SecondOfInbox | Refusal::Structure(_) | Refusal::State(_) => {
                Reason::InvalidIdentityUpdate
            }
            Refusal::Signature(SignatureError::Unreadable(_)) => UNREADABLE_SIGNATURE,
            Refusal::Signature(SignatureError::Wrong(_)) | Refusal::WalletSignature => {
                Reason::InvalidSignature
            }
            Refusal::BlockNotFresh => BLOCK_NOT_FRESH,
            Refusal::Handle(HandleRefusal::Taken) => Reason::HandleTaken,
            Refusal::Handle(HandleRefusal::TooShort { .. } | HandleRefusal::Reserved) => {
                Reason::HandleNotAllowed
            }
            Refusal::Handle(HandleRefusal::TooSoon) => Reason::HandleTooSoon,
        }
    }
}

macro_rules! refused_from {
    ($($error:ty),*) => {$(
        impl From<$error> for IdentityFailure {
            fn from(error: $error) -> IdentityFailure {
                IdentityFailure::Refused(error.into())
            }
        }
    )*};
}

refused_from!(StructureError, SignatureError, HandleRefusal, StateError);
