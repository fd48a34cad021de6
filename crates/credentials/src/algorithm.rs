//! The signature algorithms that are accepted (AUTH-008). Depends on nothing.

/// An algorithm of RFC 7518 or RFC 8037. There is no `none` and no HMAC, so no confusion with them either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// What kind of key an algorithm takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA.
    Rsa,
    /// A point of P-256.
    P256,
    /// A point of P-384.
    P384,
    /// An Ed25519 public key.
    Ed25519,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 6] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The name in `alg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of this name, letter by letter.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The keys it takes.
    #[must_use]
    pub fn key_kind(self) -> KeyKind {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 => KeyKind::Rsa,
            Self::Es256 => KeyKind::P256,
            Self::Es384 => KeyKind::P384,
            Self::EdDsa => KeyKind::Ed25519,
        }
    }
}
