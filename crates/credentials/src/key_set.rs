//! The keys that sign tokens, and how a JSON Web Key Set becomes them (AUTH-009, AUTH-016). Depends on
//! [`crate::algorithm`] and `json`.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    algorithm::{Algorithm, KeyKind},
    json::{self, Json, Object},
};

/// The longest key id, in bytes.
pub const KID_BYTES_MAX: usize = 256;
/// The longest key set that is read, in bytes.
pub const KEY_SET_BYTES_MAX: usize = 262_144;
/// How many usable keys of a key set are taken; those behind them are left aside.
pub const KEY_COUNT_MAX: usize = 64;
/// The shortest RSA modulus, in bits (RFC 7518 section 3.3).
pub const RSA_MODULUS_BITS_MIN: usize = 2048;
/// The longest RSA modulus, in bits: verifying takes time with its square.
pub const RSA_MODULUS_BITS_MAX: usize = 8192;
/// The longest RSA exponent, in bits.
const RSA_EXPONENT_BITS_MAX: usize = 32;

/// A public key, as WebCrypto imports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyMaterial {
    /// A JSON Web Key of the members its kind has, and no others.
    Jwk(String),
    /// A SubjectPublicKeyInfo, DER.
    Spki(Vec<u8>),
}

/// A key that signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey {
    /// Its id, of at most 256 bytes.
    pub kid: Option<String>,
    /// The one algorithm it is for.
    pub algorithm: Algorithm,
    /// The key.
    pub material: KeyMaterial,
}

/// Keys that sign tokens. At least one, at most 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet(Vec<SigningKey>);

/// Bytes that are no key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// Longer than 262144 bytes.
    #[error("the key set is longer than {KEY_SET_BYTES_MAX} bytes")]
    TooLong,
    /// No JSON object with a list `keys`.
    #[error("the key set is no JSON object with a list of keys")]
    Malformed,
    /// None of its keys can be used.
    #[error("the key set holds no usable key")]
    NoUsableKey,
}

/// Why no key may verify a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// The token names a key that is not in the set. A newer set may have it.
    UnknownKid,
    /// Several keys could be meant, none has the algorithm, or the named one has another.
    Unfit,
}

impl KeySet {
    /// A set of these keys. `None` without any.
    #[must_use]
    pub fn new(mut keys: Vec<SigningKey>) -> Option<Self> {
        keys.truncate(KEY_COUNT_MAX);
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The usable keys of a JSON Web Key Set (RFC 7517): those with an accepted `alg`, the key type of it, `use` absent or
    /// `sig`, and `kid` absent or a string of at most 256 bytes. All others are skipped.
    ///
    /// # Errors
    /// The bytes are no key set, or nothing in it is usable.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeySetError> {
        if bytes.len() > KEY_SET_BYTES_MAX {
            return Err(KeySetError::TooLong);
        }
        let set = json::object(bytes).ok_or(KeySetError::Malformed)?;
        let Some(Json::List(entries)) = set.get("keys") else {
            return Err(KeySetError::Malformed);
        };
        let usable = entries.iter().filter_map(usable).take(KEY_COUNT_MAX).collect();
        Self::new(usable).ok_or(KeySetError::NoUsableKey)
    }

    /// The keys, in their order.
    #[must_use]
    pub fn keys(&self) -> &[SigningKey] {
        &self.0
    }

    /// The one key a token of this header may be verified with: the key with its `kid`, or the single key with its `alg`
    /// when it names none.
    ///
    /// # Errors
    /// There is no such key, or more than one.
    pub fn select(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&SigningKey, NoKey> {
        let mut fitting = self.0.iter().filter(|key| match kid {
            Some(kid) => key.kid.as_deref() == Some(kid),
            None => key.algorithm == algorithm,
        });
        match (fitting.next(), fitting.next()) {
            (Some(key), None) if key.algorithm == algorithm => Ok(key),
            (None, _) if kid.is_some() => Err(NoKey::UnknownKid),
            _ => Err(NoKey::Unfit),
        }
    }
}

fn usable(entry: &Json) -> Option<SigningKey> {
    let Json::Object(entry) = entry else {
        return None;
    };
    let algorithm = Algorithm::of_name(entry.get("alg")?.text()?)?;
    if entry
        .get("use")
        .is_some_and(|use_for| use_for.text() != Some("sig"))
    {
        return None;
    }
    let kid = match entry.get("kid") {
        None => None,
        Some(kid) => Some(kid.text().filter(|kid| kid.len() <= KID_BYTES_MAX)?.to_owned()),
    };
    Some(SigningKey {
        kid,
        algorithm,
        material: KeyMaterial::Jwk(public_members(entry, algorithm.key_kind())?),
    })
}

/// The JSON Web Key of the public members of `entry`, if it is a key of this kind.
fn public_members(entry: &Object, kind: KeyKind) -> Option<String> {
    let is = |name: &str, value: &str| entry.get(name).and_then(Json::text) == Some(value);
    let curve = |key_type: &str, curve: &str, names: &[&str], bytes: usize| {
        let coordinates: Option<String> = names
            .iter()
            .map(|name| Some(format!(",\"{name}\":\"{}\"", text_of_bytes(entry, name, bytes)?)))
            .collect();
        (is("kty", key_type) && is("crv", curve))
            .then_some(coordinates?)
            .map(|coordinates| format!("{{\"kty\":\"{key_type}\",\"crv\":\"{curve}\"{coordinates}}}"))
    };
    match kind {
        KeyKind::P256 => curve("EC", "P-256", &["x", "y"], 32),
        KeyKind::P384 => curve("EC", "P-384", &["x", "y"], 48),
        KeyKind::Ed25519 => curve("OKP", "Ed25519", &["x"], 32),
        KeyKind::Rsa => {
            let (modulus, exponent) = (entry.get("n")?.text()?, entry.get("e")?.text()?);
            let number = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
            let is_usable = is("kty", "RSA") && is_usable_rsa(&number(modulus)?, &number(exponent)?);
            is_usable.then(|| format!("{{\"kty\":\"RSA\",\"n\":\"{modulus}\",\"e\":\"{exponent}\"}}"))
        }
    }
}

/// The text of a member that is base64url of so many bytes.
fn text_of_bytes<'a>(entry: &'a Object, name: &str, bytes: usize) -> Option<&'a str> {
    let text = entry.get(name)?.text()?;
    let length = URL_SAFE_NO_PAD.decode(text).ok()?.len();
    (length == bytes).then_some(text)
}

/// Whether an RSA key of these numbers, big-endian, may verify anything. With an exponent of 1 every message would be its own
/// signature.
pub(crate) fn is_usable_rsa(modulus: &[u8], exponent: &[u8]) -> bool {
    let is_odd = exponent.last().is_some_and(|byte| byte % 2 == 1);
    (RSA_MODULUS_BITS_MIN..=RSA_MODULUS_BITS_MAX).contains(&bits(modulus))
        && (2..=RSA_EXPONENT_BITS_MAX).contains(&bits(exponent))
        && is_odd
}

/// How many bits a number has, without those at its front that are zero.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let Some((first, rest)) = number[zeros..].split_first() else {
        return 0;
    };
    rest.len() * 8 + first.ilog2() as usize + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: usize) -> String {
        URL_SAFE_NO_PAD.encode(vec![0xa5; bytes])
    }

    fn rsa(more: &str) -> String {
        format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"{more}}}"#, text(256))
    }

    fn ed25519(more: &str) -> String {
        format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"{more}}}"#, text(32))
    }

    fn ec(curve: &str, bytes: usize, more: &str) -> String {
        let coordinate = text(bytes);
        format!(r#"{{"kty":"EC","crv":"{curve}","x":"{coordinate}","y":"{coordinate}"{more}}}"#)
    }

    fn parse(entries: &[String]) -> Result<KeySet, KeySetError> {
        KeySet::parse(format!(r#"{{"keys":[{}],"more":1}}"#, entries.join(",")).as_bytes())
    }

    // AUTH-016
    #[test]
    fn every_accepted_algorithm_is_usable_with_its_key_type() {
        let entries = [
            rsa(r#","alg":"RS256","kid":"a","use":"sig""#),
            rsa(r#","alg":"RS384","kid":"b""#),
            rsa(r#","alg":"RS512","d":"secret","x5c":["junk"]"#),
            ec("P-256", 32, r#","alg":"ES256","kid":"""#),
            ec("P-384", 48, r#","alg":"ES384""#),
            ed25519(r#","alg":"EdDSA""#),
        ];
        let set = parse(&entries).expect("a key set");
        let algorithms: Vec<_> = set.keys().iter().map(|key| key.algorithm).collect();
        assert_eq!(algorithms, Algorithm::ALL);
        let kids: Vec<_> = set.keys().iter().map(|key| key.kid.as_deref()).collect();
        assert_eq!(kids, [Some("a"), Some("b"), None, Some(""), None, None]);
        let expected = format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"}}"#, text(256));
        assert_eq!(
            set.keys()[2].material,
            KeyMaterial::Jwk(expected),
            "nothing private goes on"
        );
    }

    // AUTH-016
    #[test]
    fn what_is_not_usable_is_skipped_and_leaves_the_rest() {
        let long_kid = format!(r#","alg":"EdDSA","kid":"{}""#, "k".repeat(257));
        let unusable = [
            "null".to_owned(),
            "[]".to_owned(),
            "{}".to_owned(),
            rsa(""),
            rsa(r#","alg":"none""#),
            rsa(r#","alg":"PS256""#),
            rsa(r#","alg":"rs256""#),
            rsa(r#","alg":7"#),
            rsa(r#","alg":"HS256""#),
            format!(r#"{{"kty":"oct","k":"{}","alg":"HS256"}}"#, text(32)),
            format!(r#"{{"kty":"oct","k":"{}","alg":"RS256"}}"#, text(256)),
            rsa(r#","alg":"ES256""#),
            rsa(r#","alg":"EdDSA""#),
            rsa(r#","alg":"RS256","use":"enc""#),
            rsa(r#","alg":"RS256","use":null"#),
            rsa(r#","alg":"RS256","kid":7"#),
            rsa(r#","alg":"RS256","kid":null"#),
            ec("P-256", 32, r#","alg":"ES384""#),
            ec("P-384", 48, r#","alg":"ES256""#),
            ec("P-256", 31, r#","alg":"ES256""#),
            ec("P-256", 33, r#","alg":"ES256""#),
            ec("secp256k1", 32, r#","alg":"ES256""#),
            ec("P-256", 32, r#","alg":"EdDSA""#),
            ed25519(&long_kid),
            ed25519(r#","alg":"RS256""#),
            ed25519(r#","alg":"EdDSA","use":"sig,enc""#),
            format!(
                r#"{{"kty":"OKP","crv":"X25519","x":"{}","alg":"EdDSA"}}"#,
                text(32)
            ),
            format!(
                r#"{{"kty":"OKP","crv":"Ed25519","x":"{}=","alg":"EdDSA"}}"#,
                text(32)
            ),
            format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB","alg":"RS256"}}"#, text(128)),
            format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB","alg":"RS256"}}"#, text(1025)),
            format!(r#"{{"kty":"RSA","n":"{}","e":"","alg":"RS256"}}"#, text(256)),
            format!(r#"{{"kty":"RSA","n":"{}","alg":"RS256"}}"#, text(256)),
            rsa(r#","alg":"RS256""#).replace("AQAB", "AQ"),
            rsa(r#","alg":"RS256""#).replace("AQAB", "Ag"),
            rsa(r#","alg":"RS256""#).replace("AQAB", "AAAA"),
            rsa(r#","alg":"RS256""#).replace("AQAB", "AQAAAAE"),
            rsa(r#","alg":"RS256""#).replace(&text(256), &URL_SAFE_NO_PAD.encode([0x7f; 256])),
            rsa(r#","alg":"RS256""#).replace(
                &text(256),
                &URL_SAFE_NO_PAD.encode([&[0][..], &[0xa5; 255]].concat()),
            ),
        ];
        for entry in &unusable {
            assert_eq!(
                parse(std::slice::from_ref(entry)),
                Err(KeySetError::NoUsableKey),
                "{entry}"
            );
        }
        let mut entries = unusable.to_vec();
        entries.push(ed25519(r#","alg":"EdDSA","kid":"good""#));
        let set = parse(&entries).expect("one is usable");
        assert_eq!(set.keys().len(), 1);
    }

    // AUTH-033
    #[test]
    fn junk_is_no_key_set() {
        for junk in [
            "",
            "[]",
            "{}",
            r#"{"keys":{}}"#,
            r#"{"keys":[],"keys":[]}"#,
            "<html>",
            "null",
        ] {
            assert_eq!(
                KeySet::parse(junk.as_bytes()),
                Err(KeySetError::Malformed),
                "{junk}"
            );
        }
        assert_eq!(parse(&[]), Err(KeySetError::NoUsableKey));
        let entry = ed25519(r#","alg":"EdDSA""#);
        let frame = format!(r#"{{"keys":[{entry}],"pad":""}}"#).len();
        let padded = |bytes: usize| {
            let pad = " ".repeat(bytes - frame);
            KeySet::parse(format!(r#"{{"keys":[{entry}],"pad":"{pad}"}}"#).as_bytes())
        };
        assert!(padded(KEY_SET_BYTES_MAX).is_ok());
        assert_eq!(padded(KEY_SET_BYTES_MAX + 1), Err(KeySetError::TooLong));
    }

    // AUTH-033
    #[test]
    fn the_first_64_usable_keys_are_taken() {
        let entries: Vec<_> = (0..70)
            .map(|n| ed25519(&format!(r#","alg":"EdDSA","kid":"{n}""#)))
            .collect();
        let set = parse(&entries).expect("a key set");
        assert_eq!(set.keys().len(), KEY_COUNT_MAX);
        assert!(set.select(Some("63"), Algorithm::EdDsa).is_ok());
        assert_eq!(set.select(Some("64"), Algorithm::EdDsa), Err(NoKey::UnknownKid));
    }

    // AUTH-009
    #[test]
    fn exactly_one_key_is_selected_or_none() {
        let set = parse(&[
            ed25519(r#","alg":"EdDSA","kid":"one""#),
            rsa(r#","alg":"RS256","kid":"two""#),
            rsa(r#","alg":"RS384","kid":"twin""#),
            rsa(r#","alg":"RS512","kid":"twin""#),
            rsa(r#","alg":"RS512""#),
        ])
        .expect("a key set");
        let select = |kid, algorithm| set.select(kid, algorithm).map(|key| key.kid.as_deref());
        assert_eq!(select(Some("one"), Algorithm::EdDsa), Ok(Some("one")));
        assert_eq!(select(None, Algorithm::EdDsa), Ok(Some("one")));
        assert_eq!(select(None, Algorithm::Rs256), Ok(Some("two")));
        assert_eq!(
            select(Some("one"), Algorithm::Rs256),
            Err(NoKey::Unfit),
            "another algorithm"
        );
        assert_eq!(
            select(Some("twin"), Algorithm::Rs384),
            Err(NoKey::Unfit),
            "two of one id"
        );
        assert_eq!(
            select(None, Algorithm::Rs512),
            Err(NoKey::Unfit),
            "two of one algorithm"
        );
        assert_eq!(
            select(None, Algorithm::Es256),
            Err(NoKey::Unfit),
            "none of the algorithm"
        );
        assert_eq!(select(Some("three"), Algorithm::EdDsa), Err(NoKey::UnknownKid));
        assert_eq!(select(Some(""), Algorithm::EdDsa), Err(NoKey::UnknownKid));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = KeySet::parse(&bytes);
        }
    }
}
