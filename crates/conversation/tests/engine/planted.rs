//! Steps of the protocol done wrong on purpose: the scenarios that hold the rules must fail with them, and for that reason.

use std::panic::{AssertUnwindSafe, catch_unwind};

use conclave_conversation::planted::{Bug, plant};

use crate::{beginnings, certification, deviating, judging, recovering};

/// What a scenario fails with while a bug is planted.
fn failure(bug: Bug, scenario: fn()) -> String {
    plant(Some(bug));
    let outcome = catch_unwind(AssertUnwindSafe(scenario));
    plant(None);
    let Err(panic) = outcome else {
        panic!("{bug:?} is not noticed");
    };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .expect("a panic says why")
}

macro_rules! notices {
    ($($name:ident: $bug:ident in $scenario:path, $words:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let failure = failure(Bug::$bug, $scenario);
                assert!(failure.contains($words), "{failure}");
            }
        )*
    };
}

notices! {
    a_superseded_fold_that_is_kept: SupersededFoldKept
        in deviating::a_late_signature_on_an_action_that_lost_its_lock_has_no_subject, "is not locked";
    a_certified_competitor_that_is_refused: CompetitorRefused
        in deviating::a_lock_moves_to_a_record_that_a_quorum_signed_and_its_action_is_never_signed_by_the_mover, "no entry found";
    a_lock_that_moves_without_its_certificate: SupersedeWithoutCertificate
        in deviating::a_member_whose_lock_moved_restarts_with_the_whole_certificate, "certificate is not complete";
    a_staged_action_that_is_superseded: StagedSuperseded
        in deviating::an_endpoint_that_staged_its_locked_action_refuses_a_conflicting_record_whoever_signed_it, "is staged";
    a_whole_record_that_is_staged_and_voted_for: WholeRecordStagedFirst
        in certification::a_record_received_whole_is_not_voted_for_now_or_after_a_restart, "transmits.is_empty()";
    a_record_staged_under_an_anchor_that_was_left: StagesWhileLeaving
        in judging::after_a_vote_to_leave_an_anchor_nothing_is_staged_under_it_even_when_its_instance_is_reached_again, "is staged";
    a_holder_of_a_genesis_that_begins_again: HolderBeginsAgain
        in beginnings::whoever_staged_a_genesis_signs_no_other_even_when_a_quorum_says_that_it_has_none, "proposes no other";
    a_fenced_cursor_that_is_kept_before_the_run_ends: FencedCursorKept
        in recovering::a_fenced_cursor_is_durable_only_with_the_end_of_the_run, "left == right";
}
