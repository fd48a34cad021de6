//! A short run of each comparison. `cargo run --release -p conclave-envelope-oracle --example long -- 1000000` is a long
//! one.

use conclave_envelope_oracle::{Report, compare_group_messages, compare_key_packages};

/// How many inputs each test draws, unless CONCLAVE_ORACLE_RUNS names another number.
const RUNS: usize = 6000;

fn runs() -> usize {
    std::env::var("CONCLAVE_ORACLE_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(RUNS)
}

fn assert_explained(report: &Report, seed: u64) {
    assert!(
        report.unexplained.is_empty(),
        "seed {seed}: {report}\n{}",
        report.unexplained.join("\n")
    );
    assert!(report.both_accept > 0 && report.both_refuse > 0, "{report}");
}

// API-230
#[test]
fn group_messages_are_read_as_openmls_reads_them() {
    assert_explained(&compare_group_messages(1, runs()), 1);
}

// API-230, API-235
#[test]
fn key_packages_are_judged_as_openmls_judges_them_but_for_named_differences() {
    let report = compare_key_packages(2, runs());
    assert_explained(&report, 2);
    for named in ["D1", "D2", "D3", "D5", "D6"] {
        let met = report
            .differences
            .keys()
            .any(|difference| difference.starts_with(named));
        assert!(met, "{named} is met: {report}");
    }
}
