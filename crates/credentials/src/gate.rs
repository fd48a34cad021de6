//! One request's credential, from its header to its admission (AUTH-001, AUTH-006, AUTH-007). Depends on the parts of this
//! crate.
//!
//! 1. [`Gate::present`] reads the header: an API key is admitted here and now, anything else that could be a token goes on;
//! 2. [`SignatureCheck::new`] says which key is to verify the token;
//! 3. [`Gate::admit`] takes the verdict and looks at what the token says.
//!
//! A stream passes once, when it is opened. Nothing that happens later ends it (AUTH-004).

use crate::{
    Credentials, Rejection,
    bearer::{self, TOKEN_BYTES_MAX},
    key_set::{KeyMaterial, KeySet, NoKey},
    token::UnverifiedToken,
};

/// Whom a request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The holder of the API key of this name. The name may stand in logs (AUTH-028).
    ApiKey(String),
    /// The bearer of a token.
    Token,
}

/// What a header came to by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The request is admitted.
    Admitted(Admission),
    /// Its token is to be verified.
    Verify(UnverifiedToken),
}

/// A signature to be verified: with `key`, over `token.signed()`, being `token.signature()`.
#[derive(Clone, Copy, Debug)]
pub struct SignatureCheck<'a> {
    /// The token.
    pub token: &'a UnverifiedToken,
    /// The key.
    pub key: &'a KeyMaterial,
}

impl<'a> SignatureCheck<'a> {
    /// What is to be verified with these keys.
    ///
    /// # Errors
    /// Why none of them may be used. The request is refused as [`Rejection::Untrusted`] either way.
    pub fn new(token: &'a UnverifiedToken, keys: &'a KeySet) -> Result<Self, NoKey> {
        let key = keys.select(token.kid(), token.algorithm())?;
        Ok(Self {
            token,
            key: &key.material,
        })
    }
}

/// What requests pass when credentials are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Gate<'a>(&'a Credentials);

impl<'a> Gate<'a> {
    /// The gate of a deployment.
    #[must_use]
    pub fn new(credentials: &'a Credentials) -> Self {
        Self(credentials)
    }

    /// Reads the value of an `authorization` header.
    ///
    /// # Errors
    /// The first stage the credential fails at.
    pub fn present(&self, authorization: Option<&str>) -> Result<Check, Rejection> {
        let token = bearer::from_header(authorization)?;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Rejection::Malformed);
        }
        if let Some(name) = self.0.api_keys.name_of(token) {
            return Ok(Check::Admitted(Admission::ApiKey(name.to_owned())));
        }
        if !self.0.has_signing_keys() {
            return Err(Rejection::Untrusted);
        }
        UnverifiedToken::parse(token).map(Check::Verify)
    }

    /// Admits the bearer of a token whose signature `is_valid`, at `now_seconds` since the Unix epoch.
    ///
    /// # Errors
    /// The first stage the token fails at.
    pub fn admit(
        &self,
        token: UnverifiedToken,
        is_valid: bool,
        now_seconds: u64,
    ) -> Result<Admission, Rejection> {
        let token = token.verified(is_valid)?;
        self.0.expectations.check(&token, now_seconds)?;
        Ok(Admission::Token)
    }
}
