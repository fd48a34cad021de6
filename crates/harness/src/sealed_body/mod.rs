//! Sealed bodies (reference section 4): a message's body encrypted to its recipients, bound to its sender and id.
//!
//! A General JWE (RFC 7516) with `ECDH-ES+A256KW` over X25519 and `A256GCM`. GCM does not commit to its key, so a
//! SHA-256 commitment to the salted plaintext stands in the protected header: all who open a body read the same bytes.

mod encoding;
mod key_wrap;

use crate::{
    agent_card::AgentCard,
    identifiers::{AgentId, MessageId},
    key::AgentKey,
    memo,
    randomness::{Randomness, random_array},
    signed_message::{BODY_BYTES_MAX, RECIPIENTS_MAX, SignedMessage},
    x25519,
};
use aes_gcm::{AeadInPlace, Aes256Gcm, KeyInit};
use encoding::{Bindings, EncodedSealedBody, Entry, Protected};
use sha2::{Digest, Sha256};
use std::{borrow::Borrow, rc::Rc};
use zeroize::Zeroizing;

/// Random bytes before the plaintext, so that the commitment reveals nothing.
const SALT_LENGTH: usize = 32;

/// A body that cannot be sealed: the recipients are none, too many or repeated, one has a key that is not a point of
/// the curve, or the result would be longer than a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body cannot be sealed")]
pub struct SealedBodySealingError;

/// A body that does not open. It never says why, and there is no falling back to reading it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sealed body does not open")]
pub struct SealedBodyOpeningError;

/// The length of a sealed body, in bytes: `ceil(4 (plaintext + 32) / 3)` and a part that `recipients` determines.
pub fn sealed_length(plaintext_length: usize, recipients: usize) -> usize {
    crate::base64url::encoded_length(plaintext_length + SALT_LENGTH)
        + encoding::length_beside_ciphertext(recipients)
}

/// The longest plaintext whose sealed body fits [`BODY_BYTES_MAX`].
pub fn plaintext_length_max(recipients: usize) -> usize {
    let characters = BODY_BYTES_MAX.saturating_sub(encoding::length_beside_ciphertext(recipients));
    (characters * 3 / 4).saturating_sub(SALT_LENGTH)
}

/// Seals `plaintext` to `recipients`, in any order, as the body of the message `message_id` of `sender`.
///
/// Draws the salt (32 bytes), the content key (32), the initialisation vector (12) and one ephemeral secret (32) a
/// recipient, in this order.
///
/// # Errors
///
/// When there are 0 or more than [`RECIPIENTS_MAX`] recipients or one twice, one has a key that is not a point of the
/// curve, or `plaintext` is longer than [`plaintext_length_max`].
pub fn seal<C: Borrow<AgentCard>>(
    plaintext: &[u8],
    recipients: &[C],
    sender: AgentId,
    message_id: MessageId,
    randomness: &mut (impl Randomness + ?Sized),
) -> Result<Vec<u8>, SealedBodySealingError> {
    let mut recipients: Vec<&AgentCard> = recipients.iter().map(Borrow::borrow).collect();
    recipients.sort_unstable_by_key(|card| card.agent_id());
    let distinct = recipients.is_sorted_by(|earlier, later| earlier.agent_id() < later.agent_id());
    if !distinct
        || !(1..=RECIPIENTS_MAX).contains(&recipients.len())
        || plaintext.len() > plaintext_length_max(recipients.len())
    {
        return Err(SealedBodySealingError);
    }

    // At its full length from the start: growing would leave a copy of the salt behind that nobody wipes.
    let mut salted = Zeroizing::new(Vec::with_capacity(SALT_LENGTH + plaintext.len()));
    salted.extend_from_slice(&*Zeroizing::new(random_array::<SALT_LENGTH>(randomness)));
    salted.extend_from_slice(plaintext);
    let bindings = Bindings {
        commitment: Sha256::digest(&*salted).into(),
        message_id,
        sender,
    };
    let content_key = Zeroizing::new(random_array::<32>(randomness));
    let iv = random_array::<12>(randomness);

    let mut entries = Vec::with_capacity(recipients.len());
    for card in recipients {
        let public = card.public_key().x25519().ok_or(SealedBodySealingError)?;
        let ephemeral = Zeroizing::new(random_array::<32>(randomness));
        let shared =
            memo::shared_secret(&ephemeral, &card.public_key(), &public).ok_or(SealedBodySealingError)?;
        let encrypted_key = key_wrap::wrap(&key_wrap::key_encryption_key(&shared), &content_key);
        let ephemeral_key = x25519::public_key(&ephemeral);
        memo::remember_agreement(&ephemeral_key, &public, &shared);
        entries.push(Entry {
            encrypted_key,
            ephemeral_key,
        });
    }

    let protected = Protected::new(bindings, &entries);
    let mut ciphertext = std::mem::take(&mut *salted);
    let tag = Aes256Gcm::new((&*content_key).into())
        .encrypt_in_place_detached(&iv.into(), protected.text().as_bytes(), &mut ciphertext)
        .map_err(|_| SealedBodySealingError)?;
    Ok(EncodedSealedBody {
        ciphertext,
        iv,
        tag: tag.into(),
        protected,
        entries,
    }
    .to_canonical_bytes())
}

/// The plaintext of `message`'s body, for the agent of `local_card`.
///
/// # Errors
///
/// When `local_key` is not that card's, the agent is no recipient, or the body was not sealed to it by this sender for
/// this message, byte for byte as [`seal`] would.
pub fn open(
    local_card: &AgentCard,
    local_key: &AgentKey,
    message: &SignedMessage,
) -> Result<Vec<u8>, SealedBodyOpeningError> {
    // First of all: a key and its negation share one X25519 secret, so the exchange alone would not tell them apart.
    if local_card.public_key() != local_key.public_key() {
        return Err(SealedBodyOpeningError);
    }
    let parse = || EncodedSealedBody::parse(message.body()).map(Rc::new);
    let body = memo::of("sealed body", || *message.digest().as_bytes(), parse);
    let body = body.map_err(|_| SealedBodyOpeningError)?;
    let bindings = body.protected.bindings();
    if bindings.sender != message.sender()
        || bindings.message_id != message.message_id()
        || body.entries.len() != message.recipients().len()
    {
        return Err(SealedBodyOpeningError);
    }
    let position = message
        .recipients()
        .binary_search(&local_card.agent_id())
        .map_err(|_| SealedBodyOpeningError)?;
    let entry = body.entries.get(position).ok_or(SealedBodyOpeningError)?;

    let shared = memo::agreement(&entry.ephemeral_key, &local_key.public_key(), || {
        x25519::shared_secret(&local_key.x25519_secret(), &entry.ephemeral_key)
    })
    .ok_or(SealedBodyOpeningError)?;
    let content_key = key_wrap::unwrap(&key_wrap::key_encryption_key(&shared), &entry.encrypted_key)
        .ok_or(SealedBodyOpeningError)?;
    let key = || [*message.digest().as_bytes(), *content_key].concat();
    memo::of("opened body", key, || {
        decrypt(Rc::unwrap_or_clone(body), &content_key)
    })
}

/// The plaintext under a content key, if it is what the body commits to.
fn decrypt(body: EncodedSealedBody, content_key: &[u8; 32]) -> Result<Vec<u8>, SealedBodyOpeningError> {
    let commitment = body.protected.bindings().commitment;
    let mut salted = Zeroizing::new(body.ciphertext);
    Aes256Gcm::new(content_key.into())
        .decrypt_in_place_detached(
            &body.iv.into(),
            body.protected.text().as_bytes(),
            &mut salted,
            &body.tag.into(),
        )
        .map_err(|_| SealedBodyOpeningError)?;
    let plaintext = salted.get(SALT_LENGTH..).ok_or(SealedBodyOpeningError)?;
    if Sha256::digest(&*salted).as_slice() != commitment.as_slice() {
        return Err(SealedBodyOpeningError);
    }
    Ok(plaintext.to_vec())
}
