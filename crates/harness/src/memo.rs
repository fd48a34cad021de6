//! Results of pure computations that a simulation of many agents in one thread need not repeat: whoever verifies a
//! signature there has seen it made, and whoever opens a body shares the thread with its sealer.
//!
//! Compiled only with the feature `crypto-memo`. Without it every function here computes, and nothing is kept. Nothing
//! changes but the time: what is remembered is what the computation gives, keyed by everything it depends on. Depends on
//! nothing.

#[cfg(feature = "crypto-memo")]
pub use remembering::forget;
#[cfg(feature = "crypto-memo")]
pub(crate) use remembering::{agreement, exchange_key, remember_agreement, remember_signature, verification};
#[cfg(not(feature = "crypto-memo"))]
pub(crate) use repeating::{agreement, exchange_key, remember_agreement, remember_signature, verification};

#[cfg(feature = "crypto-memo")]
mod remembering {
    use crate::key::{PublicKey, SignatureVerificationError};
    use sha2::{Digest, Sha256};
    use std::{cell::RefCell, collections::HashMap};
    use zeroize::Zeroizing;

    /// Entries of each kind, at most. A full memo is emptied.
    const ENTRIES_MAX: usize = 1 << 18;

    /// The ephemeral and the recipient's public key of an exchange.
    type Exchange = ([u8; 32], [u8; 32]);

    #[derive(Default)]
    struct Memo {
        /// By the digest of key, signature and message.
        verifications: HashMap<[u8; 32], Result<(), SignatureVerificationError>>,
        /// By public key.
        exchange_keys: HashMap<[u8; 32], Option<[u8; 32]>>,
        agreements: HashMap<Exchange, Zeroizing<[u8; 32]>>,
    }

    std::thread_local! {
        static MEMO: RefCell<Memo> = RefCell::default();
    }

    /// Forgets everything this thread remembers.
    pub fn forget() {
        MEMO.with_borrow_mut(|memo| *memo = Memo::default());
    }

    fn digest(key: &[u8; 32], signature: &[u8; 64], message: &[u8]) -> [u8; 32] {
        let digest = Sha256::new().chain_update(key).chain_update(signature);
        digest.chain_update(message).finalize().into()
    }

    fn keep<K: std::hash::Hash + Eq, V>(kept: &mut HashMap<K, V>, key: K, value: V) {
        if kept.len() >= ENTRIES_MAX {
            kept.clear();
        }
        kept.insert(key, value);
    }

    /// A signature just made verifies.
    pub(crate) fn remember_signature(key: &[u8; 32], signature: &[u8; 64], message: &[u8]) {
        let digest = digest(key, signature, message);
        MEMO.with_borrow_mut(|memo| keep(&mut memo.verifications, digest, Ok(())));
    }

    pub(crate) fn verification(
        key: &[u8; 32],
        signature: &[u8; 64],
        message: &[u8],
        verify: impl FnOnce() -> Result<(), SignatureVerificationError>,
    ) -> Result<(), SignatureVerificationError> {
        let digest = digest(key, signature, message);
        if let Some(known) = MEMO.with_borrow(|memo| memo.verifications.get(&digest).copied()) {
            return known;
        }
        let found = verify();
        MEMO.with_borrow_mut(|memo| keep(&mut memo.verifications, digest, found));
        found
    }

    pub(crate) fn exchange_key(
        key: &[u8; 32],
        derive: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<[u8; 32]> {
        if let Some(known) = MEMO.with_borrow(|memo| memo.exchange_keys.get(key).copied()) {
            return known;
        }
        let found = derive();
        MEMO.with_borrow_mut(|memo| keep(&mut memo.exchange_keys, *key, found));
        found
    }

    /// Both sides of an exchange compute the same.
    pub(crate) fn remember_agreement(ephemeral: &[u8; 32], recipient: &[u8; 32], shared: &[u8; 32]) {
        let shared = Zeroizing::new(*shared);
        MEMO.with_borrow_mut(|memo| keep(&mut memo.agreements, (*ephemeral, *recipient), shared));
    }

    pub(crate) fn agreement(
        ephemeral: &[u8; 32],
        recipient: &PublicKey,
        agree: impl FnOnce() -> Option<Zeroizing<[u8; 32]>>,
    ) -> Option<Zeroizing<[u8; 32]>> {
        let key = (*ephemeral, recipient.x25519()?);
        MEMO.with_borrow(|memo| memo.agreements.get(&key).cloned())
            .or_else(agree)
    }
}

#[cfg(not(feature = "crypto-memo"))]
mod repeating {
    use crate::key::{PublicKey, SignatureVerificationError};
    use zeroize::Zeroizing;

    pub(crate) const fn remember_signature(_: &[u8; 32], _: &[u8; 64], _: &[u8]) {}

    pub(crate) fn verification(
        _: &[u8; 32],
        _: &[u8; 64],
        _: &[u8],
        verify: impl FnOnce() -> Result<(), SignatureVerificationError>,
    ) -> Result<(), SignatureVerificationError> {
        verify()
    }

    pub(crate) fn exchange_key(_: &[u8; 32], derive: impl FnOnce() -> Option<[u8; 32]>) -> Option<[u8; 32]> {
        derive()
    }

    pub(crate) const fn remember_agreement(_: &[u8; 32], _: &[u8; 32], _: &[u8; 32]) {}

    pub(crate) fn agreement(
        _: &[u8; 32],
        _: &PublicKey,
        agree: impl FnOnce() -> Option<Zeroizing<[u8; 32]>>,
    ) -> Option<Zeroizing<[u8; 32]>> {
        agree()
    }
}
