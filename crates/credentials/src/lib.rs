#![forbid(unsafe_code)]
//! Who may call: API keys, JSON Web Tokens, and the key sets that sign them (AUTH sections 1 and 2).
//!
//! Pure. The time, the bytes of a key set and the verdict on a signature come in; what is to be fetched or verified goes
//! out. A credential admits its caller and binds to nothing: no inbox, no group. Nothing of a token, an API key or a key
//! set is ever shown by an error, a `Debug` or a status (AUTH-027).
//!
//! | module | what it owns |
//! | - | - |
//! | [`configuration`] | what an operator sets, checked |
//! | [`public_path`] | the paths that never need a credential |
//! | [`bearer`] | the token of a request: from the header, or from a WebSocket's subprotocols |
//! | [`api_key`] | tokens that are compared |
//! | [`algorithm`] | the signatures that are accepted |
//! | [`token`], [`claims`] | tokens that are signed: what they must look like, and what they must say |
//! | [`key_set`], [`inline_key`] | the keys that sign tokens |
//! | [`key_source`] | when a key set is fetched, and how long it is good |
//! | [`gate`] | one request's credential, from its header to its admission |
//! | [`rejection`] | every way to be refused, and its fixed words |
//! | `json` | JSON without repeated members |

pub mod algorithm;
pub mod api_key;
pub mod bearer;
pub mod claims;
pub mod configuration;
pub mod gate;
#[cfg(test)]
mod hostile_tokens;
pub mod inline_key;
mod json;
pub mod key_set;
pub mod key_source;
pub mod public_path;
pub mod rejection;
pub mod token;

pub use configuration::{ConfigurationError, CredentialConfiguration, Credentials};
pub use gate::{Admission, Check, Gate, SignatureCheck};
pub use key_source::{KeySource, Lease, Step};
pub use rejection::Rejection;
