//! An inbox's log.

use std::sync::Arc;

use bytes::Bytes;
use conclave_identity::{
    AssociationState, Candidate, HandleOwner, HandlePolicy, History, HistoryEntry, IdentityFailure, Refusal,
    StateMemo, Surroundings, ValidatedUpdate, WalletQuestion, WalletVerdict,
};
use conclave_proto::xmtp::{
    backend::v1::{ClientEnvelope, client_envelope::Payload, publish_error::Reason},
    identity::associations::IdentityUpdate,
};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

pub(crate) use conclave_identity::building::{Account, Installation, Passkey, Signer, Step, Wallet, update};

/// Seven days, in nanoseconds.
pub(crate) const WEEK_NS: u64 = 604_800_000_000_000;

/// The log of one inbox, and what its updates are judged with.
pub(crate) struct Log {
    pub(crate) history: Vec<HistoryEntry>,
    pub(crate) memo: StateMemo,
    pub(crate) now_ns: u64,
    pub(crate) handle_owner: HandleOwner,
    pub(crate) handles: HandlePolicy,
    pub(crate) verdict: WalletVerdict,
    pub(crate) max_identity_entries: u32,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            history: Vec::new(),
            memo: StateMemo::new(1 << 20),
            now_ns: 1_800_000_000_000_000_000,
            handle_owner: HandleOwner::Nobody,
            handles: HandlePolicy::default(),
            verdict: WalletVerdict::Valid,
            max_identity_entries: 256,
        }
    }
}

impl Log {
    /// Judges an update and stores it if it may be stored.
    pub(crate) fn publish(&mut self, update: &IdentityUpdate) -> Result<ValidatedUpdate, IdentityFailure> {
        let validated = self.judge(update)?;
        self.store(update);
        Ok(validated)
    }

    /// Stores an update unseen.
    pub(crate) fn store(&mut self, update: &IdentityUpdate) {
        self.history.push(stored(update, self.now_ns));
    }

    pub(crate) fn judge(&mut self, update: &IdentityUpdate) -> Result<ValidatedUpdate, IdentityFailure> {
        let hash = stored(update, 0).message_hash;
        let candidate = Candidate::begin(update, hash, self.history.len(), self.max_identity_entries)?;
        let verdict = self.verdict;
        let surroundings = Surroundings {
            verdicts: &|_: &WalletQuestion| verdict,
            handles: &self.handles,
            handle_owner: self.handle_owner,
            now_ns: self.now_ns,
        };
        let history = replay(&self.history, &mut self.memo)?;
        candidate.admit(&history, &surroundings, &mut self.memo)
    }

    /// The state after the stored updates.
    pub(crate) fn state(&mut self) -> Arc<AssociationState> {
        let history = replay(&self.history, &mut self.memo).expect("sound");
        Arc::new(history.state().expect("an open inbox").clone())
    }

    /// The members, as their texts.
    pub(crate) fn members(&mut self) -> Vec<String> {
        self.state().members().keys().map(ToString::to_string).collect()
    }
}

/// A whole log, replayed.
pub(crate) fn replay(entries: &[HistoryEntry], memo: &mut StateMemo) -> Result<History, IdentityFailure> {
    let mut history = History::default();
    history.extend(entries, memo)?;
    Ok(history)
}

/// An update as its shard holds it.
pub(crate) fn stored(update: &IdentityUpdate, server_ns: u64) -> HistoryEntry {
    let envelope = ClientEnvelope {
        payload: Some(Payload::IdentityUpdate(update.clone())),
    };
    let stored = Bytes::from(envelope.encode_to_vec());
    HistoryEntry {
        message_hash: Sha256::digest(&stored).into(),
        server_ns,
        stored,
    }
}

/// The refusal a result must be.
pub(crate) fn refusal(result: Result<ValidatedUpdate, IdentityFailure>) -> Refusal {
    match result {
        Err(IdentityFailure::Refused(refusal)) => refusal,
        other => panic!("neither admitted nor refused: {other:?}"),
    }
}

/// The reason a result must be refused for.
pub(crate) fn reason(result: Result<ValidatedUpdate, IdentityFailure>) -> Reason {
    refusal(result).reason()
}
