//! Every way a credential is refused (AUTH-014). Depends on nothing.

/// Why a request is not admitted. Its words say nothing about the credential beyond the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejection {
    /// There is no `authorization` header.
    #[error("missing bearer token")]
    Missing,
    /// The header holds another scheme, or no token.
    #[error("authorization header is not a bearer token")]
    NotBearer,
    /// The token is too long or not a JSON Web Token, or a claim it proves has the wrong type.
    #[error("token is not a supported JWT")]
    Malformed,
    /// The token is signed with an algorithm that is not accepted.
    #[error("token is not a supported JWT")]
    UnsupportedAlgorithm,
    /// No API key, no signing key or no valid signature stands behind the token.
    #[error("token signature is not trusted")]
    Untrusted,
    /// The token says no end of its life, or one that has passed.
    #[error("token has expired")]
    Expired,
    /// The token's life has not begun.
    #[error("token is not yet valid")]
    NotYetValid,
    /// The token is meant for someone else.
    #[error("token audience is not allowed")]
    Audience,
    /// The token comes from someone who may not issue any.
    #[error("token issuer is not allowed")]
    Issuer,
    /// The caller is known and lacks a scope.
    #[error("token is missing a required scope")]
    Scope,
}

/// How many words [`Rejection::reason`] knows.
pub const REASON_COUNT: usize = 9;

impl Rejection {
    /// Every word of [`Rejection::reason`], by [`Rejection::reason_index`].
    pub const REASONS: [&'static str; REASON_COUNT] = [
        "missing",
        "malformed",
        "unsupported_alg",
        "untrusted",
        "expired",
        "not_yet_valid",
        "audience",
        "issuer",
        "scope",
    ];

    /// The word that logs and counters use.
    #[must_use]
    pub fn reason(self) -> &'static str {
        Self::REASONS[self.reason_index()]
    }

    /// Where [`Rejection::reason`] stands among [`Rejection::REASONS`].
    #[must_use]
    pub fn reason_index(self) -> usize {
        match self {
            Self::Missing => 0,
            Self::NotBearer | Self::Malformed => 1,
            Self::UnsupportedAlgorithm => 2,
            Self::Untrusted => 3,
            Self::Expired => 4,
            Self::NotYetValid => 5,
            Self::Audience => 6,
            Self::Issuer => 7,
            Self::Scope => 8,
        }
    }

    /// Whether the caller is known and only not allowed: PERMISSION_DENIED. Everything else is UNAUTHENTICATED, after which
    /// a client tries once more with a fresh credential.
    #[must_use]
    pub fn is_permission(self) -> bool {
        self == Self::Scope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rejection_has_the_fixed_words_of_its_row() {
        for (rejection, reason, message) in [
            (Rejection::Missing, "missing", "missing bearer token"),
            (
                Rejection::NotBearer,
                "malformed",
                "authorization header is not a bearer token",
            ),
            (Rejection::Malformed, "malformed", "token is not a supported JWT"),
            (
                Rejection::UnsupportedAlgorithm,
                "unsupported_alg",
                "token is not a supported JWT",
            ),
            (
                Rejection::Untrusted,
                "untrusted",
                "token signature is not trusted",
            ),
            (Rejection::Expired, "expired", "token has expired"),
            (Rejection::NotYetValid, "not_yet_valid", "token is not yet valid"),
            (Rejection::Audience, "audience", "token audience is not allowed"),
            (Rejection::Issuer, "issuer", "token issuer is not allowed"),
            (Rejection::Scope, "scope", "token is missing a required scope"),
        ] {
            assert_eq!(rejection.reason(), reason);
            assert_eq!(rejection.to_string(), message);
            assert_eq!(rejection.is_permission(), rejection == Rejection::Scope);
        }
    }
}
