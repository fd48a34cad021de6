//! Nodes of EVM chains over HTTP. Depends on [`runtime`](crate::runtime).

use std::rc::Rc;

use conclave_chain::{EvmChains, Transport, TransportError};
use conclave_topiclog::{
    Configuration,
    chain_routes::RpcUrl,
    chains::{Chains, NoChains},
};
use js_sys::{Date, Uint8Array};
use wasm_bindgen::JsCast as _;
use wasm_bindgen_futures::JsFuture;

use crate::{runtime, timer};

const MILLISECONDS_PER_SECOND: f64 = 1_000.0;

/// The chains of a deployment.
pub(crate) fn of(configuration: &Configuration) -> Rc<dyn Chains> {
    if configuration.chains.is_empty() {
        Rc::new(NoChains)
    } else {
        Rc::new(EvmChains::new(configuration.chains.clone(), Nodes))
    }
}

/// `fetch`, for whichever request is being answered. Holds nothing, because what belongs to one request must not be
/// used by another.
#[derive(Clone, Copy, Debug)]
struct Nodes;

impl Transport for Nodes {
    async fn post(
        &self,
        url: &RpcUrl,
        body: Vec<u8>,
        answer_bytes_max: usize,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, TransportError> {
        let body = Uint8Array::from(body.as_slice());
        #[allow(clippy::cast_precision_loss, reason = "a limit of a few MiB")]
        let answer = runtime::post_json(url.expose(), body, answer_bytes_max as f64, deadline_ms);
        // What went wrong in words may name the node, and with it a key.
        let answer = JsFuture::from(answer).await.map_err(|_| TransportError::Failed)?;
        if let Some(bytes) = answer.dyn_ref::<Uint8Array>() {
            return Ok(bytes.to_vec());
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a HTTP status"
        )]
        match answer.as_f64() {
            Some(status) => Err(TransportError::HttpStatus(status as u16)),
            None if answer.is_null() => Err(TransportError::TooLong),
            None => Err(TransportError::DeadlineExceeded),
        }
    }

    async fn delay(&self, milliseconds: u32) {
        timer::delay(milliseconds).await;
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds since 1970, whole"
    )]
    fn now_seconds(&self) -> u64 {
        (Date::now() / MILLISECONDS_PER_SECOND) as u64
    }

    fn log(&self, line: &str) {
        runtime::log_error(line);
    }
}
