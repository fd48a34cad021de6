//! What a token must say (AUTH-011 to AUTH-013, AUTH-031). Depends on [`crate::token`] and `json`.

use crate::{
    Rejection,
    json::{Json, Object},
    token::VerifiedToken,
};

/// How much clocks may differ unless configured otherwise, in seconds.
pub const DEFAULT_LEEWAY_SECONDS: u32 = 60;
/// How much clocks may be said to differ at most, in seconds (AUTH-032).
pub const LEEWAY_SECONDS_MAX: u32 = 300;

/// What a token must say to admit its bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectations {
    /// For whom it may be meant, one of these. Empty: for anybody.
    pub audiences: Vec<String>,
    /// Who may have issued it, one of these. Empty: anybody.
    pub issuers: Vec<String>,
    /// Scopes it must have, all of these.
    pub required_scopes: Vec<String>,
    /// By how much its times may be missed, in seconds, at most 300.
    pub leeway_seconds: u32,
}

impl Default for Expectations {
    fn default() -> Self {
        Self {
            audiences: Vec::new(),
            issuers: Vec::new(),
            required_scopes: Vec::new(),
            leeway_seconds: DEFAULT_LEEWAY_SECONDS,
        }
    }
}

/// A claim that has the wrong type.
struct WrongType;

type Claim<T> = Result<Option<T>, WrongType>;

impl Expectations {
    /// Holds a token against what is expected, at `now_seconds` since the Unix epoch. A claim of the wrong type is
    /// reported only after the times, the audience and the issuer that can be read, and before the scopes.
    ///
    /// # Errors
    /// The first expectation that is not met.
    pub fn check(&self, token: &VerifiedToken, now_seconds: u64) -> Result<(), Rejection> {
        let claims = token.claims();
        let times = [time(claims, "exp"), time(claims, "nbf")];
        let audience = texts(claims, "aud");
        let issuer = text(claims, "iss");
        let scopes = scopes(claims);

        #[allow(clippy::cast_precision_loss, reason = "a time, below 2^53")]
        let now = now_seconds as f64;
        let leeway = f64::from(self.leeway_seconds);
        let [expiry, not_before] = &times;
        match expiry {
            Ok(Some(expiry)) if *expiry >= now - leeway => {}
            Ok(_) => return Err(Rejection::Expired),
            Err(WrongType) => {}
        }
        if let Ok(Some(not_before)) = not_before
            && *not_before > now + leeway
        {
            return Err(Rejection::NotYetValid);
        }
        if let Ok(audience) = &audience
            && !is_one_of(audience.as_deref().unwrap_or_default(), &self.audiences)
        {
            return Err(Rejection::Audience);
        }
        if let Ok(issuer) = issuer
            && !is_one_of(issuer.as_slice(), &self.issuers)
        {
            return Err(Rejection::Issuer);
        }
        let is_typed = times.iter().all(Result::is_ok)
            && audience.is_ok()
            && issuer.is_ok()
            && text(claims, "sub").is_ok();
        let scopes = scopes.ok().filter(|_| is_typed).ok_or(Rejection::Malformed)?;
        let is_granted = |scope: &String| scopes.contains(&scope.as_str());
        self.required_scopes
            .iter()
            .all(is_granted)
            .then_some(())
            .ok_or(Rejection::Scope)
    }
}

/// Whether one of `said` is wanted. Everything is when nothing in particular is.
fn is_one_of(said: &[&str], wanted: &[String]) -> bool {
    wanted.is_empty() || said.iter().any(|said| wanted.iter().any(|wanted| wanted == said))
}

/// A time in whole seconds; a fraction is rounded.
fn time(claims: &Object, name: &str) -> Claim<f64> {
    match claims.get(name) {
        None => Ok(None),
        Some(Json::Number(seconds)) if *seconds >= 0.0 => Ok(Some(seconds.round())),
        Some(_) => Err(WrongType),
    }
}

fn text<'a>(claims: &'a Object, name: &str) -> Claim<&'a str> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value.text().map(Some).ok_or(WrongType),
    }
}

/// The scopes of a token: a text holds them with spaces between, a list one in each entry.
fn scopes(claims: &Object) -> Result<Vec<&str>, WrongType> {
    let scopes = texts(claims, "scope")?.unwrap_or_default();
    Ok(match claims.get("scope") {
        Some(Json::Text(joined)) => joined.split(' ').collect(),
        _ => scopes,
    })
}

/// A text, or a list of texts.
fn texts<'a>(claims: &'a Object, name: &str) -> Claim<Vec<&'a str>> {
    match claims.get(name) {
        None => Ok(None),
        Some(Json::Text(text)) => Ok(Some(vec![text])),
        Some(Json::List(list)) => {
            let texts: Option<Vec<_>> = list.iter().map(Json::text).collect();
            texts.map(Some).ok_or(WrongType)
        }
        Some(_) => Err(WrongType),
    }
}
