#![forbid(unsafe_code)]
//! Every decoder that reads bytes from outside, as a function of any bytes that must not panic and whose assertions must
//! hold. `cargo xtask fuzz` looks for bytes that break one; the tests here replay the corpus that was found.
//!
//! One target a file, in [`targets`]; [`TARGETS`] names them as `fuzz/fuzz_targets` and `fuzz/corpus` do.

pub mod targets;

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of its file here and in `fuzz/fuzz_targets`, and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Panics if the bytes break it.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: targets::$name::run,
        }),*];
    };
}

targets![
    admit_identity_update,
    agent_artifacts,
    conversation_values,
    credentials,
    exported_history,
    grpc_web_request,
    grpc_web_response,
    identity_texts,
    node_answers,
    outer_message,
    publish_request,
    read_requests,
];
