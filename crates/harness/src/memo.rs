//! Results of pure computations that a simulation of many agents in one thread need not repeat: whoever verifies a
//! signature there has seen it made, whoever opens a body shares the thread with its sealer, and what one agent decodes
//! all others decode.
//!
//! Compiled only with the feature `crypto-memo`. Without it every function here computes, and nothing is kept. Nothing
//! changes but the time: what is remembered is what the computation gives, keyed by everything it depends on. Depends on
//! nothing.

#[cfg(feature = "crypto-memo")]
pub(crate) use remembering::{
    agreement, exchange_key, remember_agreement, remember_signature, shared_secret, verification,
};
#[cfg(feature = "crypto-memo")]
pub use remembering::{forget, of};
#[cfg(not(feature = "crypto-memo"))]
pub use repeating::of;
#[cfg(not(feature = "crypto-memo"))]
pub(crate) use repeating::{
    agreement, exchange_key, remember_agreement, remember_signature, shared_secret, verification,
};

#[cfg(feature = "crypto-memo")]
mod remembering {
    use crate::key::{PublicKey, SignatureVerificationError};
    use curve25519_dalek::{
        edwards::{CompressedEdwardsY, EdwardsBasepointTable},
        traits::BasepointTable,
    };
    use sha2::{Digest, Sha256};
    use std::{
        any::{Any, TypeId},
        cell::RefCell,
        collections::HashMap,
    };
    use zeroize::Zeroizing;

    /// Entries of each kind, at most. A full memo is emptied.
    const ENTRIES_MAX: usize = 1 << 18;

    /// Decoded values, at most: one may have thousands of bytes.
    const VALUES_MAX: usize = 1 << 14;

    /// The ephemeral and the recipient's public key of an exchange.
    type Exchange = ([u8; 32], [u8; 32]);

    #[derive(Default)]
    struct Memo {
        /// By the digest of key, signature and message.
        verifications: HashMap<[u8; 32], Result<(), SignatureVerificationError>>,
        /// By public key.
        exchange_keys: HashMap<[u8; 32], Option<[u8; 32]>>,
        agreements: HashMap<Exchange, Zeroizing<[u8; 32]>>,
        /// By their type and the digest of what they were made of.
        values: HashMap<(TypeId, [u8; 32]), Box<dyn Any>>,
    }

    std::thread_local! {
        static MEMO: RefCell<Memo> = RefCell::default();
        /// Multiples of public keys, which make multiplying with them faster. Never forgotten: agents are few.
        static TABLES: RefCell<HashMap<[u8; 32], Option<Box<EdwardsBasepointTable>>>> = RefCell::default();
    }

    /// Forgets everything this thread remembers.
    pub fn forget() {
        MEMO.with_borrow_mut(|memo| *memo = Memo::default());
    }

    fn digest(key: &[u8; 32], signature: &[u8; 64], message: &[u8]) -> [u8; 32] {
        let digest = Sha256::new().chain_update(key).chain_update(signature);
        digest.chain_update(message).finalize().into()
    }

    fn keep<K: std::hash::Hash + Eq, V>(kept: &mut HashMap<K, V>, most: usize, key: K, value: V) {
        if kept.len() >= most {
            kept.clear();
        }
        kept.insert(key, value);
    }

    /// What `compute` gives. It is called `what` and depends on nothing but `key`.
    pub fn of<K: AsRef<[u8]>, V: Clone + 'static>(
        what: &str,
        key: impl FnOnce() -> K,
        compute: impl FnOnce() -> V,
    ) -> V {
        let digest = Sha256::new().chain_update(what).chain_update(key());
        let key = (TypeId::of::<V>(), digest.finalize().into());
        let known = MEMO.with_borrow(|memo| memo.values.get(&key)?.downcast_ref::<V>().cloned());
        known.unwrap_or_else(|| {
            let made = compute();
            let kept: Box<dyn Any> = Box::new(made.clone());
            MEMO.with_borrow_mut(|memo| keep(&mut memo.values, VALUES_MAX, key, kept));
            made
        })
    }

    /// A signature just made verifies.
    pub(crate) fn remember_signature(key: &[u8; 32], signature: &[u8; 64], message: &[u8]) {
        let digest = digest(key, signature, message);
        MEMO.with_borrow_mut(|memo| keep(&mut memo.verifications, ENTRIES_MAX, digest, Ok(())));
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
        MEMO.with_borrow_mut(|memo| keep(&mut memo.verifications, ENTRIES_MAX, digest, found));
        found
    }

    /// What a secret and a public key exchange, computed on the Edwards curve. The public key's `u` is of no use then.
    pub(crate) fn shared_secret(
        secret: &[u8; 32],
        public: &PublicKey,
        _u: &[u8; 32],
    ) -> Option<Zeroizing<[u8; 32]>> {
        TABLES.with_borrow_mut(|tables| {
            let table = tables.entry(*public.as_bytes()).or_insert_with(|| {
                let point = CompressedEdwardsY(*public.as_bytes()).decompress()?;
                Some(Box::new(EdwardsBasepointTable::create(&point)))
            });
            let shared = table.as_ref()?.mul_base_clamped(*secret).to_montgomery();
            let shared = Zeroizing::new(shared.to_bytes());
            (*shared != [0; 32]).then_some(shared)
        })
    }

    pub(crate) fn exchange_key(
        key: &[u8; 32],
        derive: impl FnOnce() -> Option<[u8; 32]>,
    ) -> Option<[u8; 32]> {
        if let Some(known) = MEMO.with_borrow(|memo| memo.exchange_keys.get(key).copied()) {
            return known;
        }
        let found = derive();
        MEMO.with_borrow_mut(|memo| keep(&mut memo.exchange_keys, ENTRIES_MAX, *key, found));
        found
    }

    /// Both sides of an exchange compute the same.
    pub(crate) fn remember_agreement(ephemeral: &[u8; 32], recipient: &[u8; 32], shared: &[u8; 32]) {
        let shared = Zeroizing::new(*shared);
        MEMO.with_borrow_mut(|memo| {
            keep(
                &mut memo.agreements,
                ENTRIES_MAX,
                (*ephemeral, *recipient),
                shared,
            )
        });
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

    /// What `compute` gives. It is called by its name and depends on nothing but `key`.
    pub fn of<K, V>(_: &str, _key: impl FnOnce() -> K, compute: impl FnOnce() -> V) -> V {
        compute()
    }

    pub(crate) const fn remember_signature(_: &[u8; 32], _: &[u8; 64], _: &[u8]) {}

    pub(crate) fn verification(
        _: &[u8; 32],
        _: &[u8; 64],
        _: &[u8],
        verify: impl FnOnce() -> Result<(), SignatureVerificationError>,
    ) -> Result<(), SignatureVerificationError> {
        verify()
    }

    pub(crate) fn shared_secret(
        secret: &[u8; 32],
        _: &PublicKey,
        u: &[u8; 32],
    ) -> Option<Zeroizing<[u8; 32]>> {
        crate::x25519::shared_secret(secret, u)
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
