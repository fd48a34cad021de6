//! The wire structures of MLS (RFC 9420) that admission reads. Depends on nothing.
//!
//! Structure only: no signature, epoch, suite or lifetime is judged, because the backend holds no group state. The
//! reader is total, allocates nothing, and never trusts a declared length.
//!
//! - [`reader`]: integers and vectors with a length header of one, two or four bytes;
//! - [`message`]: an MLSMessage with a PublicMessage or a PrivateMessage in it;
//! - `tree`: the structures inside a PublicMessage, walked to find its end.

pub mod message;
pub mod reader;
mod tree;

pub use message::{ContentType, Framing};
pub use reader::Malformed;
