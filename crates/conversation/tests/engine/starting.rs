//! Whether a store may be trusted.

use conclave_conversation::engine::{Context, Corruption, Engine, Local, OpenError, history};
use conclave_conversation::store::rows::{
    AnchorRow, CertifiedRecordRow, ConversationStateRow, EvidenceKind, EvidenceRow, MembershipRow,
    OutboundRow, PendingDeliveryRow, PostIntentRow, ProposalLockRow, StagedRecordRow,
};
use conclave_conversation::store::{Row, Snapshot, Table};
use conclave_conversation::test_support::{self, Agent, SECOND_VERSION};
use conclave_conversation::values::{
    DurabilityVoteKind, DurabilityVoteStatement, MembershipHash, RecordHash,
};
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{WIRE_VERSION, WireVersions};

use crate::world::World;

/// A store of a four-member conversation with two certified posts, one staged record and pending envelopes.
fn lived_in() -> (World, Local, Snapshot) {
    let mut world = World::new(4);
    let everyone = world.everyone();
    for text in ["one", "two"] {
        world.send(0, &everyone, text);
        world.settle();
    }
    world.send(1, &everyone, "three");
    while world.transmit_one(1) {}
    for member in 0..4 {
        while world.deliver_one(member) {}
    }
    for member in 0..3 {
        world.transmit_one(member);
    }
    while world.deliver_one(1) {}
    let local = world.members[1].local();
    let snapshot = world.members[1].store.snapshot();
    (world, local, snapshot)
}

fn open(local: &Local, rows: &Snapshot) -> Result<(), OpenError> {
    let mut randomness = SeededRandomness::new(1);
    let context = Context {
        now_ms: 0,
        randomness: &mut randomness,
    };
    Engine::open(local.clone(), rows, context).map(|_| ())
}

/// A copy of a store in which one row was changed.
fn changed<R: Row>(rows: &Snapshot, pick: impl Fn(&R) -> bool, change: impl FnOnce(&mut R)) -> Snapshot {
    let mut row = rows
        .rows::<R>()
        .unwrap()
        .into_iter()
        .find(pick)
        .expect("such a row");
    let mut copy = without(rows, &row);
    change(&mut row);
    copy.insert(R::TABLE, row.key(), row.encode());
    copy
}

fn any<R>(_: &R) -> bool {
    true
}

/// A copy of a store without one row.
fn without<R: Row>(rows: &Snapshot, row: &R) -> Snapshot {
    let mut copy = Snapshot::new();
    for table in Table::ALL {
        for (key, bytes) in rows.read(&conclave_conversation::store::Read::Prefix(
            table,
            conclave_conversation::store::Key::new([""; 0]),
        )) {
            if table != R::TABLE || key != row.key() {
                copy.insert(table, key, bytes);
            }
        }
    }
    copy
}

fn refused_at(local: &Local, rows: &Snapshot) -> Table {
    match open(local, rows) {
        Err(OpenError::Corrupt(Corruption { table, .. })) => table,
        other => panic!("{other:?}"),
    }
}

// CONV-G09
#[test]
fn a_store_that_agrees_with_itself_is_opened() {
    let (world, local, rows) = lived_in();
    open(&local, &rows).unwrap();
    for member in 0..4 {
        open(
            &world.members[member].local(),
            &world.members[member].store.snapshot(),
        )
        .unwrap();
    }
    let staged: Vec<StagedRecordRow> = rows.rows().unwrap();
    assert_eq!(
        (staged.len(), rows.rows::<CertifiedRecordRow>().unwrap().len()),
        (3, 2)
    );
    assert!(!rows.rows::<OutboundRow>().unwrap().is_empty());
}

// CONV-G11, CONV-G10
#[test]
fn a_row_that_disagrees_with_what_it_holds_refuses_the_start() {
    let (_, local, rows) = lived_in();
    let other = "rch_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned();

    let membership = changed::<MembershipRow>(&rows, any, |row| row.membership_hash = "mbr_x".to_owned());
    assert_eq!(refused_at(&local, &membership), Table::Memberships);
    let state = changed::<ConversationStateRow>(&rows, any, |row| row.head_ordinal += 1);
    assert_eq!(refused_at(&local, &state), Table::ConversationState);
    let state = changed::<ConversationStateRow>(&rows, any, |row| row.head_record_hash = Some(other.clone()));
    assert_eq!(refused_at(&local, &state), Table::ConversationState);
    let anchor = changed::<AnchorRow>(&rows, any, |row| row.selected_record_hash = Some(other.clone()));
    assert_eq!(
        refused_at(&local, &anchor),
        Table::Anchors,
        "a genesis anchor selects no record"
    );
    let record = changed::<StagedRecordRow>(&rows, any, |row| row.author_agent_id.push('x'));
    assert_eq!(refused_at(&local, &record), Table::StagedRecords);
    let record = changed::<StagedRecordRow>(&rows, any, |row| row.post_id = other.clone());
    assert_eq!(refused_at(&local, &record), Table::StagedRecords);
    let lock = changed::<ProposalLockRow>(&rows, any, |row| row.action_hash = other.clone());
    assert_eq!(refused_at(&local, &lock), Table::ProposalLocks);
    let intent = changed::<PostIntentRow>(&rows, any, |row| row.membership_hash = other.clone());
    assert_eq!(refused_at(&local, &intent), Table::PostIntents);
    let delivery = changed::<PendingDeliveryRow>(&rows, any, |row| row.canonical_message.push(' '));
    assert_eq!(refused_at(&local, &delivery), Table::PendingDeliveries);
    let outbound = changed::<OutboundRow>(&rows, any, |row| row.outbound_id = other.clone());
    assert_eq!(refused_at(&local, &outbound), Table::OutboundMessages);
}

// CONV-G11
#[test]
fn a_finished_post_that_names_another_record_refuses_the_start() {
    let (world, _, _) = lived_in();
    let finished = |row: &PostIntentRow| row.completed_record_hash.is_some();
    let stores = world
        .members
        .iter()
        .map(|member| (member.local(), member.store.snapshot()));
    let (local, rows) = { stores }
        .find(|(_, rows)| rows.rows::<PostIntentRow>().unwrap().iter().any(finished))
        .unwrap();
    let elsewhere = changed::<PostIntentRow>(&rows, finished, |row| {
        row.completed_record_hash = Some("rch_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned());
    });
    assert_eq!(refused_at(&local, &elsewhere), Table::PostIntents);
}

// CONV-G11
#[test]
fn a_missing_row_refuses_the_start() {
    let (_, local, rows) = lived_in();
    fn each<R: Row>(local: &Local, rows: &Snapshot) {
        for row in rows.rows::<R>().unwrap() {
            assert!(
                open(local, &without(rows, &row)).is_err(),
                "without {} of {}",
                row.key(),
                R::TABLE.name()
            );
        }
    }
    each::<MembershipRow>(&local, &rows);
    each::<ConversationStateRow>(&local, &rows);
    each::<AnchorRow>(&local, &rows);
    each::<CertifiedRecordRow>(&local, &rows);
    each::<PendingDeliveryRow>(&local, &rows);
    each::<ProposalLockRow>(&local, &rows);
}

// CONV-G08, CONV-G12
#[test]
fn evidence_filed_under_another_signer_refuses_the_start_and_the_owners_read() {
    let (world, local, rows) = lived_in();
    let everyone = world.everyone();
    let stranger = Agent::new(40).id().to_string();
    let head = rows
        .rows::<CertifiedRecordRow>()
        .unwrap()
        .pop()
        .unwrap()
        .record_hash;
    for kind in [EvidenceKind::Action, EvidenceKind::Durability] {
        let filed = changed::<EvidenceRow>(
            &rows,
            |row| row.evidence_kind == kind && (kind == EvidenceKind::Action || row.subject_id == head),
            |row| row.evidence_key = stranger.clone(),
        );
        assert_eq!(refused_at(&local, &filed), Table::ProtocolEvidence);
        if kind == EvidenceKind::Durability {
            let read = history::read(
                &filed,
                everyone.conversation_id(),
                &local.registry,
                &local.history,
            );
            assert_eq!(read.unwrap_err().table, Table::ProtocolEvidence);
        }
    }
}

// CONV-G09
#[test]
fn a_vote_bound_to_another_conversation_or_membership_refuses_the_start() {
    let (world, local, rows) = lived_in();
    let everyone = world.everyone();
    let head = rows
        .rows::<CertifiedRecordRow>()
        .unwrap()
        .pop()
        .unwrap()
        .record_hash;
    let of_head = |row: &EvidenceRow| {
        row.evidence_kind == EvidenceKind::Durability
            && row.subject_id == head
            && row.evidence_key == world.members[2].id().to_string()
    };
    let statement = |conversation_id, membership_hash| DurabilityVoteStatement {
        sharness_version: WIRE_VERSION,
        kind: DurabilityVoteKind,
        signer_agent_id: world.members[2].id(),
        conversation_id,
        membership_hash,
        record_hash: head.parse::<RecordHash>().unwrap(),
    };
    let filed = |statement: DurabilityVoteStatement| {
        let vote = world.members[2].agent.sign(statement);
        let text = String::from_utf8(vote.encoded().to_canonical_bytes()).unwrap();
        changed::<EvidenceRow>(&rows, of_head, |row| row.canonical_evidence = text)
    };
    let pair = world.membership(&[1, 2]);
    let elsewhere = filed(statement(*pair.conversation_id(), *everyone.hash()));
    assert_eq!(refused_at(&local, &elsewhere), Table::ProtocolEvidence);
    let otherwise = filed(statement(
        *everyone.conversation_id(),
        MembershipHash::from_bytes([1; 32]),
    ));
    assert_eq!(refused_at(&local, &otherwise), Table::ProtocolEvidence);
    open(
        &local,
        &filed(statement(*everyone.conversation_id(), *everyone.hash())),
    )
    .unwrap();
}

// CONV-G11
#[test]
fn an_owners_read_fails_at_the_first_row_that_cannot_be_trusted() {
    let (world, local, rows) = lived_in();
    let everyone = world.everyone();
    let read = |rows: &Snapshot| {
        history::read(rows, everyone.conversation_id(), &local.registry, &local.history)
            .map(|history| history.map_or(0, |history| history.entries.len()))
            .map_err(|corruption| corruption.table)
    };
    assert_eq!(read(&rows), Ok(2));
    assert_eq!(read(&Snapshot::new()), Ok(0));
    let first = rows.rows::<CertifiedRecordRow>().unwrap().remove(0).record_hash;
    let record = changed::<StagedRecordRow>(
        &rows,
        |row| row.record_hash == first,
        |row| row.anchor_hash = "anc_x".to_owned(),
    );
    assert_eq!(read(&record), Err(Table::StagedRecords));
    let link = rows.rows::<CertifiedRecordRow>().unwrap().remove(0);
    assert_eq!(read(&without(&rows, &link)), Err(Table::CertifiedRecords));
    // The reads a store issues for it are enough.
    let mut partial = Snapshot::new();
    for query in history::reads(everyone.conversation_id()) {
        let conclave_conversation::store::Read::Prefix(table, _) = &query else {
            panic!("a prefix")
        };
        for (key, bytes) in rows.read(&query) {
            partial.insert(*table, key, bytes);
        }
    }
    assert_eq!(read(&partial), Ok(2));
}

#[test]
fn a_store_of_another_agent_or_key_is_refused() {
    let (world, local, rows) = lived_in();
    let other = world.members[0].local();
    assert!(matches!(open(&other, &rows), Err(OpenError::Identity(_))));
    let mixed = Local {
        key: other.key.clone(),
        ..local
    };
    assert!(matches!(open(&mixed, &rows), Err(OpenError::Identity(_))));
}

// CONV-G15
#[test]
fn a_pending_envelope_of_a_retired_version_is_too_old_and_a_misstated_version_corrupt() {
    let (_, local, rows) = lived_in();
    let later = Local {
        wire_version: SECOND_VERSION,
        live: WireVersions::of(&[SECOND_VERSION]),
        history: test_support::history(),
        ..local.clone()
    };
    assert!(matches!(open(&later, &rows), Err(OpenError::OutboxTooOld { .. })));
    let misstated = changed::<OutboundRow>(
        &rows,
        |_| true,
        |row| row.wire_version = SECOND_VERSION.to_string(),
    );
    assert_eq!(refused_at(&local, &misstated), Table::OutboundMessages);
}

// CONV-G16
#[test]
fn history_of_a_retired_version_still_verifies_and_reads() {
    let (world, _, _) = lived_in();
    let everyone = world.everyone();
    let mut settled = world;
    settled.settle();
    let local = settled.members[1].local();
    let later = Local {
        wire_version: SECOND_VERSION,
        live: WireVersions::of(&[SECOND_VERSION]),
        ..local
    };
    let rows = settled.members[1].store.snapshot();
    open(&later, &rows).unwrap();
    let read = history::read(&rows, everyone.conversation_id(), &later.registry, &later.history)
        .unwrap()
        .unwrap();
    assert_eq!(read.entries.len(), 3);
}
