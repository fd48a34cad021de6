//! A history in a file, from whoever claims to have exported it.

use conclave_conversation::export::{ExportBegin, ExportLine, ExportVerifier};
use conclave_conversation::values::ClosedValue;
use conclave_harness::{PublicKey, WireVersions};

/// The key of the tests' Registry, under which the corpus verifies.
const REGISTRY: [u8; 32] = [
    186, 233, 125, 51, 39, 26, 26, 61, 176, 101, 82, 5, 114, 192, 69, 157, 32, 210, 91, 235, 251, 217, 109,
    4, 240, 63, 70, 37, 184, 203, 40, 24,
];

/// A verified line is what is written of what it holds, and its record or re-anchor is where the export has come to.
pub fn run(data: &[u8]) {
    let Ok(registry) = PublicKey::from_bytes(REGISTRY) else {
        unreachable!("the key is a key")
    };
    for begin in [ExportBegin::Genesis, ExportBegin::Anywhere] {
        let mut verifier = ExportVerifier::new(registry, WireVersions::history(), begin);
        let mut parts: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
        let rest = parts.pop().unwrap_or_default();
        for line in parts {
            let Ok(verified) = verifier.line(line) else {
                assert!(verifier.end(rest).is_err());
                break;
            };
            let position = verifier.position().copied();
            match verified {
                ExportLine::Membership => {
                    let membership = verifier.membership().map(|held| held.descriptor().encode());
                    assert_eq!(membership.as_deref(), Some(line));
                }
                ExportLine::Record(record) => {
                    assert_eq!(record.to_value().encode(), line);
                    assert_eq!(position, Some(record.position_after()));
                }
                ExportLine::Reanchor(completed) => {
                    assert_eq!(completed.value().encode(), line);
                    assert_eq!(position.map(|at| at.anchor_hash), Some(*completed.anchor_hash()));
                }
            }
        }
    }
}
