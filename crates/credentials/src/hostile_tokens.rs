//! Tokens that were made to be let in, against the whole way from the header to the admission. The signatures stand in
//! for real ones: hashes of what is signed and a secret of the key that was selected.

use std::rc::Rc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::{
    Admission, Check, Credentials, Gate, Rejection, SignatureCheck,
    algorithm::Algorithm,
    api_key::ApiKeys,
    bearer::TOKEN_BYTES_MAX,
    claims::Expectations,
    configuration::SigningKeys,
    key_set::{KeyMaterial, KeySet, SigningKey},
};

const NOW: u64 = 1_800_000_000;
const API_KEY: &str = "an-api-key-of-more-than-32-bytes-in-length";
const GOOD_HEADER: &str = r#"{"alg":"EdDSA","kid":"one"}"#;
const GOOD_CLAIMS: &str = r#"{"exp":1800000300,"aud":"backend","iss":"issuer","scope":"chat read"}"#;

fn key(kid: Option<&str>, algorithm: Algorithm, secret: &[u8]) -> SigningKey {
    SigningKey {
        kid: kid.map(str::to_owned),
        algorithm,
        material: KeyMaterial::Spki(secret.to_vec()),
    }
}

fn keys() -> KeySet {
    KeySet::new(vec![
        key(Some("one"), Algorithm::EdDsa, b"one's"),
        key(Some("two"), Algorithm::Rs256, b"two's"),
        key(None, Algorithm::Es256, b"three's"),
    ])
    .expect("keys")
}

fn credentials() -> Credentials {
    let mut api_keys = ApiKeys::default();
    api_keys.add("ops", API_KEY).expect("a key");
    Credentials {
        api_keys,
        signing_keys: SigningKeys::Inline(Rc::new(keys())),
        expectations: Expectations {
            audiences: vec!["other".to_owned(), "backend".to_owned()],
            issuers: vec!["issuer".to_owned()],
            required_scopes: vec!["chat".to_owned()],
            leeway_seconds: 60,
        },
    }
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn sign(secret: &[u8], signed: &[u8]) -> Vec<u8> {
    Sha256::new()
        .chain_update(secret)
        .chain_update(signed)
        .finalize()
        .to_vec()
}

/// A token with this header and these claims, signed with the key of this secret.
fn signed(secret: &str, header: impl AsRef<[u8]>, claims: &str) -> String {
    let signed = format!("{}.{}", text(header), text(claims));
    let signature = text(sign(secret.as_bytes(), signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// A token with this header and these claims, signed with the first key.
fn token(header: &str, claims: &str) -> String {
    signed("one's", header, claims)
}

/// The whole way of a request.
fn admit(credentials: &Credentials, authorization: Option<&str>) -> Result<Admission, Rejection> {
    let gate = Gate::new(credentials);
    let token = match gate.present(authorization)? {
        Check::Admitted(admission) => return Ok(admission),
        Check::Verify(token) => token,
    };
    let keys = keys();
    let check = SignatureCheck::new(&token, &keys).map_err(|_| Rejection::Untrusted)?;
    let KeyMaterial::Spki(secret) = check.key else {
        return Err(Rejection::Untrusted);
    };
    let is_valid = check.token.signature() == sign(secret, check.token.signed());
    gate.admit(token, is_valid, NOW)
}

fn outcome(token: &str) -> Result<Admission, Rejection> {
    admit(&credentials(), Some(&format!("Bearer {token}")))
}

fn with_claims(claims: &str) -> Result<Admission, Rejection> {
    outcome(&token(GOOD_HEADER, claims))
}

// AUTH-006, AUTH-007
#[test]
fn a_good_token_and_an_api_key_are_admitted() {
    assert_eq!(outcome(&token(GOOD_HEADER, GOOD_CLAIMS)), Ok(Admission::Token));
    assert_eq!(outcome(API_KEY), Ok(Admission::ApiKey("ops".to_owned())));
    let only_api_keys = Credentials {
        signing_keys: SigningKeys::None,
        ..credentials()
    };
    let bearer = |token: &str| admit(&only_api_keys, Some(&format!("bearer {token}")));
    assert_eq!(bearer(API_KEY), Ok(Admission::ApiKey("ops".to_owned())));
    assert_eq!(
        bearer(&token(GOOD_HEADER, GOOD_CLAIMS)),
        Err(Rejection::Untrusted)
    );
    assert_eq!(bearer("junk"), Err(Rejection::Untrusted));
    assert_eq!(
        bearer(&"x".repeat(TOKEN_BYTES_MAX + 1)),
        Err(Rejection::Malformed)
    );
}

// AUTH-005, AUTH-014
#[test]
fn a_header_without_a_token_is_refused_before_anything_else() {
    let credentials = credentials();
    assert_eq!(admit(&credentials, None), Err(Rejection::Missing));
    for header in ["", "Bearer", "Bearer ", "Basic eA==", API_KEY] {
        assert_eq!(
            admit(&credentials, Some(header)),
            Err(Rejection::NotBearer),
            "{header}"
        );
    }
}

// AUTH-005, AUTH-008
#[test]
fn what_is_no_token_is_malformed() {
    let good = token(GOOD_HEADER, GOOD_CLAIMS);
    let (signed, signature) = good.rsplit_once('.').expect("three segments");
    let (header, claims) = signed.split_once('.').expect("two segments");
    let huge = format!("{good}{}", "A".repeat(TOKEN_BYTES_MAX));
    for case in [
        "x",
        "a.b",
        "..",
        "...",
        header,
        signed,
        &format!(".{claims}.{signature}"),
        &format!("{header}..{signature}"),
        &format!("{good}.x"),
        &format!("{good}.x.y"),
        &format!("{header}=.{claims}.{signature}"),
        &format!("{header}.{claims}=.{signature}"),
        &format!("{header}.{claims} .{signature}"),
        &format!("+{header}.{claims}.{signature}"),
        &format!("{header}!.{claims}.{signature}"),
        &format!("{header}, Bearer {good}"),
        &huge,
    ] {
        assert_eq!(outcome(case), Err(Rejection::Malformed), "{case}");
    }
    // The last letter of the header has bits that belong to no byte: two texts would be one header.
    let loose = token(r#"{"alg":"EdDSA","kid":"one" }"#, GOOD_CLAIMS);
    assert_eq!(outcome(&loose), Ok(Admission::Token));
    let (loose_header, rest) = loose.split_once('.').expect("three segments");
    assert_ne!(loose_header.len() % 4, 0, "there are loose bits");
    let last = loose_header.bytes().last().expect("a letter");
    let twisted = format!(
        "{}{}.{rest}",
        &loose_header[..loose_header.len() - 1],
        char::from(last + 1)
    );
    assert_eq!(outcome(&twisted), Err(Rejection::Malformed));
}

// AUTH-008
#[test]
fn a_header_that_is_not_an_object_with_a_text_alg_is_malformed() {
    for header in [
        "",
        "null",
        "[]",
        "\"EdDSA\"",
        "{}",
        "{",
        r#"{"alg":null}"#,
        r#"{"alg":["EdDSA"]}"#,
        r#"{"alg":1}"#,
        r#"{"ALG":"EdDSA"}"#,
        r#"{"alg":"none","alg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","alg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","kid":"two","kid":"one"}"#,
        r#"{"alg":"EdDSA"}{"alg":"EdDSA"}"#,
        "\u{feff}{\"alg\":\"EdDSA\"}",
    ] {
        assert_eq!(
            outcome(&token(header, GOOD_CLAIMS)),
            Err(Rejection::Malformed),
            "{header}"
        );
    }
    let not_text = format!(
        "{}.{}.{}",
        text(b"{\"alg\":\"\xff\"}"),
        text(GOOD_CLAIMS),
        text("one's")
    );
    assert_eq!(outcome(&not_text), Err(Rejection::Malformed));
}

// AUTH-008
#[test]
fn no_other_algorithm_is_accepted_in_any_spelling() {
    for algorithm in [
        "none",
        "None",
        "NONE",
        "nOnE",
        "",
        "HS256",
        "HS384",
        "HS512",
        "PS256",
        "ES256K",
        "ES512",
        "eddsa",
        "EDDSA",
        "Ed25519",
        "rs256",
        "RS256 ",
        " EdDSA",
        "EdDSA\\u0000",
        "dir",
        "RSA-OAEP",
    ] {
        for signature in ["", &text("x")] {
            let header = format!(r#"{{"alg":"{algorithm}","kid":"one"}}"#);
            let case = format!("{}.{}.{signature}", text(&header), text(GOOD_CLAIMS));
            assert_eq!(
                outcome(&case),
                Err(Rejection::UnsupportedAlgorithm),
                "{algorithm}"
            );
        }
    }
    // Before the claims are looked at, and after the header.
    let early = format!("{}.!.x", text(r#"{"alg":"none","kid":7,"crit":["b64"]}"#));
    assert_eq!(outcome(&early), Err(Rejection::UnsupportedAlgorithm));
}

#[test]
fn a_kid_that_is_long_or_no_text_and_any_critical_extension_are_malformed() {
    let long = "k".repeat(257);
    for more in [
        format!(r#""kid":"{long}""#),
        r#""kid":7"#.to_owned(),
        r#""kid":null"#.to_owned(),
        r#""kid":["one"]"#.to_owned(),
        r#""kid":{"$ne":""}"#.to_owned(),
        r#""kid":"one","crit":["exp"]"#.to_owned(),
        r#""kid":"one","crit":[]"#.to_owned(),
        r#""kid":"one","crit":null"#.to_owned(),
        r#""kid":"one","b64":false,"crit":["b64"]"#.to_owned(),
    ] {
        let header = format!(r#"{{"alg":"EdDSA",{more}}}"#);
        assert_eq!(
            outcome(&token(&header, GOOD_CLAIMS)),
            Err(Rejection::Malformed),
            "{more}"
        );
    }
    for claims in [
        "",
        "null",
        "[]",
        "7",
        "{",
        r#"{"exp":1,"exp":2}"#,
        r#"{"a":{"b":1,"b":1}}"#,
        "{\"exp\":1e999}",
    ] {
        assert_eq!(with_claims(claims), Err(Rejection::Malformed), "{claims}");
    }
}

// AUTH-009, AUTH-010
#[test]
fn only_the_key_a_header_selects_can_verify_it() {
    let long = "k".repeat(256);
    for (header, secret) in [
        // The algorithm of another key, signed with either.
        (r#"{"alg":"RS256","kid":"one"}"#.to_owned(), "one's"),
        (r#"{"alg":"RS256","kid":"one"}"#.to_owned(), "two's"),
        (r#"{"alg":"EdDSA","kid":"two"}"#.to_owned(), "one's"),
        // Key ids that some stores would look up elsewhere.
        (r#"{"alg":"EdDSA","kid":"../../dev/null"}"#.to_owned(), ""),
        (r#"{"alg":"EdDSA","kid":"one' OR '1'='1"}"#.to_owned(), "one's"),
        (
            r#"{"alg":"EdDSA","kid":"http://evil.example/key"}"#.to_owned(),
            "one's",
        ),
        (r#"{"alg":"EdDSA","kid":"one\u0000"}"#.to_owned(), "one's"),
        (r#"{"alg":"EdDSA","kid":"ONE"}"#.to_owned(), "one's"),
        (r#"{"alg":"EdDSA","kid":""}"#.to_owned(), "one's"),
        (format!(r#"{{"alg":"EdDSA","kid":"{long}"}}"#), "one's"),
        // The key without an id has none that could be named, and none signs for an algorithm it does not have.
        (r#"{"alg":"RS384"}"#.to_owned(), "two's"),
        (r#"{"alg":"ES256","kid":"three"}"#.to_owned(), "three's"),
        // Signed by another key, or by nobody.
        (GOOD_HEADER.to_owned(), "two's"),
        (GOOD_HEADER.to_owned(), "one"),
        (GOOD_HEADER.to_owned(), ""),
        // Keys of the caller's own.
        (
            r#"{"alg":"EdDSA","kid":"mine","jwk":{"kty":"OKP"}}"#.to_owned(),
            "mine",
        ),
        (
            r#"{"alg":"EdDSA","kid":"mine","jku":"https://evil.example"}"#.to_owned(),
            "mine",
        ),
        (r#"{"alg":"EdDSA","kid":"mine","x5c":["MII"]}"#.to_owned(), "mine"),
    ] {
        let case = signed(secret, &header, GOOD_CLAIMS);
        assert_eq!(outcome(&case), Err(Rejection::Untrusted), "{header} {secret}");
    }
    let good = token(GOOD_HEADER, GOOD_CLAIMS);
    for signature in ["=", "AAA=", "!", "AAAAA", "a b"] {
        let (signed, _) = good.rsplit_once('.').expect("three segments");
        assert_eq!(
            outcome(&format!("{signed}.{signature}")),
            Err(Rejection::Untrusted),
            "{signature}"
        );
    }
    let by_algorithm = signed("three's", r#"{"alg":"ES256"}"#, GOOD_CLAIMS);
    assert_eq!(outcome(&by_algorithm), Ok(Admission::Token));
}

// AUTH-010
#[test]
fn nothing_a_token_says_is_looked_at_before_its_signature() {
    let claims = [r#"{"exp":1}"#, "{}", r#"{"exp":"x","aud":7}"#];
    for claims in claims {
        let case = signed("forged", GOOD_HEADER, claims);
        assert_eq!(outcome(&case), Err(Rejection::Untrusted), "{claims}");
    }
}

// AUTH-011
#[test]
fn a_token_lives_from_nbf_to_exp_with_a_leeway_to_the_second() {
    let more = r#""aud":"backend","iss":"issuer","scope":"chat""#;
    let outcome = |times: &str| with_claims(&format!("{{{times},{more}}}"));
    let leeway = 60;
    assert_eq!(
        outcome(&format!(r#""exp":{}"#, NOW - leeway)),
        Ok(Admission::Token)
    );
    assert_eq!(
        outcome(&format!(r#""exp":{}"#, NOW - leeway - 1)),
        Err(Rejection::Expired)
    );
    assert_eq!(
        outcome(&format!(r#""exp":{}.5"#, NOW - leeway - 1)),
        Ok(Admission::Token)
    );
    assert_eq!(
        outcome(&format!(r#""exp":{}.4"#, NOW - leeway - 1)),
        Err(Rejection::Expired)
    );
    for exp in ["0", "1", "-0.0", "0.4"] {
        assert_eq!(
            outcome(&format!(r#""exp":{exp}"#)),
            Err(Rejection::Expired),
            "{exp}"
        );
    }
    for exp in ["1e300", "18446744073709551616", "9007199254740993"] {
        assert_eq!(outcome(&format!(r#""exp":{exp}"#)), Ok(Admission::Token), "{exp}");
    }
    assert_eq!(
        with_claims(&format!("{{{more}}}")),
        Err(Rejection::Expired),
        "no end"
    );

    let from = |nbf: &str| outcome(&format!(r#""exp":1800009999,"nbf":{nbf}"#));
    assert_eq!(from("0"), Ok(Admission::Token));
    assert_eq!(from(&(NOW + leeway).to_string()), Ok(Admission::Token));
    assert_eq!(from(&format!("{}.4", NOW + leeway)), Ok(Admission::Token));
    assert_eq!(from(&format!("{}.5", NOW + leeway)), Err(Rejection::NotYetValid));
    assert_eq!(from(&(NOW + leeway + 1).to_string()), Err(Rejection::NotYetValid));
    assert_eq!(from("1e300"), Err(Rejection::NotYetValid));
}

// AUTH-012, AUTH-013
#[test]
fn audience_issuer_and_scopes_are_those_that_are_asked_for() {
    let outcome = |claims: &str| with_claims(&format!(r#"{{"exp":1800000300,{claims}}}"#));
    for claims in [
        r#""aud":["x","backend"],"iss":"issuer","scope":["read","chat"]"#,
        r#""aud":"other","iss":"issuer","scope":"read  chat""#,
    ] {
        assert_eq!(outcome(claims), Ok(Admission::Token), "{claims}");
    }
    for aud in [
        r#""aud":"Backend","#,
        r#""aud":"backend ","#,
        r#""aud":[],"#,
        r#""aud":"","#,
        "",
    ] {
        let claims = format!(r#"{aud}"iss":"issuer","scope":"chat""#);
        assert_eq!(outcome(&claims), Err(Rejection::Audience), "{aud}");
    }
    for iss in [r#""iss":"issuer/","#, r#""iss":"","#, ""] {
        let claims = format!(r#"{iss}"aud":"backend","scope":"chat""#);
        assert_eq!(outcome(&claims), Err(Rejection::Issuer), "{iss}");
    }
    for scope in [
        r#""scope":"chats","#,
        r#""scope":"cha t","#,
        r#""scope":["chat read"],"#,
        r#""scope":[],"#,
        "",
    ] {
        let claims = format!(r#"{scope}"aud":"backend","iss":"issuer""#);
        assert_eq!(outcome(&claims), Err(Rejection::Scope), "{scope}");
    }
    let anything = Credentials {
        expectations: Expectations::default(),
        ..credentials()
    };
    let bare = format!("Bearer {}", token(GOOD_HEADER, r#"{"exp":1800000300}"#));
    assert_eq!(admit(&anything, Some(&bare)), Ok(Admission::Token));
}

// AUTH-031
#[test]
fn a_claim_of_the_wrong_type_is_malformed_after_the_claims_that_can_be_read() {
    let good = r#""exp":1800000300,"aud":"backend","iss":"issuer","scope":"chat""#;
    for (name, values) in [
        ("exp", &["null", "\"1800000300\"", "-1", "true", "[]", "{}"][..]),
        ("nbf", &["null", "\"0\"", "-0.5", "[]"]),
        ("aud", &["null", "7", "{}", "[7]", "[\"backend\",null]"]),
        ("iss", &["null", "7", "[\"issuer\"]", "{}"]),
        ("sub", &["null", "7", "[]"]),
        ("scope", &["null", "7", "{}", "[\"chat\",7]"]),
    ] {
        for value in values {
            let others: Vec<_> = good
                .split(",\"")
                .map(|member| format!("\"{}", member.trim_start_matches('"')))
                .filter(|member| !member.starts_with(&format!("\"{name}\"")))
                .collect();
            let claims = format!("{{{},\"{name}\":{value}}}", others.join(","));
            assert_eq!(with_claims(&claims), Err(Rejection::Malformed), "{claims}");
        }
    }
    for (claims, expected) in [
        (r#"{"exp":1,"aud":7,"iss":"issuer"}"#, Rejection::Expired),
        (r#"{"exp":"x","nbf":1900000000}"#, Rejection::NotYetValid),
        (r#"{"exp":"x","aud":"wrong","iss":7}"#, Rejection::Audience),
        (r#"{"exp":"x","aud":"backend","iss":"wrong"}"#, Rejection::Issuer),
        (
            r#"{"exp":1800000300,"aud":"backend","iss":"issuer","sub":7}"#,
            Rejection::Malformed,
        ),
    ] {
        assert_eq!(with_claims(claims), Err(expected), "{claims}");
    }
}

// AUTH-027
#[test]
fn nothing_of_a_token_shows() {
    let credentials = credentials();
    let header = format!("Bearer {}", token(GOOD_HEADER, GOOD_CLAIMS));
    let check = Gate::new(&credentials).present(Some(&header)).expect("a token");
    let shown = format!("{check:?} {credentials:?}");
    for private in [
        "issuer\":",
        "backend\":",
        "chat",
        &text("one's"),
        &text(GOOD_CLAIMS),
        API_KEY,
    ] {
        let shown = shown.replace("required_scopes: [\"chat\"]", "");
        assert!(!shown.contains(private), "{private} in {shown}");
    }
}

proptest! {
    #[test]
    fn no_header_is_admitted_by_accident(header in any::<String>()) {
        prop_assert!(admit(&credentials(), Some(&header)).is_err());
    }

    #[test]
    fn a_good_token_with_one_letter_changed_is_refused(at in 0_usize..200, letter in "[A-Za-z0-9._-]") {
        let good = token(GOOD_HEADER, GOOD_CLAIMS);
        let at = at % good.len();
        prop_assume!(good[at..=at] != letter);
        let mut changed = good;
        changed.replace_range(at..=at, &letter);
        prop_assert!(outcome(&changed).is_err(), "{}", changed);
    }
}
