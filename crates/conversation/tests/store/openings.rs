//! How a store is opened, by what is found in its place.

use conclave_conversation::store::opening::{
    Backup, Found, FoundTables, Opening, OpeningRefusal, RestoreRefusal, judge, judge_restore,
};
use conclave_conversation::store::{Row, SCHEMA_BASELINE, SCHEMA_VERSION, SchemaRow};

const ID: &str = "id of the store";

fn row(version: u32, migrated_from: Option<u32>) -> Vec<u8> {
    SchemaRow {
        version,
        migrated_from,
        ..SchemaRow::fresh(ID)
    }
    .encode()
}

/// A store of this release that was used before, around this schema row.
fn used(schema: &[u8]) -> Found<'_> {
    Found {
        tables: FoundTables::Expected,
        schema: Some(schema),
        holds_key: true,
        key_store_id: Some(ID.as_bytes()),
        was_started: true,
        is_bound: true,
        ..Found::NOTHING
    }
}

// CONV-G01
#[test]
fn a_store_is_made_reopened_migrated_or_refused_for_one_of_three_reasons() {
    assert_eq!(judge(&Found::NOTHING), Ok(Opening::Initialize));
    let empty = Found {
        tables: FoundTables::Expected,
        ..Found::NOTHING
    };
    assert_eq!(judge(&empty), Ok(Opening::Initialize));
    let reopened = Ok(Opening::Reopen {
        unverified_since: None,
    });
    assert_eq!(judge(&used(&row(SCHEMA_VERSION, None))), reopened);
    assert_eq!(
        judge(&used(&row(SCHEMA_BASELINE, None))),
        Ok(Opening::Migrate {
            from: SCHEMA_BASELINE
        })
    );
    let newer = SCHEMA_VERSION + 1;
    assert_eq!(
        judge(&used(&row(newer, None))),
        Err(OpeningRefusal::NewerSchema { version: newer })
    );
    let older = SCHEMA_BASELINE - 1;
    assert_eq!(
        judge(&used(&row(older, None))),
        Err(OpeningRefusal::PreReset { version: older })
    );
    let foreign = Found {
        tables: FoundTables::Other,
        ..Found::NOTHING
    };
    assert!(matches!(judge(&foreign), Err(OpeningRefusal::Incompatible(_))));
    let unversioned = Found {
        holds_rows: true,
        ..empty
    };
    assert!(matches!(
        judge(&unversioned),
        Err(OpeningRefusal::Incompatible(_))
    ));
    for schema in [&b"{}"[..], b"no json", b"{\"version\":2,\"more\":1}"] {
        let garbled = Found {
            tables: FoundTables::Expected,
            schema: Some(schema),
            ..Found::NOTHING
        };
        assert!(matches!(judge(&garbled), Err(OpeningRefusal::Incompatible(_))));
    }
}

// CONV-G01
#[test]
fn a_newer_release_may_have_other_tables_and_say_more_in_its_schema_row() {
    let row = format!(r#"{{"version":{},"tables":["a"]}}"#, SCHEMA_VERSION + 5);
    let newer = Found {
        tables: FoundTables::Other,
        ..used(row.as_bytes())
    };
    let version = SCHEMA_VERSION + 5;
    assert_eq!(judge(&newer), Err(OpeningRefusal::NewerSchema { version }));
}

// CONV-N04
#[test]
fn a_key_beside_another_store_or_none_signs_nothing() {
    let schema = row(SCHEMA_VERSION, None);
    let store = used(&schema);
    let lost = [
        Found {
            schema: None,
            is_bound: false,
            ..store
        },
        Found {
            schema: None,
            holds_rows: true,
            ..store
        },
        Found {
            tables: FoundTables::Other,
            ..store
        },
        Found {
            key_store_id: Some(b"another"),
            ..store
        },
        Found {
            key_store_id: None,
            ..store
        },
        Found {
            is_bound: false,
            ..store
        },
        Found {
            schema: Some(b"{\"version\":2}"),
            ..store
        },
    ];
    for found in lost {
        let refused = judge(&found);
        assert!(
            matches!(refused, Err(OpeningRefusal::Evicted(_))),
            "{found:?}: {refused:?}"
        );
    }
    // One that drew its key and was not started yet has nothing to forget.
    let young = Found {
        was_started: false,
        is_bound: false,
        ..store
    };
    assert_eq!(
        judge(&young),
        Ok(Opening::Reopen {
            unverified_since: None
        })
    );
}

// CONV-G14
#[test]
fn a_backup_is_put_back_only_until_the_migrated_store_was_started() {
    let old = row(SCHEMA_BASELINE, None);
    let migrated = row(SCHEMA_VERSION, Some(SCHEMA_BASELINE));
    let unstarted = Found {
        was_started: false,
        backup: Some(Backup::Complete),
        ..used(&migrated)
    };
    assert_eq!(
        judge(&unstarted),
        Ok(Opening::Reopen {
            unverified_since: Some(SCHEMA_BASELINE)
        })
    );
    assert_eq!(judge_restore(&unstarted), Ok(()));
    let refused = |found: Found<'_>| judge_restore(&found).unwrap_err();
    assert_eq!(
        refused(Found {
            was_started: true,
            ..unstarted
        }),
        RestoreRefusal::Superseded
    );
    assert_eq!(
        refused(Found {
            backup: Some(Backup::Superseded),
            ..unstarted
        }),
        RestoreRefusal::Superseded
    );
    assert_eq!(
        refused(Found {
            backup: None,
            ..unstarted
        }),
        RestoreRefusal::NoBackup
    );
    let untouched = Found {
        backup: Some(Backup::Complete),
        ..used(&old)
    };
    assert_eq!(refused(untouched), RestoreRefusal::NothingChanged);
    let next = row(SCHEMA_VERSION + 1, None);
    let of_a_newer_release = Found {
        backup: Some(Backup::Complete),
        ..used(&next)
    };
    assert_eq!(refused(of_a_newer_release), RestoreRefusal::Superseded);
    // However the old rows came back: they are from before something was signed.
    let rolled_back = Found {
        backup: Some(Backup::Superseded),
        ..used(&old)
    };
    assert_eq!(judge(&rolled_back), Err(OpeningRefusal::RolledBack));
}
