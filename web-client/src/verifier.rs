//! What JavaScript calls to verify an export, line by line. It needs no endpoint, no store and no network.

use conclave_conversation::export::{EXPORT_LINE_BYTES_MAX, ExportBegin, ExportError, ExportVerifier};
use conclave_harness::{PublicJwk, WireVersions};
use serde_json::json;
use wasm_bindgen::prelude::*;

/// An export under verification.
#[wasm_bindgen]
pub struct Verifier(ExportVerifier);

#[wasm_bindgen]
impl Verifier {
    /// A verifier that trusts a Registry's key, given as canonical JSON; none if that is no key. `is_excerpt`: the file
    /// need not begin with the first post.
    pub fn create(registry_key: &str, is_excerpt: bool) -> Option<Verifier> {
        let key = PublicJwk::from_canonical_bytes(registry_key.as_bytes()).ok()?;
        let begin = if is_excerpt {
            ExportBegin::Anywhere
        } else {
            ExportBegin::Genesis
        };
        let verifier = ExportVerifier::new(key.public_key(), WireVersions::history(), begin);
        Some(Verifier(verifier))
    }

    /// Most bytes of a line.
    pub fn line_bytes_max() -> usize {
        EXPORT_LINE_BYTES_MAX
    }

    /// Verifies the next line; `{ line, reason }` as JSON if it does not verify.
    pub fn line(&mut self, bytes: &[u8]) -> Option<String> {
        self.0.line(bytes).err().map(|error| refusal(&error))
    }

    /// The file has ended, with these bytes after its last line; as [`line`](Self::line) if it may not.
    pub fn end(&self, rest: &[u8]) -> Option<String> {
        self.0.end(rest).err().map(|error| refusal(&error))
    }
}

fn refusal(error: &ExportError) -> String {
    json!({ "line": error.line, "reason": error.problem.to_string() }).to_string()
}
