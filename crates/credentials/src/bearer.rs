//! The token of a request (AUTH-005). Depends on [`crate::rejection`].

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::Rejection;

/// The longest token that is looked at, in bytes.
pub const TOKEN_BYTES_MAX: usize = 8192;

/// The scheme, in any case.
const SCHEME: &str = "bearer";

/// What the subprotocol begins with that carries a token, and which is followed by the token as unpadded base64url.
///
/// A page cannot set a header on a WebSocket, and a URL ends up in logs; the list of subprotocols does not.
pub const SUBPROTOCOL_PREFIX: &str = "conclave.bearer.";

/// The token in the value of an `authorization` header.
///
/// # Errors
/// [`Rejection::Missing`] without a header, [`Rejection::NotBearer`] for anything but `Bearer`, one space and something.
pub fn from_header(value: Option<&str>) -> Result<&str, Rejection> {
    let value = value.ok_or(Rejection::Missing)?;
    let (scheme, token) = value.split_once(' ').ok_or(Rejection::NotBearer)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case(SCHEME) || token.is_empty() {
        return Err(Rejection::NotBearer);
    }
    Ok(token)
}

/// The value an `authorization` header would have had, from a WebSocket's `sec-websocket-protocol`, if any of the
/// subprotocols carries a token. One whose base64url cannot be read becomes a value that is refused.
#[must_use]
pub fn header_of_subprotocols(offered: &str) -> Option<String> {
    let token = offered
        .split(',')
        .find_map(|protocol| protocol.trim().strip_prefix(SUBPROTOCOL_PREFIX))?;
    let token = URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|token| String::from_utf8(token).ok())
        .unwrap_or_default();
    Some(format!("Bearer {token}"))
}

/// The subprotocol a WebSocket is accepted with, of those its client offers: the first that carries no token, which nothing
/// repeats, or that one where there is no other, since a browser closes what is accepted without any. What is no token of
/// RFC 9110, as each subprotocol has to be, does not become part of an answer.
#[must_use]
pub fn chosen_subprotocol(offered: &str) -> Option<String> {
    let mut protocols = offered
        .split(',')
        .map(str::trim)
        .filter(|protocol| is_http_token(protocol));
    let without_token = protocols
        .clone()
        .find(|protocol| !protocol.starts_with(SUBPROTOCOL_PREFIX));
    without_token.or_else(|| protocols.next()).map(str::to_owned)
}

fn is_http_token(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !word.is_empty() && word.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    // AUTH-005
    #[test]
    fn the_scheme_is_bearer_in_any_case_and_one_space_stands_before_the_token() {
        for value in [
            "Bearer abc",
            "bearer abc",
            "BEARER abc",
            "Bearer  abc ",
            "bEaReR abc",
        ] {
            assert_eq!(from_header(Some(value)), Ok("abc"), "{value:?}");
        }
        assert_eq!(from_header(None), Err(Rejection::Missing));
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer    ",
            "Bearer\tabc",
            "Basic abc",
            "Bearerabc",
            "abc",
            " Bearer abc",
            "Bearer: abc",
        ] {
            assert_eq!(from_header(Some(value)), Err(Rejection::NotBearer), "{value:?}");
        }
    }

    #[test]
    fn a_subprotocol_carries_any_token() {
        let token = "a.b-c_d~!{\"}";
        let offered = format!("grpc-web, {SUBPROTOCOL_PREFIX}{}", URL_SAFE_NO_PAD.encode(token));
        let header = header_of_subprotocols(&offered).expect("a token is offered");
        assert_eq!(from_header(Some(&header)), Ok(token));
        assert_eq!(header_of_subprotocols("grpc-web"), None);
        assert_eq!(header_of_subprotocols(""), None);
    }

    #[test]
    fn a_websocket_is_accepted_with_a_subprotocol_that_was_offered() {
        assert_eq!(
            chosen_subprotocol("conclave.bearer.eA, grpc-web").as_deref(),
            Some("grpc-web")
        );
        assert_eq!(chosen_subprotocol("grpc-web,other").as_deref(), Some("grpc-web"));
        assert_eq!(
            chosen_subprotocol("conclave.bearer.eA").as_deref(),
            Some("conclave.bearer.eA")
        );
        assert_eq!(chosen_subprotocol(" , "), None);
        for odd in [
            "é",
            "\u{fffd}",
            "a b",
            "a;b",
            "\"a\"",
            "a\u{1}",
            "a\r\nset-cookie: b",
        ] {
            assert_eq!(chosen_subprotocol(odd), None, "{odd:?}");
            assert_eq!(
                chosen_subprotocol(&format!("{odd},grpc-web")).as_deref(),
                Some("grpc-web")
            );
        }
    }

    #[test]
    fn a_subprotocol_that_carries_no_token_is_refused_as_a_header_without_one() {
        for garbage in ["", "=", "a", "_w", "YWJj=", "a b"] {
            let header =
                header_of_subprotocols(&format!("{SUBPROTOCOL_PREFIX}{garbage}")).expect("one is offered");
            assert_eq!(
                from_header(Some(&header)),
                Err(Rejection::NotBearer),
                "{garbage:?}"
            );
        }
    }
}
