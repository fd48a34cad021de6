//! The seeds of conversations that every run of the tests covers, and proof that they would find something.

use conclave_conversation::planted;
use conclave_sim::conversation::{
    bugs::{Breach, Bug},
    report::Report,
    seeds,
    simulation::{Options, simulate},
};

/// Seeds of one test of the code as it is. Several tests run side by side.
const SEEDS_PER_TEST: u64 = 10;
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

/// The first seed, from one that is known to show it, whose history does not hold with a bug in place. The faults are those
/// that give it its occasion.
fn find(bug: Bug, members: usize, byzantine: usize, faults: &str, first: u64) -> Report {
    let options = Options {
        members: Some(members),
        byzantine: Some(byzantine),
        faults: faults.parse().expect("the faults are known"),
        bug: Some(bug),
    };
    let found = (first..first + SEEDS)
        .map(|seed| simulate(seed, &options))
        .find(|report| !report.violations.is_empty());
    let found = found.unwrap_or_else(|| panic!("{bug} is not found"));
    // It is the bug that was found.
    assert_holds(&simulate(found.seed, &Options { bug: None, ..options }));
    found
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
    let report = find(Bug::Step(planted::Bug::OnlyAuthorShares), 2, 0, "all", 1);
    let command = format!(
        "cargo xtask sim conversation --replay {} --members 2 --byzantine 0 --bug only-author-shares",
        report.seed
    );
    assert!(report.to_string().contains(&command), "{report}");
}

/// A test that a bug is found among so many members, so many of them Byzantine, under these faults, from this seed on.
macro_rules! finds {
    ($($name:ident: $bug:expr, $members:expr, $byzantine:expr, $faults:expr, $first:expr;)*) => {
        $(
            #[test]
            fn $name() {
                assert_ne!(find($bug, $members, $byzantine, $faults, $first).violations, []);
            }
        )*
    };
}

finds! {
    finds_relaxed_durability: Bug::Breach(Breach::DurabilityRelaxed), 2, 0, "crash", 1;
    finds_effects_before_their_commit: Bug::Breach(Breach::EffectsBeforeCommit), 2, 0, "crash,store", 12;
    finds_torn_transactions: Bug::Breach(Breach::TornTransactions), 2, 0, "crash,store", 33;
    finds_a_feed_that_passes_over_what_was_lost_in_a_crash: Bug::Breach(Breach::CursorBeforeEffects), 2, 0, "crash", 7;
    finds_a_message_that_is_accepted_and_not_ordered: Bug::Breach(Breach::AcceptedNotOrdered), 2, 0, "all", 18;
    finds_an_order_of_its_own: Bug::Breach(Breach::OrderOfItsOwn), 3, 0, "delay", 1;
    finds_a_lock_that_survives_its_anchor: Bug::Step(planted::Bug::LockSurvivesReanchor), 2, 0, "restart,delay,lose", 10;
    finds_evidence_that_outlives_its_lock: Bug::Step(planted::Bug::ReleasedLockKeepsEvidence), 2, 0, "restart,delay,lose", 10;
    finds_a_superseded_action_that_is_kept: Bug::Step(planted::Bug::SupersededFoldKept), 4, 1, "delay", 16;
    finds_a_certified_competitor_that_is_refused: Bug::Step(planted::Bug::CompetitorRefused), 4, 1, "delay", 15;
    finds_a_lock_that_moves_without_its_certificate: Bug::Step(planted::Bug::SupersedeWithoutCertificate), 4, 1, "delay,crash", 83;
    finds_a_staged_action_that_is_superseded: Bug::Step(planted::Bug::StagedSuperseded), 4, 2, "delay", 12;
    finds_copies_that_only_the_author_shares: Bug::Step(planted::Bug::OnlyAuthorShares), 2, 0, "none", 1;
    finds_broadcasts_of_what_each_member_assembles: Bug::Step(planted::Bug::AssembledBroadcast), 2, 0, "none", 1;
    finds_a_proposal_behind_the_fence: Bug::Step(planted::Bug::ProposeWhileFenced), 2, 0, "restart,delay,crash", 8;
    finds_a_rebase_behind_the_fence: Bug::Step(planted::Bug::RebaseWhileFenced), 3, 0, "restart,crash,lose", 5;
    finds_answers_that_wait_for_recovery: Bug::Step(planted::Bug::AnswersWaitForRecovery), 2, 0, "restart,crash,delay", 1;
    finds_a_holder_that_says_it_has_nothing: Bug::Step(planted::Bug::HolderSaysIncomplete), 2, 0, "restart,delay,crash", 3;
    finds_a_vote_behind_a_staged_successor: Bug::Step(planted::Bug::VoteBehindSuccessor), 3, 0, "restart,delay,offline", 8;
    finds_signatures_of_every_proposal: Bug::Step(planted::Bug::SignEveryProposal), 3, 0, "delay,lose", 1;
    finds_readiness_that_a_silent_member_holds: Bug::Step(planted::Bug::ReadinessNeedsAll), 4, 1, "restart,delay", 1;
    finds_a_holder_that_begins_again: Bug::Step(planted::Bug::HolderBeginsAgain), 4, 1, "restart,delay,lose", 72;
    finds_a_record_that_is_staged_behind_a_vote_to_leave: Bug::Step(planted::Bug::StagesWhileLeaving), 4, 1, "restart,delay,lose", 38;
    finds_a_whole_record_that_must_be_staged_first: Bug::Step(planted::Bug::WholeRecordStagedFirst), 4, 1, "restart,delay,lose", 38;
}
