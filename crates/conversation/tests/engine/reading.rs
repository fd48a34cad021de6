//! What an owner reads of an open endpoint: pages of verified history within one snapshot, and the rows that stop them.

use conclave_conversation::engine::Corruption;
use conclave_conversation::engine::history::{
    HistoryError, HistoryPage, HistoryPlace, HistorySnapshot, HistoryStart,
};
use conclave_conversation::export::{ExportBegin, ExportLine, ExportVerifier};
use conclave_conversation::membership::Membership;
use conclave_conversation::store::rows::{
    AnchorRow, CertifiedRecordRow, ConversationStateRow, EvidenceRow, MembershipRow, StagedRecordRow,
};
use conclave_conversation::store::{MemoryStore, Row, Snapshot, Table};
use conclave_conversation::test_support::{self, Agent, SECOND_VERSION};
use conclave_conversation::values::{CatchUpItem, ClosedValue, PostId, RecordHash};
use conclave_harness::WireVersions;

use crate::scenario::{behind, inject, pages, recovered, request};
use crate::world::{Release, World};

const BEGINNING: HistoryStart = HistoryStart::AfterRecords(0);

/// Posts certified one after the other, member by member; the Router restarts after the second.
fn lived_in(members: usize, posts: usize) -> (World, Membership) {
    let mut world = World::new(members);
    let everyone = world.everyone();
    for number in 0..posts {
        if number == 2 {
            world.restart_router(1);
            world.run_out();
        }
        world.send(number % members, &everyone, &format!("post {number}"));
        world.run_out();
    }
    (world, everyone)
}

/// What a plan reads, as a store answers.
fn rows_of(world: &World, reads: &[conclave_conversation::store::Read]) -> Snapshot {
    let whole = world.members[0].store.snapshot();
    let mut rows = Snapshot::new();
    for read in reads {
        let (conclave_conversation::store::Read::Row(table, _)
        | conclave_conversation::store::Read::Prefix(table, _)) = read;
        for (key, bytes) in whole.read(read) {
            rows.insert(*table, key, bytes);
        }
    }
    rows
}

fn page(
    world: &mut World,
    everyone: &Membership,
    snapshot: Option<HistorySnapshot>,
    start: HistoryStart,
    items_max: usize,
) -> Result<HistoryPage, HistoryError> {
    let id = everyone.conversation_id();
    let engine = world.members[0].engine.as_ref().unwrap();
    let plan = engine.plan_history(id, snapshot, start, items_max)?;
    let rows = rows_of(world, plan.reads());
    let engine = world.members[0].engine.as_mut().unwrap();
    Ok(engine.read_history(plan, &rows).expect("a page that verifies"))
}

/// All items of a snapshot, in pages of some items.
fn all(world: &mut World, everyone: &Membership, first: HistoryPage, items_max: usize) -> Vec<CatchUpItem> {
    let mut items = first.items;
    let (snapshot, mut next) = (first.snapshot, first.next);
    while next != snapshot.end {
        let start = HistoryStart::Place(next);
        let page = page(world, everyone, Some(snapshot), start, items_max).unwrap();
        assert_eq!((page.start, page.snapshot), (next, snapshot));
        assert!((1..=items_max).contains(&page.items.len()));
        next = page.next;
        items.extend(page.items);
    }
    items
}

fn hashes(items: &[CatchUpItem]) -> Vec<RecordHash> {
    let hash = |item: &CatchUpItem| match item {
        CatchUpItem::CertifiedRecord(record) => Some(record.action_certified_record.record_hash),
        CatchUpItem::CompletedReanchor(_) => None,
    };
    items.iter().filter_map(hash).collect()
}

#[test]
fn pages_of_any_length_show_every_record_and_reanchor_once_and_in_order() {
    let (mut world, everyone) = lived_in(3, 5);
    let chain = world.chain(0, &everyone);
    for items_max in 1..=7 {
        let first = page(&mut world, &everyone, None, BEGINNING, items_max).unwrap();
        assert_eq!(
            first.snapshot.end,
            HistoryPlace {
                records: 5,
                reanchors: 1
            }
        );
        let items = all(&mut world, &everyone, first, items_max);
        assert_eq!(hashes(&items), chain, "in pages of {items_max}");
        let reanchors: Vec<_> = items
            .iter()
            .enumerate()
            .filter(|(_, item)| matches!(item, CatchUpItem::CompletedReanchor(_)))
            .map(|(place, _)| place)
            .collect();
        assert_eq!(reanchors, [2]);
    }
}

#[test]
fn a_snapshot_is_not_moved_by_what_is_certified_after_it() {
    let (mut world, everyone) = lived_in(2, 3);
    let before = world.chain(0, &everyone);
    let first = page(&mut world, &everyone, None, BEGINNING, 1).unwrap();
    world.send(1, &everyone, "later");
    world.run_out();
    world.restart_router(2);
    world.run_out();
    assert!(recovered(&world, &[0, 1], &everyone));
    let items = all(&mut world, &everyone, first, 1);
    assert_eq!(hashes(&items), before);
    assert_eq!(items.len(), before.len() + 1, "one re-anchor was complete then");
    // A snapshot outlives the engine: it is a place in a chain that only grows.
    let first = page(&mut world, &everyone, None, BEGINNING, 1).unwrap();
    world.restart(0);
    let items = all(&mut world, &everyone, first, 2);
    assert_eq!((hashes(&items).len(), items.len()), (4, 6));
}

#[test]
fn a_page_begins_after_a_record_a_number_of_records_or_at_a_post() {
    let (mut world, everyone) = lived_in(2, 4);
    let history = world.history(0, &everyone);
    for (ordinal, entry) in history.iter().enumerate() {
        let after = HistoryStart::After(entry.record_hash);
        let by_hash = page(&mut world, &everyone, None, after, 10).unwrap();
        let after = HistoryStart::AfterRecords(ordinal as u64 + 1);
        let by_number = page(&mut world, &everyone, None, after, 10).unwrap();
        let rest: Vec<_> = history[ordinal + 1..]
            .iter()
            .map(|entry| entry.record_hash)
            .collect();
        assert_eq!(hashes(&by_hash.items), rest);
        assert_eq!(by_hash.items, by_number.items);
        let intent = entry.record_core.post_intent();
        for author in [None, Some(intent.author_agent_id)] {
            let at = HistoryStart::Post(intent.post_id, author);
            let one = page(&mut world, &everyone, None, at, 1).unwrap();
            assert_eq!(hashes(&one.items), [entry.record_hash]);
            assert_eq!(one.start.records, ordinal as u64);
        }
        let stranger = HistoryStart::Post(intent.post_id, Some(Agent::new(40).id()));
        let error = page(&mut world, &everyone, None, stranger, 1).unwrap_err();
        assert_eq!(error, HistoryError::UnknownPost);
    }
    let behind = page(&mut world, &everyone, None, HistoryStart::AfterRecords(99), 10).unwrap();
    assert!(behind.items.is_empty());
    for (start, error) in [
        (
            HistoryStart::After(RecordHash::from_bytes([1; 32])),
            HistoryError::UnknownRecord,
        ),
        (
            HistoryStart::Post(PostId::from_bytes([1; 32]), None),
            HistoryError::UnknownPost,
        ),
    ] {
        assert_eq!(page(&mut world, &everyone, None, start, 1).unwrap_err(), error);
    }
    let pair = world.membership(&[0, 1]);
    let nobody = test_support::Conversation::new(5).membership;
    assert!(page(&mut world, &pair, None, BEGINNING, 1).is_ok());
    assert_eq!(
        page(&mut world, &nobody, None, BEGINNING, 1).unwrap_err(),
        HistoryError::UnknownConversation
    );
}

#[test]
fn a_snapshot_of_another_history_is_refused() {
    let (mut world, everyone) = lived_in(3, 3);
    let pair = world.membership(&[0, 1]);
    world.send(0, &pair, "to one alone");
    world.run_out();
    let of_pair = page(&mut world, &pair, None, BEGINNING, 1).unwrap().snapshot;
    let own = page(&mut world, &everyone, None, BEGINNING, 1).unwrap().snapshot;
    let mut longer = own;
    longer.end.records += 1;
    let mut headless = own;
    headless.head = None;
    let mut reanchored = own;
    reanchored.end.reanchors += 1;
    for snapshot in [of_pair, longer, headless, reanchored] {
        let read = page(&mut world, &everyone, Some(snapshot), BEGINNING, 1);
        assert_eq!(read.unwrap_err(), HistoryError::ForeignSnapshot, "{snapshot:?}");
    }
}

#[test]
fn a_page_reads_its_own_rows_alone() {
    let (world, everyone) = lived_in(2, 6);
    let id = everyone.conversation_id();
    let reads = |world: &World, start, items_max| {
        let engine = world.members[0].engine.as_ref().unwrap();
        engine
            .plan_history(id, None, start, items_max)
            .unwrap()
            .reads()
            .len()
    };
    // A membership, a state, and for a record its link, its core, its two kinds of statements and its anchor.
    assert_eq!(reads(&world, BEGINNING, 1), 2 + 5);
    assert_eq!(reads(&world, HistoryStart::AfterRecords(3), 2), 2 + 2 * 5);
}

/// A copy of a store in which a row was changed, or removed.
fn changed<R: Row>(
    rows: &Snapshot,
    pick: impl Fn(&R) -> bool,
    change: impl FnOnce(&mut R) -> bool,
) -> Snapshot {
    let row = rows.rows::<R>().unwrap().into_iter().find(|row| pick(row));
    let mut row = row.expect("such a row");
    let mut copy = Snapshot::new();
    for table in Table::ALL {
        let everything = conclave_conversation::store::Read::Prefix(
            table,
            conclave_conversation::store::Key::new([""; 0]),
        );
        for (key, bytes) in rows.read(&everything) {
            if table != R::TABLE || key != row.key() {
                copy.insert(table, key, bytes);
            }
        }
    }
    if change(&mut row) {
        copy.insert(R::TABLE, row.key(), row.encode());
    }
    copy
}

// CONV-G11, CONV-G12
#[test]
fn a_page_that_reaches_a_bad_row_fails_and_names_it_and_others_do_not() {
    let (mut world, everyone) = lived_in(2, 4);
    let chain = world.chain(0, &everyone);
    let second = chain[1].to_string();
    let rows = world.members[0].store.snapshot();
    let stranger = Agent::new(40).id().to_string();
    let mut read = |rows: &Snapshot, after: u64, items_max| -> Result<usize, Corruption> {
        let engine = world.members[0].engine.as_mut().unwrap();
        let start = HistoryStart::AfterRecords(after);
        let plan = engine.plan_history(everyone.conversation_id(), None, start, items_max);
        engine
            .read_history(plan.unwrap(), rows)
            .map(|page| page.items.len())
    };
    // Read once as it should be: what was verified is remembered, and still nothing else passes for it.
    assert_eq!(read(&rows, 0, 10), Ok(5));

    let of_second = |row: &EvidenceRow| row.subject_id == second;
    let bad: [(&str, Snapshot, Table); 8] = [
        (
            "a core of another author",
            changed::<StagedRecordRow>(
                &rows,
                |row| row.record_hash == second,
                |row| {
                    row.author_agent_id = stranger.clone();
                    true
                },
            ),
            Table::StagedRecords,
        ),
        (
            "no core",
            changed::<StagedRecordRow>(&rows, |row| row.record_hash == second, |_| false),
            Table::StagedRecords,
        ),
        (
            "another record in its place",
            changed::<CertifiedRecordRow>(
                &rows,
                |row| row.record_hash == second,
                |row| {
                    row.record_hash = chain[0].to_string();
                    true
                },
            ),
            Table::CertifiedRecords,
        ),
        (
            "no link",
            changed::<CertifiedRecordRow>(&rows, |row| row.record_hash == second, |_| false),
            Table::CertifiedRecords,
        ),
        (
            "a vote filed under a stranger",
            changed::<EvidenceRow>(&rows, of_second, |row| {
                row.evidence_key = stranger.clone();
                true
            }),
            Table::ProtocolEvidence,
        ),
        (
            "a vote whose bytes changed",
            changed::<EvidenceRow>(&rows, of_second, |row| {
                row.canonical_evidence =
                    row.canonical_evidence
                        .replacen("\"signature\":\"", "\"signature\":\"A", 1);
                true
            }),
            Table::ProtocolEvidence,
        ),
        (
            "a vote about another record",
            {
                let rows_of = rows.rows::<EvidenceRow>().unwrap();
                let first = chain[0].to_string();
                let other = rows_of.into_iter().find(|row| row.subject_id == first).unwrap();
                changed::<EvidenceRow>(
                    &rows,
                    |row| of_second(row) && row.evidence_key == other.evidence_key,
                    |row| {
                        row.canonical_evidence = other.canonical_evidence;
                        true
                    },
                )
            },
            Table::ProtocolEvidence,
        ),
        (
            "a vote too few",
            changed::<EvidenceRow>(&rows, of_second, |_| false),
            Table::CertifiedRecords,
        ),
    ];
    for (what, rows, table) in &bad {
        let corruption = read(rows, 0, 10).unwrap_err();
        assert_eq!(corruption.table, *table, "{what}");
        assert!(
            !corruption.key.is_empty() && !corruption.problem.is_empty(),
            "{what}"
        );
        assert_eq!(read(rows, 2, 10), Ok(3), "{what}: what follows it is read");
    }

    // The genesis anchor stops the records under it, the re-anchor itself and those under it not.
    let first_anchor = changed::<AnchorRow>(
        &rows,
        |row| row.position == 0,
        |row| {
            row.selected_record_hash = Some(second.clone());
            true
        },
    );
    assert_eq!(read(&first_anchor, 0, 1).unwrap_err().table, Table::Anchors);
    assert_eq!(read(&first_anchor, 2, 10), Ok(3));
    let misplaced = changed::<AnchorRow>(
        &rows,
        |row| row.position == 1,
        |row| {
            row.position = 2;
            true
        },
    );
    assert_eq!(read(&misplaced, 2, 10).unwrap_err().table, Table::Anchors);
    assert_eq!(read(&misplaced, 0, 2), Ok(2));

    // Membership and state stop every page.
    let membership = changed::<MembershipRow>(
        &rows,
        |_| true,
        |row| {
            row.membership_hash = "mbr_x".to_owned();
            true
        },
    );
    let cards = changed::<MembershipRow>(
        &rows,
        |_| true,
        |row| {
            row.canonical_membership.push(' ');
            true
        },
    );
    for rows in [membership, cards] {
        assert_eq!(read(&rows, 0, 1).unwrap_err().table, Table::Memberships);
    }
    let behind = changed::<ConversationStateRow>(
        &rows,
        |_| true,
        |row| {
            row.head_ordinal -= 1;
            true
        },
    );
    assert_eq!(read(&behind, 0, 1).unwrap_err().table, Table::ConversationState);
}

// CONV-G11
#[test]
fn no_answer_is_built_from_a_bad_row_and_the_engine_that_holds_it_stops() {
    for is_bad in [false, true] {
        let (mut world, everyone) = behind(4, 3);
        let rows = world.members[0].store.snapshot();
        let second = world.chain(0, &everyone)[1].to_string();
        if is_bad {
            let of_second = |row: &EvidenceRow| row.subject_id == second;
            let rows = changed::<EvidenceRow>(&rows, of_second, |_| false);
            world.members[0].store = MemoryStore::from_snapshot(rows);
        }
        let asked = request(&world, &everyone, 3, true);
        let before = pages(&world, &everyone, 0).len();
        inject(&mut world, &everyone, 3, asked);
        world.settle();
        assert_eq!(world.members[0].fatal.is_some(), is_bad);
        assert_eq!(pages(&world, &everyone, 0).len() == before, is_bad);
    }
}

// CONV-G16
#[test]
fn pages_of_a_retired_version_verify_and_read() {
    let (mut world, everyone) = lived_in(2, 3);
    let chain = world.chain(0, &everyone);
    world.crash(0);
    world.members[0].release = Release {
        emits: SECOND_VERSION,
        live: WireVersions::of(&[SECOND_VERSION]),
    };
    world.open(0);
    let first = page(&mut world, &everyone, None, BEGINNING, 10).unwrap();
    assert_eq!(hashes(&first.items), chain);
}

#[test]
fn the_items_of_a_history_are_the_lines_of_its_export() {
    let (mut world, everyone) = lived_in(4, 5);
    let first = page(&mut world, &everyone, None, BEGINNING, 2).unwrap();
    let descriptor = first.membership.descriptor().encode();
    let items = all(&mut world, &everyone, first, 2);
    let mut verifier = ExportVerifier::new(
        test_support::registry(),
        test_support::history(),
        ExportBegin::Genesis,
    );
    verifier.line(&descriptor).unwrap();
    let records = items
        .iter()
        .filter_map(|item| match verifier.line(&item.encode()) {
            Ok(ExportLine::Record(record)) => Some(*record.record().hash()),
            Ok(ExportLine::Reanchor(_)) => None,
            other => panic!("{other:?}"),
        });
    assert_eq!(records.collect::<Vec<_>>(), world.chain(0, &everyone));
    verifier.end(b"").unwrap();
}
