#![forbid(unsafe_code)]
//! Identity updates: who belongs to an inbox, proven by signatures alone.
//!
//! What a backend has to establish before it stores an identity update (Backend API contract, sections 3.1 and 6; the
//! identity companion). Pure: no I/O, no clock, no randomness. Verdicts of smart contract wallets, the time and the owner
//! of a handle come in as values. Depends on the wire types and on cryptography.
//!
//! One update, in the order of its steps:
//! - [`update`]: the wire message becomes typed actions, or is refused for its structure;
//! - [`signature_text`], [`timestamp`], [`inbox_id`]: the one text that every signature of the update signs;
//! - [`signature`]: each signature becomes a signer, a replay key and a chain, or a question to a chain;
//! - [`state`]: the actions change the association state of the inbox, or break a rule of it;
//! - [`handle`]: the grammar of handles and the checks of a claim, in one place;
//! - [`history`]: the log of an inbox replayed, with [`memo`] of what was verified before;
//! - [`admission`]: all of it against a history;
//! - [`request`]: what several updates of one request mean for each other;
//! - [`lookup`]: the keys that identifiers and handles are found by;
//! - [`failure`]: every way to fail, with the reason the wire carries;
//! - [`choices`]: what no published source decides and we did;
//! - `building`: signers of updates, for tests (feature `building`).

pub mod admission;
#[cfg(feature = "building")]
pub mod building;
pub mod choices;
pub mod failure;
pub mod handle;
pub mod history;
pub mod identifier;
pub mod inbox_id;
pub mod lookup;
pub mod memo;
pub mod request;
pub mod signature;
pub mod signature_text;
pub mod state;
pub mod timestamp;
pub mod update;

pub use admission::{Candidate, Surroundings, ValidatedUpdate};
pub use failure::{IdentityFailure, Refusal};
pub use handle::{Handle, HandleOwner, HandlePolicy};
pub use history::{History, HistoryEntry};
pub use identifier::{EthereumAddress, MemberIdentifier};
pub use lookup::{LookupError, LookupKey};
pub use memo::StateMemo;
pub use signature::wallet::{AccountId, WalletQuestion, WalletVerdict, WalletVerdicts};
pub use state::{AssociationChange, AssociationState, Change};
