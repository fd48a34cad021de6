//! Ed25519 under one strict profile (reference section 8), and what is derived from such a key.

use crate::{base64url, canonical_json, closed_object::ClosedObject, x25519};
use curve25519_dalek::{edwards::CompressedEdwardsY, scalar::Scalar};
use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// What a key's identifier starts with (RFC 9278).
pub const THUMBPRINT_URI_PREFIX: &str = "urn:ietf:params:oauth:jwk-thumbprint:sha-256:";

/// The length of the canonical text of every public JWK, in bytes.
const PUBLIC_JWK_BYTES_MAX: usize = 79;

/// Whether `text` has the form of a key's identifier: the prefix and the base64url of 32 bytes.
pub(crate) fn is_thumbprint_uri(text: &str) -> bool {
    text.strip_prefix(THUMBPRINT_URI_PREFIX)
        .is_some_and(|digest| base64url::decode_array::<32>(digest).is_ok())
}

/// Encodings of the points whose order divides 8, sign bit cleared, the two unreduced spellings included.
const SMALL_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    little_endian_edge(0x01, 0x00),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    little_endian_edge(0xec, 0xff),
    little_endian_edge(0xed, 0xff),
    little_endian_edge(0xee, 0xff),
];

/// The 32 bytes that start with `first` and go on with `rest`, without a sign bit.
const fn little_endian_edge(first: u8, rest: u8) -> [u8; 32] {
    let mut bytes = [rest; 32];
    bytes[0] = first;
    bytes[31] = rest & 0x7f;
    bytes
}

/// Whether `y`, the sign bit aside, is below `2^255 - 19`.
fn has_canonical_y(bytes: &[u8; 32]) -> bool {
    let greatest = bytes[31] & 0x7f == 0x7f && bytes[1..31].iter().all(|byte| *byte == 0xff);
    !(greatest && bytes[0] >= 0xed)
}

fn without_sign(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes[31] &= 0x7f;
    bytes
}

/// The encoding of an Ed25519 public key that the strict profile admits.
///
/// Whether it is a point of the curve at all is found out when it is used: a card may hold one that is not, and then
/// nothing verifies under it and nothing can be sealed to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// A public key the strict profile refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// The `y` coordinate is not reduced.
    #[error("the key's y coordinate is not below 2^255 - 19")]
    NotCanonical,
    /// The point's order divides 8.
    #[error("the key is a point of small order")]
    SmallOrder,
}

impl PublicKey {
    /// The key of these 32 bytes.
    ///
    /// # Errors
    ///
    /// When `y` is not reduced or the point is of small order.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, PublicKeyError> {
        if SMALL_ORDER.contains(&without_sign(bytes)) {
            return Err(PublicKeyError::SmallOrder);
        }
        if !has_canonical_y(&bytes) {
            return Err(PublicKeyError::NotCanonical);
        }
        Ok(Self(bytes))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key as a JWK.
    pub const fn jwk(self) -> PublicJwk {
        PublicJwk(self)
    }

    /// SHA-256 of the canonical JWK (RFC 7638).
    pub fn thumbprint(&self) -> [u8; 32] {
        Sha256::digest(self.jwk().to_canonical_bytes()).into()
    }

    /// The key's identifier, `kid` of everything it signs: 88 characters.
    pub fn thumbprint_uri(&self) -> String {
        format!("{THUMBPRINT_URI_PREFIX}{}", base64url::encode(&self.thumbprint()))
    }

    /// Whether `signature` is this key's over `message`, by the equation without cofactor.
    ///
    /// The library's plain (not its "strict") verification is that equation: it computes `[S]B - [k]A`, encodes it and
    /// compares bytes with `R`, which leaves `R` only its canonical encoding. What it is lax about, unreduced and
    /// small-order keys, [`PublicKey::from_bytes`] has already refused. Its strict verification would refuse a
    /// small-order `R` too, which the profile does not.
    ///
    /// # Errors
    ///
    /// When it is not, or when the key is not a point of the curve.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureVerificationError> {
        #[cfg(feature = "test-support")]
        VERIFICATIONS.set(VERIFICATIONS.get() + 1);
        crate::memo::verification(&self.0, &signature.0, message, || {
            self.verify_anew(message, signature)
        })
    }

    fn verify_anew(&self, message: &[u8], signature: &Signature) -> Result<(), SignatureVerificationError> {
        let key = VerifyingKey::from_bytes(&self.0).map_err(|_| SignatureVerificationError)?;
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        key.verify(message, &signature)
            .map_err(|_| SignatureVerificationError)
    }

    /// The X25519 key to seal to: the point's `u` coordinate. `None` when the key is not a point of the curve.
    ///
    /// A key and its negation give the same one.
    pub fn x25519(&self) -> Option<[u8; 32]> {
        crate::memo::exchange_key(&self.0, || {
            let point = CompressedEdwardsY(without_sign(self.0)).decompress()?;
            Some(point.to_montgomery().to_bytes())
        })
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&base64url::encode(&self.0))
    }
}

/// A public key in its JSON form: exactly `crv` = `Ed25519`, `kty` = `OKP` and `x` (RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicJwk(PublicKey);

impl PublicJwk {
    /// The key it holds.
    pub const fn public_key(self) -> PublicKey {
        self.0
    }

    /// The key's identifier.
    pub fn thumbprint_uri(&self) -> String {
        self.0.thumbprint_uri()
    }

    /// Its canonical text. Nothing in it needs escaping and the members are in order.
    pub fn to_canonical_bytes(&self) -> Vec<u8> {
        let x = base64url::encode(self.0.as_bytes());
        format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).into_bytes()
    }

    /// The key of a canonical text.
    ///
    /// # Errors
    ///
    /// When it is not the canonical text of a JWK the strict profile admits.
    pub fn from_canonical_bytes(bytes: &[u8]) -> Result<Self, canonical_json::CanonicalJsonError> {
        canonical_json::decode(bytes, canonical_json::Limits::identity(PUBLIC_JWK_BYTES_MAX))
    }
}

impl From<PublicKey> for PublicJwk {
    fn from(key: PublicKey) -> Self {
        Self(key)
    }
}

impl Serialize for PublicJwk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({ "crv": "Ed25519", "kty": "OKP", "x": base64url::encode(self.0.as_bytes()) })
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PublicJwk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object =
            ClosedObject::open("public key", Value::deserialize(deserializer)?).map_err(de::Error::custom)?;
        let x = (|| {
            object.literal("crv", "Ed25519")?;
            object.literal("kty", "OKP")?;
            let x = object.byte_array("x")?;
            object.close()?;
            Ok::<_, crate::closed_object::SchemaError>(x)
        })()
        .map_err(de::Error::custom)?;
        PublicKey::from_bytes(x).map(Self).map_err(de::Error::custom)
    }
}

/// The encoding of an Ed25519 signature that the strict profile admits: `R` reduced, `S` below the group order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 64]);

/// A signature the strict profile refuses whatever it signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureEncodingError {
    /// The `y` coordinate of `R` is not reduced.
    #[error("the signature's R is not canonical")]
    PointNotCanonical,
    /// `S` is not below the group order.
    #[error("the signature's S is not below the group order")]
    ScalarNotCanonical,
}

impl Signature {
    /// The signature of these 64 bytes.
    ///
    /// # Errors
    ///
    /// When `R` or `S` is not reduced.
    pub fn from_bytes(bytes: [u8; 64]) -> Result<Self, SignatureEncodingError> {
        let (mut point, mut scalar) = ([0; 32], [0; 32]);
        point.copy_from_slice(&bytes[..32]);
        scalar.copy_from_slice(&bytes[32..]);
        if !has_canonical_y(&point) {
            return Err(SignatureEncodingError::PointNotCanonical);
        }
        if Scalar::from_canonical_bytes(scalar).is_none().into() {
            return Err(SignatureEncodingError::ScalarNotCanonical);
        }
        Ok(Self(bytes))
    }

    /// The 64 bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&base64url::encode(&self.0))
    }
}

#[cfg(feature = "test-support")]
std::thread_local! {
    static VERIFICATIONS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    static SIGNATURES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many signatures this thread made.
#[cfg(feature = "test-support")]
pub fn signatures() -> u64 {
    SIGNATURES.get()
}

/// How many signatures this thread was asked to verify.
#[cfg(feature = "test-support")]
pub fn verifications() -> u64 {
    VERIFICATIONS.get()
}

/// A signature that does not verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature is not this key's over this message")]
pub struct SignatureVerificationError;

/// An agent's private key. Its seed is wiped when it is dropped.
#[derive(Clone)]
pub struct AgentKey {
    signing: SigningKey,
    public: PublicKey,
}

impl AgentKey {
    /// The key of an RFC 8032 seed. The caller wipes its own copy.
    ///
    /// # Panics
    ///
    /// Never: a seed's public point has the large prime order and a reduced encoding.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        let signing = SigningKey::from_bytes(&seed);
        let public = PublicKey::from_bytes(signing.verifying_key().to_bytes())
            .expect("a multiple of the base point passes the strict profile");
        Self { signing, public }
    }

    /// Its public half.
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    /// Signs `message`; the same message always gives the same signature.
    pub fn sign(&self, message: &[u8]) -> Signature {
        #[cfg(feature = "test-support")]
        SIGNATURES.set(SIGNATURES.get() + 1);
        let signature = Signature(self.signing.sign(message).to_bytes());
        crate::memo::remember_signature(self.public.as_bytes(), &signature.0, message);
        signature
    }

    /// The X25519 secret that opens what is sealed to [`PublicKey::x25519`]: the first half of SHA-512 of the seed,
    /// clamped.
    pub fn x25519_secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(x25519::clamp(self.signing.to_scalar_bytes()))
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AgentKey({:?})", self.public)
    }
}
