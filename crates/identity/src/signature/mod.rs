//! Signatures of an update: who signed, the key that stops replays, and the chain of a wallet (IDENT-030, IDENT-031).
//! Depends on identifiers and on cryptography.
//!
//! - [`ethereum`]: a recoverable ECDSA signature of an account (ERC-191);
//! - [`installation`]: Ed25519ph with a context;
//! - [`passkey`]: a WebAuthn assertion over P-256;
//! - [`wallet`]: a smart contract wallet (ERC-1271, ERC-6492), which only a chain can judge.
//!
//! The retired delegated signatures are unknown to the schema, so an update whose only signature is one has none.

pub mod ethereum;
pub mod installation;
pub mod passkey;
pub mod wallet;

use std::cell::OnceCell;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use conclave_proto::xmtp::identity::associations::signature::Signature as WireSignature;
use sha2::{Digest as _, Sha256, Sha512};

use crate::{identifier::MemberIdentifier, signature::wallet::WalletQuestion};

/// What tells one signature from another whatever its encoding (IDENT-050): the SHA-256 of its canonical bytes, so that
/// every key has one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplayKey([u8; 32]);

impl ReplayKey {
    /// The key of canonical signature bytes.
    #[must_use]
    pub fn of(canonical: &[u8]) -> ReplayKey {
        ReplayKey(Sha256::digest(canonical).into())
    }
}

/// A signature that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSignature {
    /// Who signed. Its kind is the kind of the signature, so that comparing it with a party compares kinds as well.
    pub signer: MemberIdentifier,
    /// What stops it from being used again.
    pub replay_key: ReplayKey,
    /// The EIP-155 number of a wallet's chain; none for every other kind.
    pub chain_id: Option<u64>,
}

/// A signature after everything that can be checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSignature {
    /// What it is if it verifies.
    pub verified: VerifiedSignature,
    /// What a chain has to confirm for that; nothing for every kind but wallets.
    pub question: Option<WalletQuestion>,
}

/// A signature that does not verify or cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It does not have the form of its kind.
    #[error("a signature cannot be read: {0}")]
    Unreadable(&'static str),
    /// It is not a signature of the text by its key.
    #[error("{0} signature does not verify")]
    Wrong(&'static str),
}

/// The text of an update with what its signatures need of it, each computed once however many signatures there are.
#[derive(Debug)]
pub struct SignedText {
    text: String,
    personal_message_hash: OnceCell<[u8; 32]>,
    prehash: OnceCell<Sha512>,
    challenge: OnceCell<String>,
}

impl SignedText {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: String) -> SignedText {
        SignedText {
            text,
            personal_message_hash: OnceCell::new(),
            prehash: OnceCell::new(),
            challenge: OnceCell::new(),
        }
    }

    /// The hash that accounts and wallets sign (ERC-191, version 0x45).
    #[must_use]
    pub fn personal_message_hash(&self) -> &[u8; 32] {
        self.personal_message_hash
            .get_or_init(|| ethereum::personal_message_hash(self.text.as_bytes()))
    }

    /// The text, hashed but not finished, for Ed25519ph.
    fn prehash(&self) -> &Sha512 {
        self.prehash.get_or_init(|| Sha512::new_with_prefix(&self.text))
    }

    /// The WebAuthn challenge: the whole text in base64url without padding.
    fn challenge(&self) -> &str {
        self.challenge.get_or_init(|| URL_SAFE_NO_PAD.encode(&self.text))
    }

    /// Verifies a signature of the text as far as no chain is needed.
    ///
    /// # Errors
    /// [`SignatureError`] when it cannot be read or does not verify.
    pub fn check(&self, signature: &WireSignature) -> Result<CheckedSignature, SignatureError> {
        let verified = match signature {
            WireSignature::Erc191(signature) => {
                ethereum::verify(self.personal_message_hash(), &signature.bytes)?
            }
            WireSignature::InstallationKey(signature) => installation::verify(self.prehash(), signature)?,
            WireSignature::Passkey(signature) => passkey::verify(self.challenge(), signature)?,
            WireSignature::Erc6492(signature) => {
                return wallet::check(*self.personal_message_hash(), signature);
            }
        };
        Ok(CheckedSignature {
            verified,
            question: None,
        })
    }
}
