//! Admission of an identity update (API-230 to 234, IDENT-005). Depends on every step.
//!
//! Three calls, because a caller does I/O between them:
//! 1. [`check_bounds`] for every update, duplicates included (API-222);
//! 2. [`Candidate::begin`] for one that is no duplicate, once its history was read in one snapshot: bounds of the log,
//!    structure, and the signatures that need no chain. Then [`Candidate::wallet_questions`] go to the chains and
//!    [`Candidate::claimed_handle`] to the owner of handles;
//! 3. [`Candidate::admit`] with the answers: signatures, the checks of a claim, the association state. The update may be
//!    stored if the history is still the one it was judged against (API-232), with its changes and its claim in the same
//!    transaction.
//!
//! The order of the checks is the order in which the admission table names their reasons.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use conclave_proto::xmtp::{
    backend::v1::{ClientEnvelope, client_envelope::Payload},
    identity::associations::{IdentityUpdate, signature::Signature as WireSignature},
};
use prost::Message as _;

use crate::{
    choices::STORED_WALLET_VERDICTS_STAND,
    failure::{IdentityFailure, Refusal},
    handle::{Handle, HandleOwner, HandlePolicy},
    memo::{PrefixHash, StateMemo},
    signature::{
        CheckedSignature, SignatureError, SignedText, VerifiedSignature,
        wallet::{WalletQuestion, WalletVerdict, WalletVerdicts},
    },
    state::{Applied, AssociationChange, AssociationState},
    update::{Action, Update},
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

/// What an update is judged with besides its history.
#[derive(Debug)]
pub struct Surroundings<'a, V> {
    /// The answers to [`Candidate::wallet_questions`].
    pub verdicts: &'a V,
    /// What the deployment allows as a handle.
    pub handles: &'a HandlePolicy,
    /// Who holds [`Candidate::claimed_handle`]; [`HandleOwner::Nobody`] without one.
    pub handle_owner: HandleOwner,
    /// The backend's clock, in nanoseconds since the Unix epoch.
    pub now_ns: u64,
}

/// An update that may be stored after the history it was judged against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedUpdate {
    /// The state of the inbox after it.
    pub state: Arc<AssociationState>,
    /// What it changes for those who look identifiers up.
    pub changes: Vec<AssociationChange>,
    /// The handle it claims.
    pub claimed_handle: Option<Handle>,
}

/// An update with a sound structure whose local signatures verify.
#[derive(Clone, Debug)]
pub struct Candidate {
    update: Update<CheckedSignature>,
    message_hash: [u8; 32],
}

/// Holds an update to the bounds that duplicates must fit too.
///
/// # Errors
/// [`Refusal::TooManyWalletSignatures`].
pub fn check_bounds(update: &IdentityUpdate, max_scw_signatures: u32) -> Result<(), Refusal> {
    let actual = count_wallet_signatures(update);
    if u64::try_from(actual).is_ok_and(|actual| actual <= u64::from(max_scw_signatures)) {
        Ok(())
    } else {
        Err(Refusal::TooManyWalletSignatures {
            actual,
            max: max_scw_signatures,
        })
    }
}

/// The ERC-6492 signatures of an update, in every position that takes a signature, repetitions included.
fn count_wallet_signatures(update: &IdentityUpdate) -> usize {
    use conclave_proto::xmtp::identity::associations::{Signature, identity_action::Kind};
    fn of_action(kind: &Kind) -> [Option<&Signature>; 2] {
        match kind {
            Kind::CreateInbox(create) => [create.initial_identifier_signature.as_ref(), None],
            Kind::Add(add) => [
                add.existing_member_signature.as_ref(),
                add.new_member_signature.as_ref(),
            ],
            Kind::Revoke(revoke) => [revoke.recovery_identifier_signature.as_ref(), None],
            Kind::ChangeRecoveryAddress(change) => {
                [change.existing_recovery_identifier_signature.as_ref(), None]
            }
            Kind::ClaimHandle(claim) => [claim.existing_member_signature.as_ref(), None],
        }
    }
    update
        .actions
        .iter()
        .filter_map(|action| action.kind.as_ref())
        .flat_map(of_action)
        .flatten()
        .filter(|signature| matches!(signature.signature, Some(WireSignature::Erc6492(_))))
        .count()
}

impl Candidate {
    /// Judges an update as far as neither its state nor a chain is needed. `message_hash` is the SHA-256 of the bytes to
    /// be stored, and `history_entries` the length of the log that it would extend.
    ///
    /// # Errors
    /// [`Refusal`] for a full log (API-234), a broken structure, or a signature that does not verify.
    pub fn begin(
        update: &IdentityUpdate,
        message_hash: [u8; 32],
        history_entries: usize,
        max_identity_entries: u32,
    ) -> Result<Candidate, Refusal> {
        if !u32::try_from(history_entries).is_ok_and(|entries| entries < max_identity_entries) {
            return Err(Refusal::LogFull {
                max: max_identity_entries,
            });
        }
        let update = check_signatures(&Update::parse(update)?)?;
        Ok(Candidate { update, message_hash })
    }

    /// What the chains have to answer, each question once.
    #[must_use]
    pub fn wallet_questions(&self) -> Vec<&WalletQuestion> {
        let mut asked = HashSet::new();
        self.questions()
            .filter(|question| asked.insert(*question))
            .collect()
    }

    /// The handle it claims.
    #[must_use]
    pub fn claimed_handle(&self) -> Option<&Handle> {
        self.update.claims().next()
    }

    /// Judges the update against the complete history of its inbox, in the order of the log.
    ///
    /// # Errors
    /// [`IdentityFailure`]: the first check that fails, in the order of the admission table. A signature that a wallet
    /// refuses outweighs an outage elsewhere, because no later verdict could save the update.
    pub fn admit<V: WalletVerdicts>(
        &self,
        history: &[HistoryEntry],
        surroundings: &Surroundings<'_, V>,
        memo: &mut StateMemo,
    ) -> Result<ValidatedUpdate, IdentityFailure> {
        let (prefix, state) = replay(history, memo)?;
        let all_fresh = self.judge_wallets(surroundings.verdicts)?;
        if let Some(handle) = self.claimed_handle() {
            let latest_claim_ns = state
                .iter()
                .flat_map(|state| state.claims())
                .filter_map(|claim| history.get(claim.entry).map(|entry| entry.server_ns));
            surroundings.handles.check(
                handle,
                surroundings.handle_owner,
                latest_claim_ns.max(),
                surroundings.now_ns,
            )?;
        }
        if !all_fresh {
            return Err(Refusal::BlockNotFresh.into());
        }
        let Applied { state, changes } =
            AssociationState::apply(state.map(Arc::unwrap_or_clone), &as_verified(&self.update))?;
        let state = Arc::new(state);
        memo.put(prefix.then(&self.message_hash), Arc::clone(&state));
        Ok(ValidatedUpdate {
            state,
            changes,
            claimed_handle: self.claimed_handle().cloned(),
        })
    }

    /// Whether every wallet signature is fresh, once all are valid.
    fn judge_wallets(&self, verdicts: &impl WalletVerdicts) -> Result<bool, IdentityFailure> {
        let questions = self.wallet_questions();
        let judged: Vec<_> = questions
            .iter()
            .map(|question| (question, verdicts.verdict(question)))
            .collect();
        if judged
            .iter()
            .any(|(_, verdict)| *verdict == WalletVerdict::Invalid)
        {
            return Err(Refusal::WalletSignature.into());
        }
        if let Some((question, _)) = judged
            .iter()
            .find(|(_, verdict)| *verdict == WalletVerdict::Unavailable)
        {
            return Err(IdentityFailure::NoVerdict {
                account: question.account,
                block_number: question.block_number,
            });
        }
        Ok(judged.iter().all(|(_, verdict)| *verdict == WalletVerdict::Valid))
    }

    fn questions(&self) -> impl Iterator<Item = &WalletQuestion> {
        self.update
            .actions
            .iter()
            .flat_map(Action::signatures)
            .filter_map(|signature| signature.question.as_ref())
    }
}

/// Verifies the signatures of an update, equal ones once: opening an inbox and adding its first installation often take
/// the same signature.
fn check_signatures(update: &Update<WireSignature>) -> Result<Update<CheckedSignature>, SignatureError> {
    let text = SignedText::new(update.signature_text());
    let mut checked: HashMap<WireSignature, CheckedSignature> = HashMap::new();
    update.try_map(|signature| {
        if let Some(known) = checked.get(signature) {
            return Ok(known.clone());
        }
        let fresh = text.check(signature)?;
        checked.insert(signature.clone(), fresh.clone());
        Ok(fresh)
    })
}

/// The update as it is once every chain has confirmed it.
fn as_verified(update: &Update<CheckedSignature>) -> Update<VerifiedSignature> {
    match update.try_map(|signature| Ok::<_, std::convert::Infallible>(signature.verified.clone())) {
        Ok(verified) => verified,
        Err(never) => match never {},
    }
}

/// The state after a history, from the longest prefix that was verified before.
///
/// # Errors
/// [`IdentityFailure::DamagedHistory`] when an entry does not decode, verify or apply.
pub fn replay(
    history: &[HistoryEntry],
    memo: &mut StateMemo,
) -> Result<(PrefixHash, Option<Arc<AssociationState>>), IdentityFailure> {
    let mut prefixes = vec![PrefixHash::EMPTY];
    for entry in history {
        prefixes.push(prefixes[prefixes.len() - 1].then(&entry.message_hash));
    }
    let whole = prefixes[history.len()];
    let remembered = (1..=history.len())
        .rev()
        .find_map(|length| Some((length, memo.get(&prefixes[length])?)));
    let (verified, mut state) = match remembered {
        Some((length, state)) if length == history.len() => return Ok((whole, Some(state))),
        Some((length, state)) => (length, Some(Arc::unwrap_or_clone(state))),
        None => (0, None),
    };
    for (entry, stored) in history.iter().enumerate().skip(verified) {
        let damaged = |problem: String| IdentityFailure::DamagedHistory { entry, problem };
        let update = read_stored(stored).map_err(|error| damaged(error.to_string()))?;
        state = Some(
            AssociationState::apply(state, &update)
                .map_err(|error| damaged(error.to_string()))?
                .state,
        );
    }
    let state = state.map(Arc::new);
    if let Some(state) = &state {
        memo.put(whole, Arc::clone(state));
    }
    Ok((whole, state))
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
