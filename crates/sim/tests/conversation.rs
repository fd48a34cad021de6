//! The seeds of conversations that every run of the tests covers, and proof that they would find something.

use conclave_conversation::planted;
use conclave_sim::conversation::{
    bugs::{Breach, Bug},
    report::Report,
    seeds,
    simulation::{Options, simulate},
};

/// Seeds of one test of the code as it is. Several tests run side by side.
const SEEDS_PER_TEST: u64 = 6;
/// Seeds within which a planted bug must be found.
const SEEDS: u64 = 60;

fn assert_holds(report: &Report) {
    assert!(report.violations.is_empty(), "{report}");
}

fn run(quarter: u64) {
    let first = quarter * SEEDS_PER_TEST + 1;
    for seed in first..first + SEEDS_PER_TEST {
        assert_holds(&simulate(seed, &Options::default()));
    }
}

/// The first seed whose history does not hold with a bug in place.
fn find(bug: Bug, members: usize) -> Report {
    let options = Options {
        members: Some(members),
        bug: Some(bug),
        ..Options::default()
    };
    let found = (1..=SEEDS)
        .map(|seed| simulate(seed, &options))
        .find(|report| !report.violations.is_empty());
    found.unwrap_or_else(|| panic!("{bug} is not found"))
}

#[test]
fn seeds_that_once_failed_hold() {
    for (seed, options) in seeds::kept() {
        assert_holds(&simulate(seed, &options));
    }
}

#[test]
fn everything_holds_in_the_first_quarter_of_the_seeds() {
    run(0);
}

#[test]
fn everything_holds_in_the_second_quarter_of_the_seeds() {
    run(1);
}

#[test]
fn everything_holds_in_the_third_quarter_of_the_seeds() {
    run(2);
}

#[test]
fn everything_holds_in_the_last_quarter_of_the_seeds() {
    run(3);
}

#[test]
fn a_seed_replays_exactly() {
    let options = Options {
        members: Some(3),
        ..Options::default()
    };
    for seed in [3, 11] {
        let (once, again) = (simulate(seed, &options), simulate(seed, &options));
        assert_eq!(once.whole_history(), again.whole_history());
        assert_eq!((once.inputs, once.virtual_ms), (again.inputs, again.virtual_ms));
    }
}

#[test]
fn a_report_names_the_command_that_replays_it() {
    let report = find(Bug::Step(planted::Bug::OnlyAuthorShares), 2);
    let command = format!(
        "cargo xtask sim conversation --replay {} --members 2 --bug only-author-shares",
        report.seed
    );
    assert!(report.to_string().contains(&command), "{report}");
}

/// A test that a bug is found among so many members.
macro_rules! finds {
    ($($name:ident: $bug:expr, $members:expr;)*) => {
        $(
            #[test]
            fn $name() {
                assert_ne!(find($bug, $members).violations, []);
            }
        )*
    };
}

finds! {
    finds_relaxed_durability: Bug::Breach(Breach::DurabilityRelaxed), 2;
    finds_effects_before_their_commit: Bug::Breach(Breach::EffectsBeforeCommit), 2;
    finds_torn_transactions: Bug::Breach(Breach::TornTransactions), 2;
    finds_a_message_that_is_accepted_and_not_ordered: Bug::Breach(Breach::AcceptedNotOrdered), 2;
    finds_evidence_that_outlives_its_lock: Bug::Step(planted::Bug::ReleasedLockKeepsEvidence), 2;
    finds_copies_that_only_the_author_shares: Bug::Step(planted::Bug::OnlyAuthorShares), 2;
}
