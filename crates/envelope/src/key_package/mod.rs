//! Key packages (RFC 9420, section 10) as the backend admits them (contract section 3.1, API-230, API-235). Depends on
//! the reader of [`crate::mls`], on [`crate::topic`] and on Ed25519.
//!
//! Two steps, because a duplicate of a stored envelope passes the first alone (API-222):
//! - [`ParsedKeyPackage::parse`]: the structure, to its last byte, and the topic. A failure is
//!   REASON_MALFORMED_PAYLOAD;
//! - [`ParsedKeyPackage::validate`]: lifetime, credential and the two signatures, at a time the caller names. A failure
//!   is REASON_INVALID_KEY_PACKAGE.
//!
//! Where the contract's text and the habits of MLS libraries part, the text is followed; the differences are marked D1
//! to D8 at the place that decides each:
//! - D1: a package extension that the capabilities do not list is accepted ([`validate`]);
//! - D2: a leaf extension that they do not list is refused ([`validate`]);
//! - D3: an unknown cipher suite parses and is refused afterwards ([`cipher_suite`]);
//! - D4: a repeated extension type does not parse ([`parse`]);
//! - D5, D6: bodies and places of extensions are not judged ([`parse`]);
//! - D7: key packages inside group messages are not judged at all ([`crate::mls`]);
//! - D8: a version other than MLS 1.0 parses and is refused afterwards ([`validate`]).

pub mod cipher_suite;
pub mod parse;
pub mod validate;

pub use parse::{MalformedKeyPackage, ParsedKeyPackage};
pub use validate::{InvalidKeyPackage, ValidKeyPackage};

#[cfg(any(test, feature = "building"))]
pub mod building;
#[cfg(test)]
mod parse_tests;
#[cfg(test)]
mod validate_tests;
