//! Records that were staged and not certified when the Router came back: who stages them, and who waits for whom.

use conclave_conversation::engine::timing::CATCH_UP_RETRIES_MAX;
use conclave_conversation::engine::{ConversationStatus, Ignored, WaitingFor};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{AnchorRow, ReanchorRow, StagedRecordRow};
use conclave_conversation::test_support::router_instance;
use conclave_conversation::values::RecordHash;
use conclave_conversation::verification::VerifiedActionCertifiedRecord;

use crate::byhand::{action_certified, certified, completed, post, post_at, vote_for};
use crate::scenario::{
    FIRST_INSTANCE, MISSING, alone, alone_of, anchor, behind_a_gap, body, follows, inject, inject_plaintext,
    nothing_follows, plaintexts, recovered, rows, settled, show, status, with_holders,
};
use crate::world::World;

// CONV-K01
#[test]
fn a_holder_of_a_pair_shows_its_successor_and_both_certify_it_before_they_leave_the_anchor() {
    let (mut world, pair) = with_holders(2, &[0]);
    world.run_out();
    assert!(recovered(&world, &[0, 1], &pair));
    assert_eq!(world.chain(0, &pair).len(), 2);
    assert_eq!(world.chain(1, &pair), world.chain(0, &pair));
    let anchors: Vec<AnchorRow> = rows(&world, 0);
    let head = world.history(0, &pair).pop().unwrap();
    assert_eq!(
        anchors.iter().find_map(|row| row.selected_record_hash.clone()),
        Some(head.record_hash.to_string())
    );
    world.check(&pair);
}

// CONV-K02
#[test]
fn members_that_all_staged_certify_from_what_is_sent_again() {
    let (mut world, everyone) = with_holders(3, &[0, 1, 2]);
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2], &everyone));
    assert_eq!(world.chain(2, &everyone).len(), 2);
    world.check(&everyone);
}

// CONV-K04
#[test]
fn a_successor_is_staged_by_others_only_with_enough_votes() {
    for (members, holders) in [(3, 1), (4, 2), (7, 3)] {
        let holding: Vec<usize> = (0..holders).collect();
        let (mut world, everyone) = with_holders(members, &holding);
        world.run_out();
        let all: Vec<usize> = (0..members).collect();
        assert!(recovered(&world, &all, &everyone), "among {members}");
        assert_eq!(world.chain(members - 1, &everyone).len(), 2, "among {members}");
        world.check(&everyone);
    }
}

// CONV-K05, CONV-K09
#[test]
fn fewer_holders_do_not_convert_the_others_and_adopt_what_those_complete() {
    let (mut world, everyone) = with_holders(4, &[0]);
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2, 3], &everyone));
    // The post is proposed again under the new anchor.
    assert_eq!(world.chain(0, &everyone).len(), 2);
    let records: Vec<StagedRecordRow> = rows(&world, 0);
    assert_eq!(records.len(), 2);
    assert!(
        records
            .iter()
            .all(|row| row.previous_record_hash.is_none() || row.anchor_hash == anchor(&world, 0))
    );
    world.check(&everyone);
}

/// A record after the head of member 0, under the first anchor, that these members signed.
fn successor(world: &World, everyone: &Membership, signers: &[usize]) -> VerifiedActionCertifiedRecord {
    let action = post(world, everyone, signers[0], "successor");
    let anchor = everyone.genesis_anchor(FIRST_INSTANCE);
    action_certified(world, everyone, &action, signers, anchor.into())
}

fn staged(world: &World, record: &VerifiedActionCertifiedRecord) -> bool {
    let hash = record.record().hash().to_string();
    let staged: Vec<StagedRecordRow> = rows(world, 0);
    staged.iter().any(|row| row.record_hash == hash)
}

// CONV-K03
#[test]
fn a_holder_whose_position_is_ready_shows_its_successor_again_and_votes_for_no_reanchor() {
    let (mut world, everyone) = with_holders(4, &[0]);
    for silent in 1..4 {
        world.crash(silent);
    }
    world.settle();
    let shown = |world: &World, kind| plaintexts(world, &everyone, 0, kind).len();
    let before = (shown(&world, "copy"), shown(&world, "vote"));
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(
        (shown(&world, "copy"), shown(&world, "vote")),
        (before.0 + 1, before.1 + 1)
    );
    assert_eq!(rows::<ReanchorRow>(&world, 0), []);
    // Nobody comes: it is shown on a schedule, and then the wait is told.
    world.run_out();
    assert_eq!(rows::<ReanchorRow>(&world, 0), []);
    let repeated = CATCH_UP_RETRIES_MAX as usize;
    assert_eq!(shown(&world, "vote"), before.1 + 1 + repeated);
    let stall = world.members[0].stall(&everyone).expect("a stall");
    assert_eq!(stall.waiting_for, WaitingFor::Votes);
}

// CONV-F17
#[test]
fn among_seven_two_votes_do_not_convert_and_three_do() {
    let (mut world, everyone) = alone_of(7);
    let record = successor(&world, &everyone, &[1, 2, 3, 4, 5]);
    show(&mut world, &everyone, 1, &record, &[1, 2]);
    // Again, and relayed by the other: two voters stay two.
    show(&mut world, &everyone, 2, &record, &[2, 1]);
    assert!(!staged(&world, &record));
    show(&mut world, &everyone, 3, &record, &[3]);
    assert!(staged(&world, &record));
}

// CONV-F18
#[test]
fn a_flood_of_votes_leaves_one_of_each_member_and_nothing_in_the_store() {
    let (mut world, everyone) = alone_of(7);
    let before = world.members[0].store.snapshot();
    let record = successor(&world, &everyone, &[1, 2, 3, 4, 5]);
    for number in 0..100 {
        let vote = vote_for(&world, &everyone, 6, RecordHash::from_bytes([number; 32]));
        inject_plaintext(&mut world, &everyone, 6, &vote.encoded().to_canonical_bytes());
        world.settle();
        let held = world.members[0]
            .engine
            .as_ref()
            .unwrap()
            .holdings()
            .kept_for_later;
        assert_eq!(held, 1);
    }
    assert_eq!(world.members[0].store.snapshot(), before);
    // It takes nobody's place: three honest votes convert.
    show(&mut world, &everyone, 1, &record, &[1, 2]);
    // Not even a relayed older vote does.
    let older = vote_for(&world, &everyone, 1, RecordHash::from_bytes([200; 32]));
    inject_plaintext(&mut world, &everyone, 6, &older.encoded().to_canonical_bytes());
    show(&mut world, &everyone, 3, &record, &[3]);
    assert!(staged(&world, &record));
}

// CONV-K06, CONV-K10
#[test]
fn a_candidate_refuses_conversion_and_under_the_adopted_anchor_a_later_one_works() {
    let (mut world, everyone) = settled();
    let old = successor(&world, &everyone, &[1, 2, 3]);
    show(&mut world, &everyone, 1, &old, &[1, 2]);
    assert!(world.members[0].ignored.contains(&Ignored::CandidateStaged));
    assert!(!staged(&world, &old));
    let left = body(&world, 0, &everyone, router_instance(1));
    let finished = completed(&world, &everyone, &left, &[1, 2, 3]);
    inject(&mut world, &everyone, 1, finished.clone());
    world.settle();
    assert_eq!(anchor(&world, 0), left.hash().to_string());
    // Under the old anchor nothing follows any more.
    show(&mut world, &everyone, 1, &old, &[1, 2, 3]);
    assert!(world.members[0].ignored.contains(&Ignored::NotGapFree));
    assert!(!staged(&world, &old));
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert!(recovered(&world, &[0], &everyone));
    world.restart_router(2);
    world.settle();
    let action = post_at(
        &world,
        &everyone,
        2,
        "later",
        (left.selected_record_hash, left.hash()),
    );
    let later = action_certified(&world, &everyone, &action, &[1, 2, 3], finished.into());
    show(&mut world, &everyone, 2, &later, &[1]);
    assert!(!staged(&world, &later));
    show(&mut world, &everyone, 2, &later, &[2]);
    assert!(staged(&world, &later));
}

// CONV-K07
#[test]
fn after_a_feed_gap_a_successor_alone_is_staged_and_voted_for() {
    let (mut world, everyone) = behind_a_gap(4);
    let record = successor(&world, &everyone, &[1, 2, 3]);
    show(&mut world, &everyone, 1, &record, &[]);
    assert!(staged(&world, &record));
    let copies = plaintexts(&world, &everyone, 0, "copy");
    let votes = plaintexts(&world, &everyone, 0, "vote");
    assert_eq!(
        (copies.len(), votes.len()),
        (2, 2),
        "those of the GENESIS and of this"
    );
}

// CONV-K08
#[test]
fn nobody_settles_behind_a_holder_even_when_the_retries_have_run_out() {
    let (mut world, everyone) = behind_a_gap(3);
    let record = successor(&world, &everyone, &[1, 0, 2]);
    // Member 1 holds it and answers with it; member 2 has nothing.
    show(&mut world, &everyone, 1, &record, &[1]);
    nothing_follows(&mut world, &everyone, &[2]);
    world.run_out();
    assert_eq!(status(&world, 0, &everyone), MISSING);
    assert_eq!(world.chain(0, &everyone).len(), 1);
    show(&mut world, &everyone, 2, &record, &[2]);
    assert_eq!(world.chain(0, &everyone).len(), 2, "it is certified instead");
    nothing_follows(&mut world, &everyone, &[1, 2]);
    assert_eq!(status(&world, 0, &everyone), ConversationStatus::Recovered);
}

// CONV-K11
#[test]
fn what_was_held_goes_when_catch_up_moves_the_head_and_votes_for_the_next_successor_count() {
    let (mut world, everyone) = alone();
    let first = post(&world, &everyone, 1, "successor");
    let record = successor(&world, &everyone, &[1, 2, 3]);
    show(&mut world, &everyone, 1, &record, &[1]);
    assert!(!staged(&world, &record));
    let whole = certified(&world, &everyone, &first, &[1, 2, 3]);
    assert_eq!(whole.record().hash(), record.record().hash());
    follows(&mut world, &everyone, 2, whole.to_value(), true);
    assert_eq!(world.chain(0, &everyone).len(), 2);
    let anchor_hash = *whole.record().anchor_hash();
    let next = post_at(
        &world,
        &everyone,
        2,
        "next",
        (*record.record().hash(), anchor_hash),
    );
    let anchor = everyone.genesis_anchor(FIRST_INSTANCE);
    let next = action_certified(&world, &everyone, &next, &[1, 2, 3], anchor.into());
    show(&mut world, &everyone, 2, &next, &[1, 2]);
    assert!(staged(&world, &next));
}
