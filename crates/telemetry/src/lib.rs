#![forbid(unsafe_code)]
//! What a deployment says of itself: one line per request, counters, trace context (OPS section 3.6).
//!
//! Nothing here may name a topic, an inbox, a key, a group, a cursor, a payload or the value of a header (OPS-014). That
//! is held by types rather than by care: what is recorded of a request is a [`Route`] of a fixed table, a status code,
//! sizes and durations, ids that are made here, and words of a fixed vocabulary.
//!
//! Pure: no clock, no output. Depends on `grpc-web` for status codes.
//!
//! | module | what it owns |
//! | - | - |
//! | [`route`] | the three labels of an RPC |
//! | [`trace_context`] | the `traceparent` of a caller |
//! | [`completion`] | the line that is written when a request is over |
//! | [`counters`] | what is counted, in one process |
//! | [`exposition`] | counters as Prometheus reads them |
//! | `text` | names and JSON strings |

pub mod completion;
pub mod counters;
pub mod exposition;
pub mod route;
mod text;
pub mod trace_context;

pub use completion::Completion;
pub use counters::Counters;
pub use exposition::Gauges;
pub use route::Route;
pub use trace_context::TraceId;
