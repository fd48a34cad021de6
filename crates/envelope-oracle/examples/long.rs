//! A long run of both comparisons: `cargo run --release -p conclave-envelope-oracle --example long -- RUNS SEED`.
//! Fails when a difference has no explanation.

use std::process::ExitCode;

use conclave_envelope_oracle::{Report, compare_group_messages, compare_key_packages};

/// A comparison by seed and number of inputs.
type Comparison = fn(u64, usize) -> Report;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments
        .next()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(1_000_000);
    let seed = arguments.next().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut explained = true;
    let comparisons: [(&str, Comparison); 2] = [
        ("key packages", compare_key_packages),
        ("group messages", compare_group_messages),
    ];
    for (what, compare) in comparisons {
        let report = compare(seed, runs);
        println!("seed {seed}, {runs} {what}: {report}");
        for difference in report.unexplained.iter().take(20) {
            println!("  {difference}");
        }
        explained &= report.unexplained.is_empty();
    }
    if explained {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
