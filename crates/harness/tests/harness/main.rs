//! What the crate promises, tested through its public surface alone. One binary, so that it links once.

mod agent_card;
mod ed25519;
mod known_answers;
mod registration;
mod rfc8785;
mod sealed_body;
mod sealed_body_form;
mod signed_message;
mod support;
mod x25519;
