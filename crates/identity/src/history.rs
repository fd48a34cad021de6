//! The log of an inbox, replayed: from the longest prefix that was verified before, page by page, so that a log need not
//! fit in memory. Depends on states and their memo.

use std::sync::Arc;

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, client_envelope::Payload};
use prost::Message as _;

use crate::{
    admission::{as_verified, check_signatures},
    choices::STORED_WALLET_VERDICTS_STAND,
    failure::{IdentityFailure, Refusal},
    memo::{PrefixHash, StateMemo},
    signature::VerifiedSignature,
    state::AssociationState,
    update::Update,
};

/// A stored envelope of an identity topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The SHA-256 of the stored bytes, as stored with them.
    pub message_hash: [u8; 32],
    /// When it was stored, in nanoseconds since the Unix epoch.
    pub server_ns: u64,
    /// The encoded `ClientEnvelope`.
    pub stored: Bytes,
}

/// What a log comes to, as far as it was read.
#[derive(Clone, Debug)]
pub struct History {
    prefix: PrefixHash,
    state: Option<Arc<AssociationState>>,
    server_ns: Vec<u64>,
}

impl Default for History {
    /// The log of an inbox that is not open yet.
    fn default() -> History {
        History {
            prefix: PrefixHash::EMPTY,
            state: None,
            server_ns: Vec::new(),
        }
    }
}

impl History {
    /// Takes in the next entries of the log, in its order.
    ///
    /// # Errors
    /// [`IdentityFailure::DamagedHistory`] when an entry does not decode, verify or apply. The history is of no use then.
    pub fn extend(&mut self, entries: &[HistoryEntry], memo: &mut StateMemo) -> Result<(), IdentityFailure> {
        let mut prefixes = vec![self.prefix];
        for entry in entries {
            prefixes.push(prefixes[prefixes.len() - 1].then(&entry.message_hash));
        }
        let remembered = (1..=entries.len())
            .rev()
            .find_map(|length| Some((length, memo.get(&prefixes[length])?)));
        let verified = match remembered {
            Some((length, state)) => {
                self.state = Some(state);
                length
            }
            None => 0,
        };
        let before = self.server_ns.len();
        for (place, stored) in entries.iter().enumerate().skip(verified) {
            let damaged = |problem: String| IdentityFailure::DamagedHistory {
                entry: before + place,
                problem,
            };
            let update = read_stored(stored).map_err(|error| damaged(error.to_string()))?;
            let applied = AssociationState::apply(self.state.take().map(Arc::unwrap_or_clone), &update);
            let state = applied.map_err(|error| damaged(error.to_string()))?.state;
            self.state = Some(Arc::new(state));
        }
        self.prefix = prefixes[entries.len()];
        self.server_ns.extend(entries.iter().map(|entry| entry.server_ns));
        if let Some(state) = self.state.as_ref().filter(|_| verified < entries.len()) {
            memo.put(self.prefix, Arc::clone(state));
        }
        Ok(())
    }

    /// How many entries were taken in.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.server_ns.len()
    }

    /// The state after them; `None` while there is none.
    #[must_use]
    pub fn state(&self) -> Option<&AssociationState> {
        self.state.as_deref()
    }

    /// The hash of all of them.
    #[must_use]
    pub const fn prefix(&self) -> PrefixHash {
        self.prefix
    }

    /// The latest time an entry with a claim was stored, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn latest_claim_ns(&self) -> Option<u64> {
        let claims = self.state().into_iter().flat_map(AssociationState::claims);
        claims
            .filter_map(|claim| self.server_ns.get(claim.entry).copied())
            .max()
    }
}

/// Why a stored update cannot be read again.
#[derive(Debug, thiserror::Error)]
enum Damage {
    #[error("it does not decode: {0}")]
    Decode(#[from] prost::DecodeError),
    #[error("it is no identity update")]
    OtherKind,
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A stored update with its local signatures verified again; the verdicts of chains stand.
fn read_stored(entry: &HistoryEntry) -> Result<Update<VerifiedSignature>, Damage> {
    const {
        assert!(
            STORED_WALLET_VERDICTS_STAND,
            "there is no other way to replay yet"
        )
    };
    let Some(Payload::IdentityUpdate(update)) = ClientEnvelope::decode(entry.stored.clone())?.payload else {
        return Err(Damage::OtherKind);
    };
    let update = Update::parse(&update).map_err(Refusal::from)?;
    Ok(as_verified(&check_signatures(&update).map_err(Refusal::from)?))
}
