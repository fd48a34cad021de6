//! A store that a release of layout 1 wrote: migrated, verified, and gone on with.

use conclave_conversation::engine::{Context, Engine, Local, OpenError, Startup, admit_outbox, history};
use conclave_conversation::store::migration::{Supplies, migrate};
use conclave_conversation::store::rows::{
    CertifiedRecordRow, EvidenceRow, OutboundRow, Sequence, SequenceRow, StagedRecordRow,
};
use conclave_conversation::store::{Key, KeyPart, Row, SCHEMA_VERSION, SchemaRow, Snapshot, Table, Write};
use conclave_conversation::test_support::SECOND_VERSION;
use conclave_harness::key::verifications;
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{AgentKey, EncodedAgentCard, PublicJwk, WireVersions, base64url};
use serde_json::Value;

/// A store as a page of that release left it: `[key, row]` for every row of every object store.
const STORE: &str = include_str!("../../../../tests/fixtures/store_v1.json");

/// The engine's rows, and the shell's own values by name.
fn recorded() -> (Snapshot, Vec<(String, String)>) {
    let recorded: Value = serde_json::from_str(STORE).unwrap();
    let (mut rows, mut own) = (Snapshot::new(), Vec::new());
    for (store, content) in recorded["stores"].as_object().unwrap() {
        for row in content.as_array().unwrap() {
            let text = row[1].as_str().unwrap().to_owned();
            let parts: Vec<KeyPart> = row[0].as_array().unwrap().iter().map(part).collect();
            match Table::ALL.into_iter().find(|table| table.name() == store) {
                Some(table) => rows.insert(table, Key::new(parts), text.into_bytes()),
                None => own.push((row[0][0].as_str().unwrap().to_owned(), text)),
            }
        }
    }
    (rows, own)
}

fn part(value: &Value) -> KeyPart {
    match value.as_str() {
        Some(text) => text.into(),
        None => value.as_u64().unwrap().into(),
    }
}

/// The agent of that store.
fn alice() -> Local {
    let (_, own) = recorded();
    let value = |name: &str| &own.iter().find(|(key, _)| key == name).unwrap().1;
    let signer = PublicJwk::from_canonical_bytes(value("registry-signer").as_bytes()).unwrap();
    let registry = signer.public_key();
    let card = EncodedAgentCard::from_canonical_bytes(value("own-card").as_bytes()).unwrap();
    let card = card.verify(&registry, &WireVersions::history()).unwrap();
    let agent: Value = serde_json::from_str(value("agent")).unwrap();
    let seed = base64url::decode_array(agent["seed"].as_str().unwrap()).unwrap();
    Local::new(card, AgentKey::from_seed(seed), registry)
}

fn applied(rows: &Snapshot, writes: &[Write]) -> Snapshot {
    let mut rows = rows.clone();
    for write in writes {
        match write {
            Write::Put { table, key, bytes } => rows.insert(*table, key.clone(), bytes.clone()),
            Write::Delete { .. } => panic!("the migration removes nothing"),
        }
    }
    rows
}

fn open(rows: &Snapshot) -> Result<usize, OpenError> {
    let mut randomness = SeededRandomness::new(1);
    let context = Context {
        now_ms: 0,
        randomness: &mut randomness,
    };
    let (engine, _) = Engine::open(alice(), rows, context)?;
    Ok(engine.conversations().map(|held| held.records as usize).sum())
}

// CONV-G14
#[test]
fn a_store_of_layout_1_is_migrated_and_verifies_with_everything_it_held() {
    let (old, _) = recorded();
    let supplies = Supplies {
        store_id: "a fresh id",
    };
    let writes = migrate(&old, 1, supplies).unwrap();
    let new = applied(&old, &writes);
    let schema: SchemaRow = new.row(&SchemaRow::singleton_key()).unwrap().unwrap();
    assert_eq!((schema.version, schema.migrated_from), (SCHEMA_VERSION, Some(1)));
    assert_eq!(schema.store_id, "a fresh id");
    assert_eq!(
        writes.len(),
        1,
        "nothing but the schema row differs between the layouts"
    );
    assert_eq!(open(&new), Ok(4));
    let conversation = new.keys(Table::Memberships).next().unwrap().to_string();
    let local = alice();
    let read = history::read(
        &new,
        &conversation.parse().unwrap(),
        &local.registry,
        &local.history,
    );
    let texts: Vec<_> = read
        .unwrap()
        .unwrap()
        .entries
        .iter()
        .map(|entry| {
            serde_json::to_value(&entry.record_core.post_intent().content).unwrap()[0]["text"].clone()
        })
        .collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}

// CONV-G14
#[test]
fn a_store_without_its_schema_row_is_not_migrated() {
    let supplies = Supplies { store_id: "id" };
    let failed = migrate(&Snapshot::new(), 1, supplies).unwrap_err();
    assert_eq!((failed.from, failed.source.table), (1, Table::SchemaMeta));
}

// CONV-G14, CONV-G15
#[test]
fn an_outbox_of_a_retired_version_is_not_admitted_to_a_migration() {
    let (rows, _) = recorded();
    assert_eq!(admit_outbox(&rows, &WireVersions::live()), Ok(()));
    let later = WireVersions::of(&[SECOND_VERSION]);
    let oldest = rows.rows::<OutboundRow>().unwrap().remove(0);
    assert_eq!(
        admit_outbox(&rows, &later),
        Err(OpenError::OutboxTooOld {
            outbound_id: oldest.outbound_id.clone(),
            version: oldest.wire_version.clone(),
        })
    );
    let mut misstated = rows.clone();
    let row = OutboundRow {
        wire_version: SECOND_VERSION.to_string(),
        ..oldest
    };
    misstated.insert(Table::OutboundMessages, row.key(), row.encode());
    assert!(matches!(
        admit_outbox(&misstated, &WireVersions::live()),
        Err(OpenError::Corrupt(_))
    ));
}

#[test]
fn a_verification_goes_a_record_at_a_time_and_says_how_far_it_is() {
    let (old, _) = recorded();
    let mut startup = Startup::begin(alice(), &old).unwrap();
    let mut seen = vec![startup.progress()];
    while !startup.advance().unwrap() {
        if seen.last() != Some(&startup.progress()) {
            seen.push(startup.progress());
        }
    }
    assert_eq!(seen, [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]);
    // The third record is corrupt: the two before it verify, and the row is named.
    let mut records: Vec<StagedRecordRow> = old.rows().unwrap();
    let order = old.rows::<CertifiedRecordRow>().unwrap();
    let record = records
        .iter_mut()
        .find(|row| row.record_hash == order[2].record_hash)
        .unwrap();
    record.author_agent_id.push('x');
    let mut spoilt = old.clone();
    spoilt.insert(Table::StagedRecords, record.key(), record.encode());
    let mut startup = Startup::begin(alice(), &spoilt).unwrap();
    let refused = loop {
        match startup.advance() {
            Ok(true) => panic!("it verifies"),
            Ok(false) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(startup.progress(), (2, 4));
    let OpenError::Corrupt(corruption) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (corruption.table, corruption.key),
        (Table::StagedRecords, record.key().to_string())
    );
}

/// Opens a store looking so many records ahead, and speaks for some of the signatures. How many were shown, and how many the
/// opening verified itself.
fn open_looking_ahead(rows: &Snapshot, ahead: usize, speaks_for: fn(usize) -> bool) -> (usize, u64) {
    let mut startup = Startup::begin(alice(), rows).unwrap();
    let (mut shown, before) = (0, verifications());
    // The first step enters the conversation, whose records can then be looked at.
    while !startup.advance().unwrap() {
        let looked_at = std::iter::from_fn(|| startup.look_ahead()).take(ahead).flatten();
        for signature in looked_at.collect::<Vec<_>>() {
            let key = signature.key();
            let verifies = key.verify(signature.signed_text().as_bytes(), signature.signature());
            assert_eq!(verifies, Ok(()));
            if speaks_for(shown) {
                signature.holds();
            }
            shown += 1;
        }
    }
    (shown, verifications() - before - shown as u64)
}

#[test]
fn signatures_that_somebody_spoke_for_are_not_verified_again_and_all_others_are() {
    let (old, _) = recorded();
    let evidence = old.rows::<EvidenceRow>().unwrap().len();
    // On a thread of its own: what a simulation's agents know of each other is known to a thread.
    let open = |ahead: usize, speaks_for: fn(usize) -> bool| {
        std::thread::scope(|scope| {
            scope
                .spawn(|| open_looking_ahead(&old, ahead, speaks_for))
                .join()
                .unwrap()
        })
    };
    let (none, alone) = open(0, |_| true);
    assert_eq!(none, 0);
    for ahead in [1, 2, 100] {
        let (shown, verified) = open(ahead, |_| true);
        assert!(
            shown > 0 && shown < evidence,
            "all but those of the first record, once each"
        );
        assert_eq!(verified, alone - shown as u64);
        let (_, verified) = open(ahead, |_| false);
        assert_eq!(verified, alone);
        let (_, verified) = open(ahead, |number| number % 2 == 0);
        assert_eq!(verified, alone - shown.div_ceil(2) as u64);
    }
}

#[test]
fn a_record_that_cannot_be_decoded_is_refused_in_its_turn_however_far_one_looked_ahead() {
    let (old, _) = recorded();
    let order = old.rows::<CertifiedRecordRow>().unwrap();
    let records = old.rows::<StagedRecordRow>().unwrap();
    let mut last = records
        .into_iter()
        .find(|row| row.record_hash == order[3].record_hash)
        .unwrap();
    last.author_agent_id.push('x');
    let mut spoilt = old.clone();
    spoilt.insert(Table::StagedRecords, last.key(), last.encode());
    let mut startup = Startup::begin(alice(), &spoilt).unwrap();
    assert_eq!(startup.advance(), Ok(false));
    let looked_at: Vec<_> = std::iter::from_fn(|| startup.look_ahead()).collect();
    let are_empty: Vec<_> = looked_at.iter().map(Vec::is_empty).collect();
    assert_eq!(are_empty, [false, false, true], "nothing is looked at beyond it");
    assert!(startup.look_ahead().is_none());
    let refused = loop {
        if let Err(error) = startup.advance() {
            break error;
        }
    };
    assert_eq!(startup.progress(), (3, 4));
    assert!(matches!(refused, OpenError::Corrupt(found) if found.key == last.key().to_string()));
}

#[test]
fn a_store_that_lost_a_post_or_a_delivery_it_counted_is_refused() {
    let (old, _) = recorded();
    assert_eq!(open(&old), Ok(4));
    for sequence in [Sequence::Intent, Sequence::Delivery] {
        let mut row: SequenceRow = old.row(&sequence.key()).unwrap().unwrap();
        row.next += 1;
        let mut short = old.clone();
        short.insert(Table::Sequences, row.key(), row.encode());
        assert!(matches!(open(&short), Err(OpenError::Corrupt(found)) if found.table == Table::Sequences));
    }
}
