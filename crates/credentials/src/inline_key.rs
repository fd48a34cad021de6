//! Keys an operator writes into the configuration: SubjectPublicKeyInfo as PEM (AUTH-017). Depends on
//! [`crate::key_set`] and `json`.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    algorithm::{Algorithm, KeyKind},
    json::{self, Json},
    key_set::{KEY_COUNT_MAX, KID_BYTES_MAX, KeyMaterial, KeySet, SigningKey, is_usable_rsa},
};

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// What is wrong with the keys in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InlineKeyError {
    /// Not a JSON list of 1 to 64 objects of exactly `kid`, `alg` and `public_key`, all text.
    #[error("is not a JSON list of 1 to {KEY_COUNT_MAX} objects with kid, alg and public_key")]
    Shape,
    /// An empty or long `kid`, or one that stands twice.
    #[error("key {index}: its kid is empty, longer than {KID_BYTES_MAX} bytes or that of another key")]
    Kid {
        /// Which key, from 0.
        index: usize,
    },
    /// An `alg` that is not accepted.
    #[error("key {index}: its alg is none of RS256, RS384, RS512, ES256, ES384, EdDSA")]
    Algorithm {
        /// Which key, from 0.
        index: usize,
    },
    /// A `public_key` that is no key of its algorithm.
    #[error("key {index}: its public_key is no PEM public key of its algorithm")]
    PublicKey {
        /// Which key, from 0.
        index: usize,
    },
}

/// The keys in a JSON list of `{"kid": …, "alg": …, "public_key": "-----BEGIN PUBLIC KEY-----…"}`.
///
/// # Errors
/// What is wrong, and with which key.
pub fn parse(text: &str) -> Result<KeySet, InlineKeyError> {
    let entries = json::list(text.as_bytes()).ok_or(InlineKeyError::Shape)?;
    if entries.len() > KEY_COUNT_MAX {
        return Err(InlineKeyError::Shape);
    }
    let mut keys: Vec<SigningKey> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let Json::Object(entry) = entry else {
            return Err(InlineKeyError::Shape);
        };
        let member = |name: &str| entry.get(name).and_then(Json::text);
        let (Some(kid), Some(alg), Some(pem), 3) =
            (member("kid"), member("alg"), member("public_key"), entry.len())
        else {
            return Err(InlineKeyError::Shape);
        };
        let is_taken = keys.iter().any(|key| key.kid.as_deref() == Some(kid));
        if kid.is_empty() || kid.len() > KID_BYTES_MAX || is_taken {
            return Err(InlineKeyError::Kid { index });
        }
        let algorithm = Algorithm::of_name(alg).ok_or(InlineKeyError::Algorithm { index })?;
        let key_info = der_of_pem(pem)
            .filter(|der| is_key_of(der, algorithm.key_kind()))
            .ok_or(InlineKeyError::PublicKey { index })?;
        keys.push(SigningKey {
            kid: Some(kid.to_owned()),
            algorithm,
            material: KeyMaterial::Spki(key_info),
        });
    }
    KeySet::new(keys).ok_or(InlineKeyError::Shape)
}

/// The bytes between the lines of a PEM public key. Line ends may be missing, as they get lost in variables.
fn der_of_pem(pem: &str) -> Option<Vec<u8>> {
    let body = pem.trim().strip_prefix(PEM_BEGIN)?.strip_suffix(PEM_END)?;
    let base64: String = body
        .chars()
        .filter(|letter| !letter.is_ascii_whitespace())
        .collect();
    STANDARD.decode(base64).ok()
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// The DER of the AlgorithmIdentifier of each kind, without its outermost tag and length.
const RSA_IDENTIFIER: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
const P256_IDENTIFIER: &[u8] =
    b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384_IDENTIFIER: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22";
const ED25519_IDENTIFIER: &[u8] = b"\x06\x03\x2b\x65\x70";

/// The first byte of a point that gives both coordinates.
const UNCOMPRESSED: u8 = 4;

/// Whether this is the SubjectPublicKeyInfo (RFC 5280) of a key of this kind. Whether the point is on its curve shows when
/// the key is imported.
fn is_key_of(der: &[u8], kind: KeyKind) -> bool {
    let parts = || {
        let mut outside = der;
        let mut inside = take(&mut outside, SEQUENCE)?;
        let identifier = take(&mut inside, SEQUENCE)?;
        // The first byte of a bit string counts the bits at its end that are none of it.
        let (0, key) = take(&mut inside, BIT_STRING)?.split_first()? else {
            return None;
        };
        (outside.is_empty() && inside.is_empty()).then_some((identifier, key))
    };
    let Some((identifier, key)) = parts() else {
        return false;
    };
    let is_point = |bytes: usize| key.len() == 1 + 2 * bytes && key[0] == UNCOMPRESSED;
    match kind {
        KeyKind::Rsa => identifier == RSA_IDENTIFIER && is_rsa_key(key),
        KeyKind::P256 => identifier == P256_IDENTIFIER && is_point(32),
        KeyKind::P384 => identifier == P384_IDENTIFIER && is_point(48),
        KeyKind::Ed25519 => identifier == ED25519_IDENTIFIER && key.len() == 32,
    }
}

fn is_rsa_key(mut key: &[u8]) -> bool {
    let numbers = take(&mut key, SEQUENCE).and_then(|mut numbers| {
        let (modulus, exponent) = (take(&mut numbers, INTEGER)?, take(&mut numbers, INTEGER)?);
        numbers.is_empty().then_some((modulus, exponent))
    });
    // The first bit of a negative number is set.
    let is_positive = |number: &[u8]| number.first().is_some_and(|byte| *byte < 0x80);
    numbers.is_some_and(|(modulus, exponent)| {
        key.is_empty() && is_positive(modulus) && is_positive(exponent) && is_usable_rsa(modulus, exponent)
    })
}

/// The content of the DER value at the front, if it has this tag; what follows it is left in `from`.
fn take<'a>(from: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&found, rest) = from.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81 | 0x82 => {
            let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte))
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    *from = after;
    (found == tag).then_some(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made with `openssl genpkey` and `openssl pkey -pubout`.
    const ED25519: &str = "MCowBQYDK2VwAyEA0jyI/PoJlfir8J87CZaD9Ia+sIuKTaESt/DzBFc7IWk=";
    const P256: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\
        04++tJhEnneZ9JeHmm6D/UaR8XzlizoUMbrBY8ibzkXGhbeR3ARDi6Uh40XmQ4MJgIjKjjP96xLxIHK3BpqcRA==";

    fn rsa(modulus_bytes: usize) -> String {
        rsa_of(&[&[0], &vec![0xa5; modulus_bytes][..]].concat(), &[&[1, 0, 1]])
    }

    fn rsa_of(modulus: &[u8], numbers_behind: &[&[u8]]) -> String {
        let der = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).expect("a short value").to_be_bytes();
            [&[tag, 0x82], &length[..], content].concat()
        };
        let behind = numbers_behind.iter().map(|number| der(INTEGER, number));
        let numbers: Vec<u8> = [der(INTEGER, modulus)]
            .into_iter()
            .chain(behind)
            .flatten()
            .collect();
        let key = der(SEQUENCE, &numbers);
        let identifier = [&[SEQUENCE, 13], RSA_IDENTIFIER].concat();
        STANDARD.encode(der(
            SEQUENCE,
            &[identifier, der(BIT_STRING, &[&[0], &key[..]].concat())].concat(),
        ))
    }

    fn entry(kid: &str, alg: &str, base64: &str) -> String {
        format!(r#"{{"kid":"{kid}","alg":"{alg}","public_key":"{PEM_BEGIN}\n{base64}\n{PEM_END}\n"}}"#)
    }

    // AUTH-017
    #[test]
    fn keys_of_every_kind_are_read_from_pem() {
        let text = format!(
            "[{},{},{}]",
            entry("a", "EdDSA", ED25519),
            entry("b", "ES256", P256),
            entry("c", "RS512", &rsa(256))
        );
        let set = parse(&text).expect("keys");
        assert_eq!(set.keys().len(), 3);
        assert_eq!(
            set.keys()[0].material,
            KeyMaterial::Spki(STANDARD.decode(ED25519).expect("base64"))
        );
        let joined = entry("a", "EdDSA", ED25519).replace("\\n", "");
        assert!(parse(&format!("[{joined}]")).is_ok(), "without line ends");
    }

    // AUTH-017
    #[test]
    fn a_key_that_does_not_fit_is_named() {
        for (entries, error) in [
            (String::new(), InlineKeyError::Shape),
            ("7".to_owned(), InlineKeyError::Shape),
            (r#"{"kid":"a"}"#.to_owned(), InlineKeyError::Shape),
            (
                entry("a", "EdDSA", ED25519).replace('}', r#","use":"sig"}"#),
                InlineKeyError::Shape,
            ),
            (entry("", "EdDSA", ED25519), InlineKeyError::Kid { index: 0 }),
            (
                entry(&"k".repeat(257), "EdDSA", ED25519),
                InlineKeyError::Kid { index: 0 },
            ),
            (
                format!("{},{}", entry("a", "EdDSA", ED25519), entry("a", "ES256", P256)),
                InlineKeyError::Kid { index: 1 },
            ),
            (
                entry("a", "HS256", ED25519),
                InlineKeyError::Algorithm { index: 0 },
            ),
            (
                entry("a", "ES256", ED25519),
                InlineKeyError::PublicKey { index: 0 },
            ),
            (entry("a", "ES384", P256), InlineKeyError::PublicKey { index: 0 }),
            (entry("a", "RS256", P256), InlineKeyError::PublicKey { index: 0 }),
            (
                entry("a", "EdDSA", &P256[..40]),
                InlineKeyError::PublicKey { index: 0 },
            ),
            (
                entry("a", "EdDSA", "!!!!"),
                InlineKeyError::PublicKey { index: 0 },
            ),
            (
                entry("a", "RS256", &rsa(255)),
                InlineKeyError::PublicKey { index: 0 },
            ),
            (
                entry("a", "EdDSA", ED25519).replace("PUBLIC", "PRIVATE"),
                InlineKeyError::PublicKey { index: 0 },
            ),
        ] {
            assert_eq!(parse(&format!("[{entries}]")), Err(error), "{entries}");
        }
        assert_eq!(parse("not JSON"), Err(InlineKeyError::Shape));
    }

    // AUTH-017
    #[test]
    fn an_rsa_key_that_could_verify_nothing_or_everything_is_refused() {
        let modulus = [&[0], &[0xa5; 256][..]].concat();
        let fits = |modulus: &[u8], behind: &[&[u8]]| {
            is_key_of(
                &STANDARD.decode(rsa_of(modulus, behind)).expect("base64"),
                KeyKind::Rsa,
            )
        };
        assert!(fits(&modulus, &[&[3]]));
        assert!(fits(&modulus, &[&[0, 0xff, 0xff, 0xff, 0xff]]));
        let wrong: [&[&[u8]]; 8] = [
            &[],
            &[&[]],
            &[&[0]],
            &[&[1]],
            &[&[2]],
            &[&[0xff]],
            &[&[1, 0, 0, 0, 1]],
            &[&[3], &[3]],
        ];
        for exponents in wrong {
            assert!(!fits(&modulus, exponents), "{exponents:?}");
        }
        assert!(!fits(&modulus[1..], &[&[3]]), "negative");
        assert!(!fits(&[0x7f; 256], &[&[3]]), "2047 bits");
    }

    #[test]
    fn bytes_behind_or_missing_from_a_key_are_noticed() {
        let der = STANDARD.decode(P256).expect("base64");
        assert!(is_key_of(&der, KeyKind::P256));
        assert!(!is_key_of(&[&der[..], &[0]].concat(), KeyKind::P256));
        for length in 0..der.len() {
            assert!(!is_key_of(&der[..length], KeyKind::P256), "cut at {length}");
        }
        let mut compressed = der;
        compressed[26] = 2;
        assert!(!is_key_of(&compressed, KeyKind::P256));
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_to_an_end(der in proptest::collection::vec(any::<u8>(), 0..100)) {
            for algorithm in Algorithm::ALL {
                let _ = is_key_of(&der, algorithm.key_kind());
            }
        }
    }
}
