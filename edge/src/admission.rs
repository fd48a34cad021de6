//! Whether a request is admitted. The rules are those of `credentials`; this lends it the runtime's `fetch`, WebCrypto and
//! clock. Depends on [`runtime`] and [`recording`](crate::recording).

use std::{cell::RefCell, rc::Rc};

use conclave_configuration::variables;
use conclave_credentials::{
    Admission, Check, Credentials, Gate, KeySource, Lease, Rejection, SignatureCheck, Step, bearer,
    configuration::{JwksUrl, SigningKeys},
    key_set::{KEY_SET_BYTES_MAX, KeyMaterial, KeySet, NoKey},
    key_source::{FETCH_DEADLINE_MS, Timing},
    token::UnverifiedToken,
};
use conclave_grpc_web::Status;
use conclave_proto::xmtp::backend::v1::auth_configuration::SigningKey;
use js_sys::Uint8Array;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::{JsFuture, future_to_promise};

use crate::{
    recording,
    runtime::{self, Headers, InvocationContext, log_error, now_ms},
    timer,
};

/// How long a request looks away while another one fetches the key set, in milliseconds.
const LOOK_AGAIN_MS: u32 = 25;
/// How long a request waits for keys at most, in milliseconds: the attempts of a start, and what lies between them.
const WAIT_FOR_KEYS_MS: u32 = 3 * FETCH_DEADLINE_MS + 2_000;
/// How long who asks for health waits for them, in milliseconds: who watches has no more patience than that, and no answer
/// says less than NOT_SERVING.
const HEALTH_WAITS_FOR_KEYS_MS: u32 = 4_000;

/// Why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its credential is refused.
    Rejected(Rejection),
    /// Its credential cannot be judged: there are no keys.
    NoKeys,
}

impl Refusal {
    /// The status a caller that speaks gRPC gets.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::Rejected(rejection) if rejection.is_permission() => {
                Status::permission_denied(rejection.to_string())
            }
            Self::Rejected(rejection) => Status::unauthenticated(rejection.to_string()),
            Self::NoKeys => Status::unavailable("the keys that tokens are signed with cannot be had"),
        }
    }

    /// The HTTP status any other caller gets.
    pub(crate) fn http_status(self) -> u16 {
        match self {
            Self::Rejected(rejection) if rejection.is_permission() => 403,
            Self::Rejected(_) => 401,
            Self::NoKeys => 503,
        }
    }
}

/// The credential of a request, as an `authorization` header has it. A page cannot set that on a WebSocket, and offers it as
/// a subprotocol instead.
pub(crate) fn credential_of(headers: &Headers) -> Option<String> {
    headers.get("authorization").or_else(|| {
        headers.get("upgrade")?;
        bearer::header_of_subprotocols(&headers.get("sec-websocket-protocol")?)
    })
}

/// Judges the credential of a request.
pub(crate) async fn admit(
    credentials: &Credentials,
    authorization: Option<&str>,
    invocation: &InvocationContext,
) -> Result<Admission, Refusal> {
    let gate = Gate::new(credentials);
    let token = match gate.present(authorization).map_err(Refusal::Rejected)? {
        Check::Admitted(admission) => return Ok(admission),
        Check::Verify(token) => token,
    };
    let keys = keys(credentials, invocation, WAIT_FOR_KEYS_MS)
        .await
        .ok_or(Refusal::NoKeys)?;
    let is_valid = match SignatureCheck::new(&token, &keys) {
        Ok(check) => is_signed(check).await,
        Err(reason) => {
            if reason == NoKey::UnknownKid {
                refresh_for_unknown_key(credentials, invocation);
            }
            false
        }
    };
    gate.admit(token, is_valid, now_ms() / 1_000)
        .map_err(Refusal::Rejected)
}

/// Whether there are keys, or none are needed.
pub(crate) async fn is_ready(credentials: &Credentials, invocation: &InvocationContext) -> bool {
    credentials.signing_keys == SigningKeys::None
        || keys(credentials, invocation, HEALTH_WAITS_FOR_KEYS_MS)
            .await
            .is_some()
}

/// What is published about a key set that is fetched: the keys this process began with (CONF-068). `None` when there are
/// none yet and none can be had.
pub(crate) async fn published_keys(
    credentials: &Credentials,
    invocation: &InvocationContext,
) -> Option<Vec<SigningKey>> {
    match &credentials.signing_keys {
        SigningKeys::Fetched { timing, .. } => {
            let first = || with_source(*timing, |source| source.first_keys().cloned());
            // They never change (CONF-012): once they are known, nobody waits for an issuer that is away.
            if first().is_none() {
                keys(credentials, invocation, WAIT_FOR_KEYS_MS).await;
            }
            first().map(|keys| variables::published_keys(&keys))
        }
        SigningKeys::None => Some(Vec::new()),
        SigningKeys::Inline(keys) => Some(variables::published_keys(keys)),
    }
}

/// How many signing keys this process has.
pub(crate) fn key_count(credentials: &Credentials) -> usize {
    match &credentials.signing_keys {
        SigningKeys::None => 0,
        SigningKeys::Inline(keys) => keys.keys().len(),
        SigningKeys::Fetched { timing, .. } => with_source(*timing, |source| source.key_count()),
    }
}

async fn is_signed(check: SignatureCheck<'_>) -> bool {
    let key = match check.key {
        KeyMaterial::Jwk(text) => JsValue::from_str(text),
        KeyMaterial::Spki(bytes) => Uint8Array::from(bytes.as_slice()).into(),
    };
    let token: &UnverifiedToken = check.token;
    let verdict = runtime::verify_signature(
        token.algorithm().name(),
        &key,
        &Uint8Array::from(token.signed()),
        &Uint8Array::from(token.signature()),
    );
    // It never rejects.
    JsFuture::from(verdict)
        .await
        .is_ok_and(|verdict| verdict.is_truthy())
}

thread_local! {
    /// The keys of this process, if they are fetched.
    static SOURCE: RefCell<Option<KeySource>> = const { RefCell::new(None) };
}

fn with_source<T>(timing: Timing, ask: impl FnOnce(&mut KeySource) -> T) -> T {
    SOURCE.with_borrow_mut(|source| ask(source.get_or_insert_with(|| KeySource::new(timing))))
}

/// The keys that sign tokens. `None` when there are none, and after `wait_ms`; a fetch goes on then.
async fn keys(credentials: &Credentials, invocation: &InvocationContext, wait_ms: u32) -> Option<Rc<KeySet>> {
    let (url, timing) = match &credentials.signing_keys {
        SigningKeys::None => return None,
        SigningKeys::Inline(keys) => return Some(Rc::clone(keys)),
        SigningKeys::Fetched { url, timing } => (url, *timing),
    };
    let give_up_ms = now_ms() + u64::from(wait_ms);
    loop {
        let now = now_ms();
        match with_source(timing, |source| source.step(now)) {
            Step::Use(keys) => return Some(keys),
            Step::UseAndFetch(keys, lease) => {
                fetch(url.clone(), timing, lease, invocation);
                return Some(keys);
            }
            Step::Fetch(lease) => fetch(url.clone(), timing, lease, invocation),
            Step::Wait if now < give_up_ms => timer::delay(LOOK_AGAIN_MS).await,
            Step::Wait | Step::Unavailable => return None,
        }
    }
}

fn refresh_for_unknown_key(credentials: &Credentials, invocation: &InvocationContext) {
    if let SigningKeys::Fetched { url, timing } = &credentials.signing_keys
        && let Some(lease) = with_source(*timing, |source| source.unknown_key(now_ms()))
    {
        fetch(url.clone(), *timing, lease, invocation);
    }
}

/// Fetches the key set, also when the client of this request has gone.
fn fetch(url: JwksUrl, timing: Timing, lease: Lease, invocation: &InvocationContext) {
    let work = future_to_promise(async move {
        let fetched = fetch_once(&url).await;
        if let Err(reason) = &fetched {
            log_error(&format!("the key set at {} cannot be had: {reason}", url.host()));
        }
        recording::key_set_settled(fetched.is_ok());
        let mut random = [0; 4];
        runtime::fill_random(&mut random);
        let random = u32::from_le_bytes(random);
        with_source(timing, |source| {
            source.settle(lease, fetched.ok(), now_ms(), random)
        });
        Ok(JsValue::UNDEFINED)
    });
    invocation.wait_until(&work);
}

async fn fetch_once(url: &JwksUrl) -> Result<KeySet, String> {
    #[allow(clippy::cast_precision_loss, reason = "a limit of 256 KiB")]
    let answer = runtime::fetch_key_set(url.expose(), KEY_SET_BYTES_MAX as f64, FETCH_DEADLINE_MS);
    // What went wrong in words may name the URL.
    let answer = JsFuture::from(answer)
        .await
        .map_err(|_| "no connection".to_owned())?;
    if let Some(bytes) = answer.dyn_ref::<Uint8Array>() {
        return KeySet::parse(&bytes.to_vec()).map_err(|error| error.to_string());
    }
    Err(match answer.as_f64() {
        Some(status) => format!("HTTP status {status}"),
        None if answer.is_null() => format!("it is longer than {KEY_SET_BYTES_MAX} bytes"),
        None => format!("no answer within {FETCH_DEADLINE_MS} ms"),
    })
}
