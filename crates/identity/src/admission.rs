//! Admission of an identity update (API-230 to 234, IDENT-005). Depends on every step.
//!
//! Two calls for an update that is no duplicate, because a caller does I/O between them, both after its history was
//! read in one snapshot ([`crate::history`]):
//! 1. [`Candidate::begin`]: bounds of the log, structure, and the signatures that need no chain. Then
//!    [`Candidate::wallet_questions`] go to the chains and [`Candidate::claimed_handle`] to the owner of handles;
//! 2. [`Candidate::admit`] with the answers: signatures, the checks of a claim, the association state. The update may be
//!    stored if the history is still the one it was judged against (API-232), with its changes and its claim in the same
//!    transaction.
//!
//! The order of the checks is the order in which the admission table names their reasons.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use conclave_proto::xmtp::identity::associations::{IdentityUpdate, signature::Signature as WireSignature};

use crate::{
    failure::{IdentityFailure, Refusal},
    handle::{Handle, HandleOwner, HandlePolicy},
    history::History,
    memo::StateMemo,
    signature::{
        CheckedSignature, SignatureError, SignedText, VerifiedSignature,
        wallet::{WalletQuestion, WalletVerdict, WalletVerdicts},
    },
    state::{Applied, AssociationChange, AssociationState},
    update::{Action, Update},
};

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

    /// Judges the update against the complete history of its inbox.
    ///
    /// # Errors
    /// [`IdentityFailure`]: the first check that fails, in the order of the admission table. A signature that a wallet
    /// refuses outweighs an outage elsewhere, because no later verdict could save the update.
    pub fn admit<V: WalletVerdicts>(
        &self,
        history: &History,
        surroundings: &Surroundings<'_, V>,
        memo: &mut StateMemo,
    ) -> Result<ValidatedUpdate, IdentityFailure> {
        let all_fresh = self.judge_wallets(surroundings.verdicts)?;
        if let Some(handle) = self.claimed_handle() {
            surroundings.handles.check(
                handle,
                surroundings.handle_owner,
                history.latest_claim_ns(),
                surroundings.now_ns,
            )?;
        }
        if !all_fresh {
            return Err(Refusal::BlockNotFresh.into());
        }
        let Applied { state, changes } =
            AssociationState::apply(history.state().cloned(), &as_verified(&self.update))?;
        let state = Arc::new(state);
        memo.put(history.prefix().then(&self.message_hash), Arc::clone(&state));
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
pub(crate) fn check_signatures(
    update: &Update<WireSignature>,
) -> Result<Update<CheckedSignature>, SignatureError> {
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
pub(crate) fn as_verified(update: &Update<CheckedSignature>) -> Update<VerifiedSignature> {
    match update.try_map(|signature| Ok::<_, std::convert::Infallible>(signature.verified.clone())) {
        Ok(verified) => verified,
        Err(never) => match never {},
    }
}
