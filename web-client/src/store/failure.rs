//! How the store fails. Pure: no browser object.

use conclave_conversation::engine::OpenError;
use conclave_conversation::store::Refusal;
use conclave_conversation::store::opening::{OpeningRefusal, RestoreRefusal};

/// What is wrong with the store: one per stable code of the package's `StoreError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreFault {
    /// The browser has no IndexedDB, or refuses it to this page.
    IndexedDbUnavailable,
    /// The browser's quota is used up.
    QuotaExceeded,
    /// A newer release wrote this store.
    NewerSchema,
    /// A release from before the migration baseline wrote it.
    PreReset,
    /// Not one of our stores.
    Incompatible,
    /// Rows contradict each other or do not decode.
    Corrupt,
    /// A message signed under a version that is no longer live waits to be sent.
    OutboxTooOld,
    /// A migration failed; the store is as it was, or can be put back.
    MigrationFailed,
    /// Another page keeps the database open in an older release.
    UpgradeBlocked,
    /// The agent's key is here and its history is gone.
    Evicted,
    /// The store is one from before it was last used.
    RolledBack,
    /// There is no backup to put back.
    NoBackup,
    /// The connection is gone.
    Closed,
    /// A precondition of a transition did not hold.
    Conflict,
    /// The database failed in another way.
    Persistence,
}

impl StoreFault {
    /// The stable code.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            StoreFault::IndexedDbUnavailable => "indexeddb-unavailable",
            StoreFault::QuotaExceeded => "quota-exceeded",
            StoreFault::NewerSchema => "newer-schema",
            StoreFault::PreReset => "pre-reset",
            StoreFault::Incompatible => "incompatible",
            StoreFault::Corrupt => "corrupt",
            StoreFault::OutboxTooOld => "outbox-too-old",
            StoreFault::MigrationFailed => "migration-failed",
            StoreFault::UpgradeBlocked => "upgrade-blocked",
            StoreFault::Evicted => "store-evicted",
            StoreFault::RolledBack => "store-rolled-back",
            StoreFault::NoBackup => "no-backup",
            StoreFault::Closed => "closed",
            StoreFault::Conflict => "conflict",
            StoreFault::Persistence => "persistence",
        }
    }

    /// Whether opening again may succeed with nothing else changed here.
    pub(crate) const fn is_retryable(self) -> bool {
        matches!(
            self,
            StoreFault::QuotaExceeded | StoreFault::Closed | StoreFault::UpgradeBlocked
        )
    }

    /// What the name of an IndexedDB exception means.
    pub(crate) fn of_exception(name: Option<&str>) -> Self {
        match name {
            Some("QuotaExceededError") => StoreFault::QuotaExceeded,
            // How private windows and blocked storage show themselves.
            Some("SecurityError" | "NotAllowedError") => StoreFault::IndexedDbUnavailable,
            // A connection that closed, or a database that was upgraded, between two of our steps.
            Some("InvalidStateError" | "VersionError") => StoreFault::Closed,
            _ => StoreFault::Persistence,
        }
    }
}

/// A store operation that failed. Nothing of it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreFailure {
    /// The store itself.
    #[error("{message}")]
    Fault {
        /// What is wrong.
        fault: StoreFault,
        /// In words.
        message: String,
    },
    /// A transition of the batch was refused; the store is well.
    #[error("transition {index} of the batch was refused: {refusal}")]
    Refused {
        /// Its place in the batch.
        index: usize,
        /// Why.
        refusal: Refusal,
    },
}

impl StoreFailure {
    pub(crate) fn new(fault: StoreFault, message: impl Into<String>) -> Self {
        StoreFailure::Fault {
            fault,
            message: message.into(),
        }
    }

    /// What is wrong, a refusal included.
    pub(crate) fn fault(&self) -> StoreFault {
        match self {
            StoreFailure::Fault { fault, .. } => *fault,
            StoreFailure::Refused {
                refusal: Refusal::Corrupt(_),
                ..
            } => StoreFault::Corrupt,
            StoreFailure::Refused { .. } => StoreFault::Conflict,
        }
    }
}

impl From<OpeningRefusal> for StoreFailure {
    fn from(refusal: OpeningRefusal) -> Self {
        let fault = match refusal {
            OpeningRefusal::NewerSchema { .. } => StoreFault::NewerSchema,
            OpeningRefusal::PreReset { .. } => StoreFault::PreReset,
            OpeningRefusal::Incompatible(_) => StoreFault::Incompatible,
            OpeningRefusal::Evicted(_) => StoreFault::Evicted,
            OpeningRefusal::RolledBack => StoreFault::RolledBack,
        };
        StoreFailure::new(fault, refusal.to_string())
    }
}

impl From<RestoreRefusal> for StoreFailure {
    fn from(refusal: RestoreRefusal) -> Self {
        let fault = match refusal {
            RestoreRefusal::Superseded => StoreFault::RolledBack,
            RestoreRefusal::NoBackup | RestoreRefusal::NothingChanged => StoreFault::NoBackup,
        };
        StoreFailure::new(fault, refusal.to_string())
    }
}

impl From<&OpenError> for StoreFailure {
    fn from(error: &OpenError) -> Self {
        let fault = match error {
            OpenError::OutboxTooOld { .. } => StoreFault::OutboxTooOld,
            OpenError::Identity(_) | OpenError::Corrupt(_) => StoreFault::Corrupt,
        };
        StoreFailure::new(fault, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_quota_and_refused_storage_are_told_from_other_failures() {
        assert_eq!(
            StoreFault::of_exception(Some("QuotaExceededError")),
            StoreFault::QuotaExceeded
        );
        assert_eq!(
            StoreFault::of_exception(Some("SecurityError")),
            StoreFault::IndexedDbUnavailable
        );
        assert_eq!(
            StoreFault::of_exception(Some("AbortError")),
            StoreFault::Persistence
        );
        assert_eq!(StoreFault::of_exception(None), StoreFault::Persistence);
    }
}
