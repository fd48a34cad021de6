//! The seeds that every run of the tests covers, and proof that they would find something.

use conclave_sim::backend::{
    bugs::{Breach, Bug},
    report::Report,
    seeds,
    simulation::{Options, Workload, simulate},
};
use conclave_topiclog::planted;

/// Seeds of one test of the code as it is. Several tests run side by side.
const SEEDS_PER_TEST: u64 = 25;
/// Seeds within which a planted bug must be found: those of the tests below, all together.
const SEEDS: u64 = 4 * SEEDS_PER_TEST;

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
fn find(bug: Bug) -> Report {
    find_among(bug, Workload::Mixed, SEEDS)
}

fn find_among(bug: Bug, workload: Workload, seeds: u64) -> Report {
    let options = Options {
        workload,
        bug: Some(bug),
        ..Options::default()
    };
    let found = (1..=seeds)
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

// API-201, API-202, API-203, API-220, API-221, API-222, API-224, API-254, API-286, API-287, API-288, API-289, API-290, API-291
#[test]
fn everything_holds_in_the_first_quarter_of_the_seeds() {
    run(0);
}

// API-201, API-202, API-203, API-220, API-221, API-222, API-224, API-254, API-286, API-287, API-288, API-289, API-290, API-291
#[test]
fn everything_holds_in_the_second_quarter_of_the_seeds() {
    run(1);
}

// API-201, API-202, API-203, API-220, API-221, API-222, API-224, API-254, API-286, API-287, API-288, API-289, API-290, API-291
#[test]
fn everything_holds_in_the_third_quarter_of_the_seeds() {
    run(2);
}

// API-201, API-202, API-203, API-220, API-221, API-222, API-224, API-254, API-286, API-287, API-288, API-289, API-290, API-291
#[test]
fn everything_holds_in_the_last_quarter_of_the_seeds() {
    run(3);
}

/// Seeds of the simulation of streams.
const STREAM_SEEDS: u64 = 40;

// API-250, API-252, API-253, API-254, API-256, API-257, API-258, API-259, API-261
#[test]
fn everything_holds_where_clients_follow_streams() {
    let options = Options {
        workload: Workload::Streams,
        ..Options::default()
    };
    for seed in 1..=STREAM_SEEDS {
        assert_holds(&simulate(seed, &options));
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 11] {
        let (once, again) = (
            simulate(seed, &Options::default()),
            simulate(seed, &Options::default()),
        );
        assert_eq!(once.whole_history(), again.whole_history());
        assert_eq!((once.steps, once.virtual_ms), (again.steps, again.virtual_ms));
    }
}

#[test]
fn a_report_names_the_command_that_replays_it() {
    let report = find(Bug::Breach(Breach::PagesCached));
    let command = format!(
        "cargo xtask sim backend --replay {} --bug pages-cached",
        report.seed
    );
    assert!(report.to_string().contains(&command), "{report}");
}

/// A test that a bug is found.
macro_rules! finds {
    ($($name:ident: $bug:expr;)*) => {
        $(
            #[test]
            fn $name() {
                assert_ne!(find($bug).violations, []);
            }
        )*
    };
}

/// A test that a bug is found where clients follow streams.
macro_rules! finds_on_streams {
    ($($name:ident: $bug:expr;)*) => {
        $(
            #[test]
            fn $name() {
                assert_ne!(find_among(Bug::Step($bug), Workload::Streams, STREAM_SEEDS).violations, []);
            }
        )*
    };
}

finds_on_streams! {
    finds_a_chain_that_is_not_looked_at: planted::Bug::ChainUnchecked;
    finds_targets_read_before_registration: planted::Bug::TargetBeforeRegistration;
    finds_a_cursor_of_a_former_registration: planted::Bug::CursorOfTheRemoved;
    finds_deliveries_after_a_remove: planted::Bug::DeliveredAfterRemove;
    finds_pongs_that_are_counted: planted::Bug::PongCounted;
    finds_catch_up_that_starves: planted::Bug::CatchUpUnfair;
    finds_a_restarted_shard_that_is_not_registered_with: planted::Bug::ReintroduceIgnored;
}

finds! {
    finds_an_ignored_output_gate: Bug::Breach(Breach::OutputGateIgnored);
    finds_relaxed_durability: Bug::Breach(Breach::DurabilityRelaxed);
    finds_torn_transactions: Bug::Breach(Breach::TornTransactions);
    finds_a_publish_stored_in_parts: Bug::Breach(Breach::PublishSplit);
    finds_cached_pages: Bug::Breach(Breach::PagesCached);
    finds_a_boundary_that_is_too_high: Bug::Breach(Breach::BoundaryTooHigh);
    finds_an_ignored_chain: Bug::Breach(Breach::ChainIgnored);
    finds_metadata_of_the_answer: Bug::Breach(Breach::MetadataOfTheAnswer);
    finds_a_publish_stored_after_out_of_range: Bug::Breach(Breach::StoredAfterOutOfRange);
    finds_forgotten_alarms: Bug::Breach(Breach::AlarmsForgotten);
    finds_a_decision_before_all_have_prepared: Bug::Step(planted::Bug::DecideBeforeAllPrepared);
    finds_a_reply_before_all_have_applied: Bug::Step(planted::Bug::ReplyBeforeApply);
    finds_ids_released_before_all_have_applied: Bug::Step(planted::Bug::IdsReleasedBeforeApply);
    finds_a_decision_that_is_dropped_early: Bug::Step(planted::Bug::DecisionDroppedEarly);
    finds_topics_that_are_not_held: Bug::Step(planted::Bug::TopicsNotHeld);
    finds_holds_forgotten_on_restart: Bug::Step(planted::Bug::HoldsForgottenOnRestart);
    finds_duplicates_of_what_is_prepared: Bug::Step(planted::Bug::DuplicateIgnoresPrepared);
    finds_a_pending_publish_called_aborted: Bug::Step(planted::Bug::PendingAnsweredAborted);
    finds_a_time_per_shard: Bug::Step(planted::Bug::ServerTimePerShard);
    finds_a_mark_that_is_not_raised: Bug::Step(planted::Bug::MarkNotRaised);
    finds_ids_taken_in_advance: Bug::Step(planted::Bug::IdsTakenInAdvance);
    finds_decisions_the_boundary_ignores: Bug::Step(planted::Bug::BoundaryIgnoresDecisions);
    finds_ids_of_an_epoch_that_is_over: Bug::Step(planted::Bug::EpochIgnored);
    finds_an_ignored_head: Bug::Step(planted::Bug::HeadIgnored);
    finds_claims_that_are_not_held: Bug::Step(planted::Bug::ClaimsNotHeld);
    finds_a_newest_envelope_that_is_deleted: Bug::Step(planted::Bug::NewestDeleted);
}
