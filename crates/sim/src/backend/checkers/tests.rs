//! Each checker finds what it is there for, in a history made by hand that is sound but for one thing.

use conclave_grpc_web::Code;
use conclave_proto::xmtp::backend::v1::{Cursor, EnvelopeMeta, MessageHash, Topic, message_hash::Hash};

use super::*;
use crate::backend::history::{Asked, Came, Condition, Publish, Stream, Swept};

fn meta(topic: u8, id: u64, hash: u8) -> EnvelopeMeta {
    EnvelopeMeta {
        cursor: Some(Cursor { sequence_id: id }),
        server_ns: 7,
        message_hash: Some(MessageHash {
            hash: Some(Hash::Sha256(vec![hash; 32].into())),
        }),
        topic: Some(Topic {
            topic: vec![topic].into(),
        }),
        ..EnvelopeMeta::default()
    }
}

/// Two topics, three publishes in a row, the second on both topics; a query, a status and a stream after them.
fn sound() -> History {
    let mut history = History::default();
    let envelopes = [
        vec![meta(1, 1, 11)],
        vec![meta(1, 2, 12), meta(2, 3, 13)],
        vec![meta(2, 5, 14)],
    ];
    for (number, metas) in envelopes.iter().enumerate() {
        history.publishes.push(Publish {
            keys: metas.iter().map(crate::backend::history::key_of).collect(),
            ..Publish::default()
        });
        answer(
            &mut history,
            Asked::Publish(number),
            Came::Receipts(metas.clone()),
        );
    }
    let status = Came::Status {
        boundary: Some(5),
        last_allocated: 5,
    };
    answer(&mut history, Asked::Status, status);
    answer(
        &mut history,
        query(1, 0),
        page(vec![meta(1, 1, 11), meta(1, 2, 12)]),
    );
    let moment = history.now();
    history.streams.push(Stream {
        client: 0,
        positions: vec![(vec![2].into(), 0)],
        targets: vec![3],
        frames: vec![(moment, vec![meta(2, 3, 13), meta(2, 5, 14)])],
        is_open: true,
        ended: None,
    });
    history.logs = vec![
        (vec![1].into(), vec![meta(1, 1, 11), meta(1, 2, 12)]),
        (vec![2].into(), vec![meta(2, 3, 13), meta(2, 5, 14)]),
    ];
    history
}

fn answer(history: &mut History, asked: Asked, came: Came) {
    let attempt = history.invoke(0, 0, 0, asked);
    history.conclude(attempt, came);
}

fn query(topic: u8, after: u64) -> Asked {
    Asked::Query {
        positions: vec![(vec![topic].into(), after)],
        limit: 10,
    }
}

fn page(metas: Vec<EnvelopeMeta>) -> Came {
    Came::Page {
        metas,
        has_more: false,
    }
}

/// Which checkers complain once the history was changed.
fn complaints(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    let mut history = sound();
    change(&mut history);
    let mut names: Vec<_> = check(&history)
        .into_iter()
        .map(|violation| violation.checker)
        .collect();
    names.dedup();
    names
}

#[test]
fn a_sound_history_passes_every_checker() {
    assert_eq!(complaints(|_| {}), Vec::<&str>::new());
}

// API-287, API-288
#[test]
fn an_id_of_two_envelopes_and_two_ids_of_one_envelope_are_found() {
    let twice = complaints(|history| answer(history, query(2, 0), page(vec![meta(2, 2, 13)])));
    assert!(twice.contains(&"unique_ids"), "{twice:?}");
}

// API-221, API-222
#[test]
fn changed_metadata_a_second_copy_and_a_receipt_of_another_envelope_are_found() {
    let changed = complaints(|history| {
        let other = EnvelopeMeta {
            server_ns: 8,
            ..meta(1, 1, 11)
        };
        answer(history, Asked::Newest(vec![]), Came::Newest(vec![other]));
    });
    assert_eq!(changed, ["one_copy"]);
    let copied = complaints(|history| history.logs[1].1.push(meta(2, 6, 13)));
    assert!(copied.contains(&"one_copy"), "{copied:?}");
    let swapped = complaints(|history| {
        answer(history, Asked::Publish(0), Came::Receipts(vec![meta(1, 2, 12)]));
    });
    assert_eq!(swapped, ["one_copy"]);
}

// API-201
#[test]
fn a_page_with_a_gap_is_found() {
    let gap = complaints(|history| answer(history, query(2, 0), page(vec![meta(2, 5, 14)])));
    assert!(gap.contains(&"prefix"), "{gap:?}");
    let backwards = complaints(|history| history.logs[0].1.reverse());
    assert!(backwards.contains(&"prefix"), "{backwards:?}");
}

// API-240
#[test]
fn a_page_that_claims_more_than_there_is_is_found() {
    let full = |has_more| Came::Page {
        metas: vec![meta(1, 1, 11), meta(1, 2, 12)],
        has_more,
    };
    let asked = |limit| Asked::Query {
        positions: vec![(vec![1].into(), 0)],
        limit,
    };
    let none_left = complaints(|history| answer(history, asked(2), full(true)));
    assert_eq!(none_left, ["has_more"]);
    let short = complaints(|history| {
        let half = Came::Page {
            metas: vec![meta(1, 1, 11)],
            has_more: true,
        };
        answer(history, asked(2), half);
    });
    assert_eq!(short, ["has_more"]);
    assert_eq!(
        complaints(|history| answer(history, asked(2), full(false))),
        [""; 0]
    );
}

// API-289
#[test]
fn a_later_publish_with_a_smaller_id_is_found() {
    let smaller = complaints(|history| {
        history.publishes.push(Publish {
            keys: vec![crate::backend::history::key_of(&meta(1, 4, 15))],
            ..Publish::default()
        });
        answer(history, Asked::Publish(3), Came::Receipts(vec![meta(1, 4, 15)]));
        history.logs[0].1.push(meta(1, 4, 15));
    });
    // It lies below a boundary that was answered before, and a page did not show it.
    assert_eq!(smaller, ["real_time_order", "boundary"]);
}

// API-202
#[test]
fn a_query_that_misses_an_answered_publish_is_found() {
    let missed = complaints(|history| answer(history, query(2, 0), page(vec![meta(2, 3, 13)])));
    assert!(missed.contains(&"read_your_writes"), "{missed:?}");
    let gone = complaints(|history| drop(history.logs[1].1.pop()));
    assert!(gone.contains(&"read_your_writes"), "{gone:?}");
}

// API-220
#[test]
fn a_publish_stored_in_part_or_at_two_times_or_after_a_refusal_is_found() {
    let part = complaints(|history| drop(history.logs[0].1.pop()));
    assert!(part.contains(&"all_or_nothing"), "{part:?}");
    let times = complaints(|history| history.logs[0].1[1].server_ns = 8);
    assert!(times.contains(&"all_or_nothing"), "{times:?}");
    let refusal = Came::Failure(Code::Unimplemented, "not served".to_owned());
    let refused = complaints(|history| answer(history, Asked::Publish(1), refusal));
    assert_eq!(refused, ["all_or_nothing"]);
}

/// Publish #0 was to follow `expected_head` and claims a handle for topic 1; another claims it for topic 2.
fn conditioned(expected_head: u64, entries_max: u32, other_claims: bool) -> impl Fn(&mut History) {
    move |history| {
        let condition = |topic: u8, expected_head| Condition {
            topic: vec![topic].into(),
            expected_head,
            entries_max,
            handle: Some(vec![9].into()),
        };
        history.publishes[0].conditions = vec![condition(1, expected_head)];
        if other_claims {
            history.publishes[2].conditions = vec![condition(2, 3)];
        }
    }
}

fn refusal(code: Code) -> Came {
    Came::Failure(code, "refused".to_owned())
}

/// A publish that stored nothing, with the same condition.
fn refuse(history: &mut History, code: Code, expected_head: u64) {
    conditioned(0, 4, false)(history);
    let condition = Condition {
        expected_head,
        ..history.publishes[0].conditions[0].clone()
    };
    history.publishes.push(Publish {
        keys: vec![crate::backend::history::key_of(&meta(1, 9, 19))],
        conditions: vec![condition],
        ..Publish::default()
    });
    answer(history, Asked::Publish(3), refusal(code));
}

// API-232, API-234
#[test]
fn an_envelope_after_another_than_expected_a_topic_too_full_and_a_false_abort_are_found() {
    assert_eq!(complaints(conditioned(0, 4, false)), [""; 0]);
    assert_eq!(complaints(conditioned(1, 4, false)), ["expected_heads"]);
    assert_eq!(complaints(conditioned(0, 0, false)), ["expected_heads"]);
    assert_eq!(complaints(|history| refuse(history, Code::Aborted, 1)), [""; 0]);
    assert_eq!(
        complaints(|history| refuse(history, Code::Aborted, 2)),
        ["expected_heads"]
    );
}

// API-296
#[test]
fn a_handle_of_two_inboxes_and_one_refused_though_nobody_else_has_it_are_found() {
    assert_eq!(complaints(conditioned(0, 4, true)), ["one_owner"]);
    assert_eq!(
        complaints(|history| refuse(history, Code::InvalidArgument, 2)),
        ["one_owner"]
    );
}

/// The history after everything that expires at 50 was deleted at 100, but for what `left` changes.
fn swept(left: impl Fn(&mut Vec<EnvelopeMeta>)) -> impl Fn(&mut History) {
    move |history| {
        history.logs[0].1.iter_mut().for_each(|meta| meta.expiry_ns = 50);
        history.attempts.clear();
        history.streams.clear();
        let mut logs = history.logs.clone();
        logs[0].1.remove(0);
        left(&mut logs[1].1);
        let newest = vec![2, 5];
        history.swept = Some(Swept {
            at_ns: 100,
            logs,
            newest,
        });
    }
}

#[test]
fn deletion_of_the_newest_of_what_does_not_expire_and_none_at_all_is_found() {
    assert_eq!(unordered(swept(|_| {})), [""; 0]);
    assert_eq!(unordered(swept(|left| left.truncate(1))), ["retention"]);
    assert_eq!(unordered(swept(|left| drop(left.remove(0)))), ["retention"]);
    assert_eq!(unordered(swept(|left| left[0].server_ns = 9)), ["retention"]);
    let late = |history: &mut History| {
        swept(|_| {})(history);
        let whole = history.logs[0].1.clone();
        history.swept.as_mut().expect("it is there").logs[0].1 = whole;
    };
    assert_eq!(unordered(late), ["retention"]);
}

/// Complaints about a history without requests: that nobody sent its envelopes is no news.
fn unordered(change: impl Fn(&mut History)) -> Vec<&'static str> {
    let mut found = complaints(change);
    found.retain(|checker| *checker != "real_time_order");
    found
}

// API-203, API-291
#[test]
fn a_boundary_that_falls_or_lies_above_what_a_later_query_shows_is_found() {
    let status = |boundary| Came::Status {
        boundary: Some(boundary),
        last_allocated: 5,
    };
    let fallen = complaints(|history| answer(history, Asked::Status, status(4)));
    assert_eq!(fallen, ["boundary"]);
    let hidden = complaints(|history| answer(history, query(2, 3), page(vec![])));
    assert!(hidden.contains(&"boundary"), "{hidden:?}");
}

// API-290
#[test]
fn an_envelope_stored_after_out_of_range_and_a_query_without_it_is_found() {
    let late = complaints(|history| {
        let key = crate::backend::history::key_of(&meta(1, 9, 19));
        history.publishes.push(Publish {
            keys: vec![key],
            ..Publish::default()
        });
        let refusal = Came::Failure(Code::OutOfRange, "too long".to_owned());
        answer(history, Asked::Publish(3), refusal);
        answer(history, query(1, 2), page(vec![]));
        history.logs[0].1.push(meta(1, 9, 19));
    });
    assert_eq!(late, ["out_of_range_is_settled"]);
}

// API-254
#[test]
fn a_stream_that_skips_or_repeats_is_found() {
    let skipped = complaints(|history| drop(history.streams[0].frames[0].1.remove(0)));
    assert_eq!(skipped, ["streams"]);
    let repeated = complaints(|history| history.streams[0].frames[0].1.push(meta(2, 5, 14)));
    assert_eq!(repeated, ["streams"]);
}

// API-281
#[test]
fn an_internal_error_is_found() {
    let refusal = Came::Failure(Code::Internal, "broken".to_owned());
    assert_eq!(
        complaints(|history| answer(history, Asked::Status, refusal)),
        ["statuses"]
    );
}

#[test]
fn what_does_not_end_is_found() {
    assert_eq!(
        complaints(|history| history.unended.push("a client waits".to_owned())),
        ["ends"]
    );
}
