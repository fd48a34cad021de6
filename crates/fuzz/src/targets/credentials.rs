//! Credentials: headers, subprotocols, tokens, key sets, and what of a caller gets near a log.

use conclave_credentials::algorithm::Algorithm;
use conclave_credentials::{
    Check, Credentials, Gate, SignatureCheck,
    api_key::ApiKeys,
    bearer,
    claims::Expectations,
    configuration::{JwksUrl, SigningKeys},
    inline_key,
    key_set::{KeyMaterial, KeySet, SigningKey},
    token::UnverifiedToken,
};
use conclave_telemetry::TraceId;
use std::rc::Rc;

/// When tokens are looked at, in seconds since the Unix epoch.
const NOW_SECONDS: u64 = 1_800_000_000;

/// No bytes are admitted whose signature is not valid, and what is refused is refused for its bytes alone.
pub fn run(data: &[u8]) {
    if let Ok(keys) = KeySet::parse(data) {
        for key in keys.keys() {
            if let KeyMaterial::Jwk(text) = &key.material {
                assert!(text.is_ascii() && !text.contains("\"d\""), "{text}");
            }
        }
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = inline_key::parse(text);
    if let Ok(url) = JwksUrl::parse(text) {
        assert_eq!(url.expose(), text);
        assert!(text.contains(url.host()));
    }
    if let Some(trace) = TraceId::of_traceparent(text) {
        assert!(trace.as_str().len() == 32 && text.contains(trace.as_str()));
    }
    if let Some(header) = bearer::header_of_subprotocols(text) {
        assert!(header.starts_with("Bearer "));
    }
    let credentials = credentials();
    let gate = Gate::new(&credentials);
    for header in [text.to_owned(), format!("Bearer {text}")] {
        match gate.present(Some(&header)) {
            Ok(Check::Verify(token)) => judge(&gate, &token),
            Ok(Check::Admitted(_)) => panic!("nobody has this key"),
            Err(_) => {}
        }
    }
}

fn judge(gate: &Gate<'_>, token: &UnverifiedToken) {
    let keys = keys();
    if let Ok(check) = SignatureCheck::new(token, &keys) {
        assert_eq!(check.token.algorithm(), Algorithm::EdDsa);
    }
    assert!(gate.admit(token.clone(), false, NOW_SECONDS).is_err());
    let admitted = gate.admit(token.clone(), true, NOW_SECONDS);
    assert_eq!(gate.admit(token.clone(), true, NOW_SECONDS), admitted);
}

fn keys() -> KeySet {
    KeySet::new(vec![SigningKey {
        kid: Some("one".to_owned()),
        algorithm: Algorithm::EdDsa,
        material: KeyMaterial::Spki(Vec::new()),
    }])
    .expect("one key")
}

fn credentials() -> Credentials {
    Credentials {
        api_keys: ApiKeys::default(),
        signing_keys: SigningKeys::Inline(Rc::new(keys())),
        expectations: Expectations {
            audiences: vec!["backend".to_owned()],
            ..Expectations::default()
        },
    }
}
