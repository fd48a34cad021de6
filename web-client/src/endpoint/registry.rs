//! The Registry as an endpoint uses it: whose key is pinned at first use, and whose verified cards are kept for ever.

use std::cell::RefCell;
use std::rc::Rc;

use conclave_conversation::store::Key;
use conclave_grpc_web::Code;
use conclave_harness::{AgentCard, AgentId, AgentName, EncodedAgentCard, PublicJwk, PublicKey, WireVersions};
use conclave_proto::conclave::registry::v1::{
    GetSignerRequest, LookupRequest, lookup_request::By, registry_service::GetSigner,
    registry_service::Lookup,
};

use crate::failure::{Failure, Operation, corrupt};
use crate::short_map::ShortMap;
use crate::store::IndexedDbStore;
use crate::transport::{CallError, Deployment};

/// The store's name for the pinned key.
const SIGNER: &str = "registry-signer";
/// The scope of the pinned cards in the store.
const CARD: &str = "card";

/// Why a lookup gave nothing to build on.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    /// It did not answer.
    #[error("the Registry does not answer: {0}")]
    Unreachable(CallError),
    /// Its answer is not what was asked for, or not signed with the pinned key.
    #[error("the Registry's answer is not to be trusted: {0}")]
    Untrusted(&'static str),
    /// A verified card could not be kept.
    #[error(transparent)]
    Store(#[from] crate::store::StoreFailure),
}

/// The Registry.
pub(crate) struct Registry {
    deployment: Deployment,
    store: Rc<IndexedDbStore>,
    signer: PublicKey,
    cards: RefCell<ShortMap<AgentId, AgentCard>>,
}

impl Registry {
    /// The Registry whose key is pinned in the store, or will be: the one it answers with, which must be the `expected`
    /// one where the caller knows it.
    pub(crate) async fn open(
        deployment: Deployment,
        store: Rc<IndexedDbStore>,
        expected: Option<&str>,
    ) -> Result<Self, Failure> {
        let pinned = store.local(SIGNER).await?;
        let is_pinned = pinned.is_some();
        let jwk = match pinned {
            Some(bytes) => bytes,
            None => ask_for_signer(&deployment)
                .await
                .map_err(|error| unreachable_registry(&error))?,
        };
        let key = PublicJwk::from_canonical_bytes(&jwk)
            .map(PublicJwk::public_key)
            .map_err(|_| {
                Failure::new(
                    Operation::Open,
                    "decode-failed",
                    "the Registry's key is malformed",
                )
            })?;
        if expected.is_some_and(|expected| !names_key(expected, &key)) {
            return Err(untrusted("the Registry's key is not the given one"));
        }
        if !is_pinned {
            store.put_local(vec![(Key::new([SIGNER]), jwk)]).await?;
        }
        let cards = pinned_cards(&store, &key).await?;
        Ok(Registry {
            deployment,
            store,
            signer: key,
            cards: RefCell::new(cards),
        })
    }

    /// The pinned key.
    pub(crate) fn signer(&self) -> &PublicKey {
        &self.signer
    }

    /// Asks again for the key, for a deployment that was replaced since it was pinned.
    ///
    /// A Registry that does not answer says nothing.
    pub(crate) async fn check_signer(&self) -> Result<(), Failure> {
        match ask_for_signer(&self.deployment).await {
            Ok(jwk) if jwk != self.signer.jwk().to_canonical_bytes() => Err(untrusted(
                "the Registry's key is not the one this store pinned: another deployment answers here",
            )),
            _ => Ok(()),
        }
    }

    /// The verified card of a name; none when the Registry says that there is none.
    pub(crate) async fn card_named(&self, name: &AgentName) -> Result<Option<AgentCard>, RegistryError> {
        let known = self
            .cards
            .borrow()
            .iter()
            .find(|(_, card)| card.agent_name() == name)
            .map(|(_, card)| card.clone());
        if known.is_some() {
            return Ok(known);
        }
        let card = self.look_up(By::AgentName(name.to_string())).await?;
        if card.as_ref().is_some_and(|card| card.agent_name() != name) {
            return Err(RegistryError::Untrusted("it is the card of another name"));
        }
        self.keep(card).await
    }

    /// The verified card of an agent id; none when the Registry says that there is none.
    pub(crate) async fn card_of(&self, agent: AgentId) -> Result<Option<AgentCard>, RegistryError> {
        let known = self.cards.borrow().get(&agent).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let card = self.look_up(By::AgentId(agent.to_string())).await?;
        if card.as_ref().is_some_and(|card| card.agent_id() != agent) {
            return Err(RegistryError::Untrusted("it is the card of another agent"));
        }
        self.keep(card).await
    }

    /// Verifies a card the Registry answered with.
    pub(crate) fn verify(&self, card: &[u8]) -> Result<AgentCard, RegistryError> {
        verify(card, &self.signer).ok_or(RegistryError::Untrusted("the card does not verify"))
    }

    async fn look_up(&self, by: By) -> Result<Option<AgentCard>, RegistryError> {
        let request = LookupRequest { by: Some(by) };
        let answer = self
            .deployment
            .unary::<Lookup>(&request)
            .await
            .map_err(RegistryError::Unreachable)?;
        answer
            .message
            .agent_card
            .map(|card| self.verify(&card))
            .transpose()
    }

    /// Pins a card. Only then may it be used: a member stays who it was.
    async fn keep(&self, card: Option<AgentCard>) -> Result<Option<AgentCard>, RegistryError> {
        let Some(card) = card else { return Ok(None) };
        let key = Key::new([CARD]).with(card.agent_id().to_string().as_str());
        self.store
            .put_local(vec![(key, card.encoded().to_canonical_bytes())])
            .await?;
        self.cards.borrow_mut().insert(card.agent_id(), card.clone());
        Ok(Some(card))
    }
}

/// Whether a thumbprint URI, or the canonical JSON of a key, is that of `key`.
fn names_key(expected: &str, key: &PublicKey) -> bool {
    expected == key.thumbprint_uri() || expected.as_bytes() == key.jwk().to_canonical_bytes()
}

async fn pinned_cards(
    store: &IndexedDbStore,
    signer: &PublicKey,
) -> Result<ShortMap<AgentId, AgentCard>, Failure> {
    let mut cards = ShortMap::default();
    for bytes in store.local_below(CARD).await? {
        let card = verify(&bytes, signer).ok_or_else(|| corrupt("a pinned card does not verify"))?;
        cards.insert(card.agent_id(), card);
    }
    Ok(cards)
}

fn verify(card: &[u8], signer: &PublicKey) -> Option<AgentCard> {
    EncodedAgentCard::from_canonical_bytes(card)
        .ok()?
        .verify(signer, &WireVersions::history())
        .ok()
}

async fn ask_for_signer(deployment: &Deployment) -> Result<Vec<u8>, CallError> {
    let answer = deployment.unary::<GetSigner>(&GetSignerRequest {}).await?;
    Ok(answer.message.public_jwk.to_vec())
}

/// The failure of an opening that needs the Registry.
pub(super) fn unreachable_registry(error: &CallError) -> Failure {
    let is_refused =
        error.is_stated && matches!(error.status.code, Code::Unauthenticated | Code::PermissionDenied);
    let code = match error.is_transient() {
        true => "network-unavailable",
        false if is_refused => "unauthenticated",
        false => "decode-failed",
    };
    let failure = Failure::new(
        Operation::Open,
        code,
        format!("the Registry does not answer: {error}"),
    );
    if error.is_transient() {
        failure.retryable()
    } else {
        failure
    }
}

fn untrusted(message: &str) -> Failure {
    Failure::new(Operation::Open, "registry-untrusted", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_by_its_thumbprint_or_by_itself() {
        let key_of = |byte| conclave_harness::AgentKey::from_seed([byte; 32]).public_key();
        let key = key_of(1);
        assert!(names_key(&key.thumbprint_uri(), &key));
        assert!(names_key(
            &String::from_utf8_lossy(&key.jwk().to_canonical_bytes()),
            &key
        ));
        assert!(!names_key(&key_of(2).thumbprint_uri(), &key));
        assert!(!names_key("", &key));
    }
}
