//! What a transition decides.

use super::{Key, RowError, Table};

/// One change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Store `bytes` at `key`, replacing what is there.
    Put {
        /// The table.
        table: Table,
        /// The row's key.
        key: Key,
        /// The encoded row.
        bytes: Vec<u8>,
    },
    /// Remove the row at `key`; nothing happens when there is none.
    Delete {
        /// The table.
        table: Table,
        /// The row's key.
        key: Key,
    },
}

/// Whether a transition changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was applied.
    Applied,
    /// The same transition was applied before; nothing is written.
    Existing,
}

/// A transition that may be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether anything changes.
    pub outcome: Outcome,
    /// The writes, to be committed together. Empty for [`Outcome::Existing`].
    pub writes: Vec<Write>,
}

impl Decision {
    /// Nothing to do: it was done before.
    pub(crate) fn existing() -> Self {
        Decision {
            outcome: Outcome::Existing,
            writes: Vec::new(),
        }
    }

    /// These writes, together.
    pub(crate) fn applied(writes: Vec<Write>) -> Self {
        Decision {
            outcome: Outcome::Applied,
            writes,
        }
    }
}

/// A transition that must not be committed. Nothing of its batch is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The store holds something that contradicts the transition.
    #[error("conflict: {0}")]
    Conflict(&'static str),
    /// The transition contradicts itself, or what it needs is not there.
    #[error("invalid input: {0}")]
    InvalidInput(&'static str),
    /// A row that was read cannot be one this crate wrote.
    #[error(transparent)]
    Corrupt(#[from] RowError),
    /// The transition needs a row that was not read. A store that reads what `reads` names never sees this.
    #[error("the row {key} of {} was not read before the decision", table.name())]
    NotRead {
        /// The table.
        table: Table,
        /// The key asked for.
        key: Key,
    },
}
