//! Tokens that are signed: JSON Web Tokens as compact JWS (RFC 7515, RFC 7519, AUTH-008). Depends on
//! [`crate::algorithm`], [`crate::claims`] and `json`.
//!
//! A token becomes trusted in two steps: [`UnverifiedToken`] is parsed and proves nothing, [`VerifiedToken`] has a valid
//! signature and may still say the wrong things. Only a header's `alg` and `kid` are read. Whatever else points to a key
//! there (`jwk`, `jku`, `x5c`, `x5u`) is the caller's own word and is left aside.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Rejection,
    algorithm::Algorithm,
    json::{self, Json, Object},
    key_set::KID_BYTES_MAX,
};

/// A token that was parsed. Its claims are not to be believed.
#[derive(Clone, PartialEq)]
pub struct UnverifiedToken {
    algorithm: Algorithm,
    kid: Option<String>,
    /// The header and the claims as they are signed, with the dot between them.
    signed: String,
    signature: Vec<u8>,
    claims: Object,
}

/// A token whose signature is valid.
#[derive(Clone, PartialEq)]
pub struct VerifiedToken {
    claims: Object,
}

impl fmt::Debug for UnverifiedToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("UnverifiedToken(…)")
    }
}

impl fmt::Debug for VerifiedToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("VerifiedToken(…)")
    }
}

impl UnverifiedToken {
    /// Parses a token. Its stages are in the order in which a refusal is reported.
    ///
    /// # Errors
    /// [`Rejection::Malformed`] for what is no compact JWS with a JSON header, [`Rejection::UnsupportedAlgorithm`],
    /// [`Rejection::Malformed`] for a bad `kid`, any `crit` (no extension is understood) or claims that are no JSON
    /// object, and [`Rejection::Untrusted`] for a signature that is no base64url.
    pub fn parse(token: &str) -> Result<Self, Rejection> {
        let (signed, signature) = token.rsplit_once('.').ok_or(Rejection::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Rejection::Malformed)?;
        let header = segment(header)?;
        let algorithm = header
            .get("alg")
            .and_then(Json::text)
            .ok_or(Rejection::Malformed)?;
        let algorithm = Algorithm::of_name(algorithm).ok_or(Rejection::UnsupportedAlgorithm)?;
        let kid = match header.get("kid") {
            None => None,
            Some(Json::Text(kid)) if kid.len() <= KID_BYTES_MAX => Some(kid.clone()),
            Some(_) => return Err(Rejection::Malformed),
        };
        if header.contains_key("crit") {
            return Err(Rejection::Malformed);
        }
        Ok(Self {
            algorithm,
            kid,
            // A dot more in the token is one in here, which no base64url has.
            claims: segment(claims)?,
            signed: signed.to_owned(),
            signature: URL_SAFE_NO_PAD
                .decode(signature)
                .map_err(|_| Rejection::Untrusted)?,
        })
    }

    /// What its header says it is signed with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The id of the key its header names.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// What is signed.
    #[must_use]
    pub fn signed(&self) -> &[u8] {
        self.signed.as_bytes()
    }

    /// The signature.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// The token, now that its signature was verified with the key that [`crate::key_set::KeySet::select`] gave.
    ///
    /// # Errors
    /// [`Rejection::Untrusted`] when the signature is not valid.
    pub fn verified(self, is_valid: bool) -> Result<VerifiedToken, Rejection> {
        if is_valid {
            Ok(VerifiedToken { claims: self.claims })
        } else {
            Err(Rejection::Untrusted)
        }
    }
}

impl VerifiedToken {
    /// What it says.
    pub(crate) fn claims(&self) -> &Object {
        &self.claims
    }
}

/// The JSON object of a segment.
fn segment(text: &str) -> Result<Object, Rejection> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Rejection::Malformed)?;
    json::object(&bytes).ok_or(Rejection::Malformed)
}
