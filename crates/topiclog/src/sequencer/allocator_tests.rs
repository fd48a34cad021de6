use conclave_grpc_web::Code;
use conclave_sql::native::Database;

use super::*;

fn database() -> Database {
    let database = Database::in_memory().expect("a database");
    database.execute(TABLE, &[]).expect("the table");
    database
}

fn open(database: &Database) -> Allocator {
    Allocator::open(database, 2).expect("opens")
}

fn report(shard: u32, incarnation: u64, call: u64, epoch: u64) -> ShardReport {
    ShardReport {
        shard,
        incarnation,
        call,
        settled: false,
        open: vec![],
        epoch,
        revision: call * 10,
    }
}

fn request(report: ShardReport, count: u32) -> AllocateRequest {
    AllocateRequest {
        report: Some(report),
        count,
        ..Default::default()
    }
}

fn first(allocator: &mut Allocator, database: &Database, report: ShardReport, count: u32) -> u64 {
    allocator
        .allocate(database, &request(report, count))
        .expect("ids")
        .first
}

/// Both shards have spoken under the epoch and hold nothing.
fn hear_both(allocator: &mut Allocator) {
    for shard in 0..2 {
        let report = ShardReport {
            settled: true,
            ..report(shard, 1, 0, allocator.epoch())
        };
        allocator.hear(&report).expect("heard");
    }
}

// API-286, API-287
#[test]
fn ids_begin_at_one_and_follow_each_other() {
    let database = database();
    let mut allocator = open(&database);
    assert_eq!(first(&mut allocator, &database, report(0, 1, 1, 1), 3), 1);
    assert_eq!(first(&mut allocator, &database, report(1, 1, 1, 1), 2), 4);
    assert_eq!(first(&mut allocator, &database, report(0, 1, 2, 1), 1), 6);
    assert_eq!(allocator.last_allocated(), 6);
}

// API-287, API-289
#[test]
fn a_restart_begins_above_everything_handed_out_and_in_a_later_epoch() {
    let database = database();
    let mut allocator = open(&database);
    let before = first(&mut allocator, &database, report(0, 1, 1, 1), 5);
    let mut allocator = open(&database);
    assert_eq!(allocator.epoch(), 2);
    assert!(first(&mut allocator, &database, report(0, 1, 2, 1), 1) > before + 4);
}

#[test]
fn only_raising_the_mark_writes() {
    let database = database();
    let mut allocator = open(&database);
    let before = database.rows_written();
    first(&mut allocator, &database, report(0, 1, 1, 1), 1);
    let raised = database.rows_written();
    assert!(raised > before);
    for call in 2..100 {
        first(&mut allocator, &database, report(0, 1, call, 1), 1000);
    }
    assert_eq!(database.rows_written(), raised);
    first(&mut allocator, &database, report(0, 1, 100, 1), 1 << 20);
    assert!(database.rows_written() > raised);
}

// API-287
#[test]
fn a_call_that_arrives_twice_gets_the_same_ids() {
    let database = database();
    let mut allocator = open(&database);
    let ids = first(&mut allocator, &database, report(0, 1, 1, 1), 3);
    assert_eq!(first(&mut allocator, &database, report(0, 1, 1, 1), 3), ids);
    assert_eq!(allocator.last_allocated(), 3);
}

// API-203
#[test]
fn a_call_that_a_later_one_overtook_gets_nothing() {
    let database = database();
    let mut allocator = open(&database);
    first(&mut allocator, &database, report(0, 1, 2, 1), 1);
    let refused = allocator.allocate(&database, &request(report(0, 1, 1, 1), 1));
    assert_eq!(refused.expect_err("refused").code, Code::Unavailable);
    let settled = ShardReport {
        settled: true,
        ..report(0, 1, 3, 1)
    };
    allocator.hear(&settled).expect("heard");
    let refused = allocator.allocate(&database, &request(report(0, 1, 3, 1), 1));
    assert_eq!(refused.expect_err("refused").code, Code::Unavailable);
}

// API-203
#[test]
fn a_predecessor_of_a_restarted_shard_gets_nothing() {
    let database = database();
    let mut allocator = open(&database);
    first(&mut allocator, &database, report(0, 7, 1, 1), 1);
    let response = allocator
        .allocate(&database, &request(report(0, 6, 9, 1), 1))
        .expect("an answer");
    assert_eq!((response.first, response.later_incarnation), (0, Some(7)));
    assert_eq!(allocator.last_allocated(), 1);
}

// API-203
#[test]
fn a_sequencer_with_a_successor_hands_out_nothing() {
    let database = database();
    let mut allocator = open(&database);
    let refused = allocator.allocate(&database, &request(report(0, 1, 1, 2), 1));
    assert_eq!(refused.expect_err("refused").code, Code::Unavailable);
}

// API-203
#[test]
fn a_sequencer_with_a_successor_computes_nothing_from_what_the_successor_handed_out() {
    let database = database();
    let mut allocator = open(&database);
    hear_both(&mut allocator);
    assert_eq!(first(&mut allocator, &database, report(0, 1, 1, 1), 4), 1);
    let mut successor = open(&database);
    let lower = first(&mut successor, &database, report(1, 1, 1, 2), 1);
    let upper = first(&mut successor, &database, report(0, 1, 2, 2), 1);
    assert!(
        lower < upper,
        "the successor has a lower id open at the other shard"
    );
    let range = IdRange {
        first: upper,
        last: upper,
    };
    let later = ShardReport {
        settled: true,
        open: vec![range],
        ..report(0, 1, 2, 2)
    };
    // A restarted shard does not remember the epoch of what it still holds.
    let restarted = ShardReport {
        open: vec![range],
        ..report(0, 2, 1, 1)
    };
    for report in [later, restarted] {
        let refusal = allocator.hear(&report).expect_err("it has a successor");
        assert_eq!(refusal.code, Code::Unavailable);
        assert!(allocator.allocate(&database, &request(report, 1)).is_err());
        assert_eq!(allocator.boundary(), Some(0));
    }
}

// API-203
#[test]
fn the_boundary_follows_the_lowest_open_id() {
    let database = database();
    let mut allocator = open(&database);
    assert_eq!(allocator.boundary(), None);
    hear_both(&mut allocator);
    assert_eq!(allocator.boundary(), Some(0));
    first(&mut allocator, &database, report(0, 1, 1, 1), 10);
    first(&mut allocator, &database, report(1, 1, 1, 1), 10);
    assert_eq!(allocator.boundary(), Some(0));
    // Shard 0 goes on, and still holds two of its ids.
    let holding = ShardReport {
        open: vec![IdRange { first: 4, last: 5 }],
        ..report(0, 1, 2, 1)
    };
    first(&mut allocator, &database, holding, 1);
    assert_eq!(allocator.boundary(), Some(3));
    let done = ShardReport {
        settled: true,
        ..report(0, 1, 2, 1)
    };
    allocator.hear(&done).expect("heard");
    assert_eq!(allocator.boundary(), Some(10));
    assert_eq!(allocator.unsettled_shards(), BTreeSet::from([1]));
    let done = ShardReport {
        settled: true,
        ..report(1, 1, 1, 1)
    };
    allocator.hear(&done).expect("heard");
    assert_eq!(allocator.boundary(), Some(21));
}

// API-203
#[test]
fn a_report_that_does_not_know_the_call_does_not_close_its_ids() {
    let database = database();
    let mut allocator = open(&database);
    hear_both(&mut allocator);
    first(&mut allocator, &database, report(0, 1, 2, 1), 10);
    let late = ShardReport {
        settled: true,
        ..report(0, 1, 1, 1)
    };
    allocator.hear(&late).expect("ignored");
    let unsettled = report(0, 1, 2, 1);
    allocator.hear(&unsettled).expect("heard");
    assert_eq!(allocator.boundary(), Some(0));
}

// API-291
#[test]
fn a_report_that_a_later_one_overtook_opens_nothing_again() {
    let database = database();
    let mut allocator = open(&database);
    hear_both(&mut allocator);
    first(&mut allocator, &database, report(0, 1, 1, 1), 1);
    let holding = ShardReport {
        settled: true,
        open: vec![IdRange { first: 1, last: 1 }],
        revision: 11,
        ..report(0, 1, 1, 1)
    };
    let done = ShardReport {
        open: vec![],
        revision: 12,
        ..holding.clone()
    };
    allocator.hear(&done).expect("heard");
    assert_eq!(allocator.boundary(), Some(1));
    allocator.hear(&holding).expect("ignored");
    assert_eq!(allocator.boundary(), Some(1));
}

// API-203
#[test]
fn a_call_still_on_its_way_is_served_after_the_report_that_names_it() {
    let database = database();
    let mut allocator = open(&database);
    hear_both(&mut allocator);
    first(&mut allocator, &database, report(0, 1, 1, 1), 5);
    allocator.hear(&report(0, 1, 2, 1)).expect("heard");
    assert_eq!(allocator.boundary(), Some(5));
    assert_eq!(first(&mut allocator, &database, report(0, 1, 2, 1), 1), 6);
}

// API-203, API-291
#[test]
fn a_restarted_allocator_trusts_no_report_that_does_not_know_its_epoch() {
    let database = database();
    drop(open(&database));
    let mut allocator = open(&database);
    for shard in 0..2 {
        // These may still take ids of the first epoch from an answer that is on its way.
        first(&mut allocator, &database, report(shard, 1, 1, 1), 1);
        let unaware = ShardReport {
            settled: true,
            ..report(shard, 1, 1, 1)
        };
        allocator.hear(&unaware).expect("heard");
    }
    assert_eq!(allocator.boundary(), None);
    let holding = ShardReport {
        settled: true,
        open: vec![IdRange { first: 1, last: 1 }],
        ..report(0, 1, 1, 2)
    };
    allocator.hear(&holding).expect("heard");
    assert_eq!(allocator.boundary(), None);
    allocator
        .hear(&ShardReport {
            settled: true,
            ..report(1, 1, 1, 2)
        })
        .expect("heard");
    assert_eq!(allocator.boundary(), Some(0));
}

// API-286
#[test]
fn ids_end_before_they_stop_crossing_exactly() {
    let database = database();
    drop(open(&database));
    database
        .execute(
            "UPDATE sequencer SET mark = ?",
            &[Value::integer(SEQUENCE_ID_MAX - 2).expect("fits")],
        )
        .expect("written");
    let mut allocator = open(&database);
    assert_eq!(
        first(&mut allocator, &database, report(0, 1, 1, 1), 2),
        SEQUENCE_ID_MAX - 1
    );
    let refused = allocator.allocate(&database, &request(report(0, 1, 2, 1), 1));
    assert_eq!(refused.expect_err("used up").code, Code::Internal);
}

#[test]
fn a_shard_that_does_not_exist_is_refused() {
    let database = database();
    let mut allocator = open(&database);
    assert!(
        allocator
            .allocate(&database, &request(report(2, 1, 1, 1), 1))
            .is_err()
    );
    assert!(
        allocator
            .allocate(&database, &AllocateRequest::default())
            .is_err()
    );
    assert!(
        allocator
            .allocate(&database, &request(report(0, 1, 1, 1), ALLOCATION_COUNT_MAX + 1))
            .is_err()
    );
}
