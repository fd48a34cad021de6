//! The operations of an open endpoint, by name. Pure: text in, text out.
//!
//! Every operation is a request that can be carried from one tab to another as it is, so that a new one is an arm here and a
//! typed wrapper in `ts/`. May depend on: `Handle`.

use conclave_harness::canonical_json;
use serde_json::Value;

use super::deliveries::SubscriptionId;
use super::handle::Handle;
use crate::failure::{Failure, Operation};

/// The named arguments of a request.
pub(crate) struct Arguments(Value);

impl Arguments {
    /// Reads a JSON object.
    pub(crate) fn parse(json: &str) -> Result<Self, Failure> {
        canonical_json::read(json.as_bytes())
            .map(Arguments)
            .map_err(|_| misunderstood("the arguments"))
    }

    /// Whether there is an argument of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// The text of this name.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Failure> {
        self.0
            .get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| misunderstood(name))
    }

    /// The whole number of this name, from 0.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Failure> {
        self.0
            .get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| misunderstood(name))
    }
}

/// Carries out one operation. `is_cancelled` is asked before anything is recorded.
pub(crate) async fn carry_out(
    handle: &Handle,
    operation: &str,
    arguments: &Arguments,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<String, Failure> {
    match operation {
        "send" => {
            let (to, content) = (arguments.text("to")?, arguments.text("content")?);
            let post_id = arguments
                .text("postId")?
                .parse()
                .map_err(|_| misunderstood("postId"))?;
            handle.send(to, content, post_id, is_cancelled).await?;
            Ok(String::new())
        }
        "subscribe" => Ok(handle.subscribe()?.0.to_string()),
        "next" => {
            let id = SubscriptionId(arguments.number("subscription")?);
            Ok(handle
                .next_delivery(id)
                .await
                .map_or_else(String::new, |delivery| {
                    // A token is base64url, and the projection is canonical JSON already.
                    format!(
                        "{{\"token\":\"{}\",\"message\":{}}}",
                        delivery.delivery_token, delivery.canonical_message
                    )
                }))
        }
        "unsubscribe" => {
            handle.unsubscribe(SubscriptionId(arguments.number("subscription")?));
            Ok(String::new())
        }
        "acknowledge" => {
            handle.acknowledge(arguments.text("token")?).await?;
            Ok(String::new())
        }
        // The one answer of several lines.
        "history" => handle.history(arguments).await,
        "registryKey" => Ok(handle.registry_key()),
        "conversations" => handle.conversations().await,
        "wake" => {
            handle.wake();
            Ok(String::new())
        }
        _ => Err(misunderstood(operation)),
    }
}

/// Both sides are one release: what is not understood comes of mixing two.
fn misunderstood(what: &str) -> Failure {
    let words = format!("another release asks this one for something it does not know: {what}");
    Failure::new(Operation::Open, "incompatible-owner", words)
}
