#![forbid(unsafe_code)]
//! gRPC-Web without I/O: frames, trailers, status, deadlines and content types, for servers and clients.
//!
//! A leaf: it depends on prost, bytes and base64, and on no other crate of this workspace. It never reads a socket, a
//! clock or a source of randomness; whoever owns the connection feeds it bytes and sends what it returns.
//!
//! - [`code`], [`status`]: what an RPC came to, and the details it carries;
//! - [`content_type`]: which of the gRPC-Web encodings a peer speaks;
//! - [`frame`], [`text`], [`trailers`]: the body, in both directions;
//! - [`relay`]: the same body for who passes it on;
//! - [`deadline`]: the `grpc-timeout` header;
//! - [`cors`]: what a browser of another origin needs to read a response;
//! - [`server`], [`client`]: the two halves of a call, made of the parts above.

pub mod client;
pub mod code;
pub mod content_type;
pub mod cors;
pub mod deadline;
pub mod frame;
mod percent;
pub mod relay;
pub mod server;
pub mod status;
pub mod text;
pub mod trailers;

pub use code::Code;
pub use content_type::{ContentType, Encoding};
pub use frame::{Frame, FrameDecoder, FrameError};
pub use relay::{FrameRelay, Piece};
pub use status::{Detail, Status};
pub use trailers::Trailers;
