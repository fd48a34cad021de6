//! Keys, their order, and reads of more rows than a page.

use conclave_conversation::store::{Key, Read, Table};

use crate::Store;

/// Rows of one table at these keys.
async fn filled<S: Store>(table: Table, keys: &[Key]) -> S {
    let store = S::fresh().await;
    let rows = keys
        .iter()
        .map(|key| (table, key.clone(), key.to_string().into_bytes()));
    store.put(rows.collect()).await;
    store
}

pub(crate) async fn a_prefix_answers_with_every_row_below_it_and_with_no_neighbour<S: Store>() {
    let below = [
        Key::new(["b"]).with(2_u64),
        Key::new(["b"]).with(10_u64),
        Key::new(["b"]).with(""),
        Key::new(["b"]).with("\u{1F600}"),
        Key::new(["b"]).with("\u{FF01}"),
    ];
    let beside = [
        Key::new(["a"]).with("b"),
        Key::new(["ba"]).with(1_u64),
        Key::new(["c"]),
    ];
    let keys = [&below[..], &beside[..]].concat();
    let store = filled::<S>(Table::CertifiedRecords, &keys).await;
    let read = Read::Prefix(Table::CertifiedRecords, Key::new(["b"]));
    let found = store.read(vec![read]).await;
    assert_eq!(
        found.keys(Table::CertifiedRecords).collect::<Vec<_>>(),
        below.each_ref()
    );
    let row = Read::Row(Table::CertifiedRecords, below[1].clone());
    let other_table = Read::Prefix(Table::Anchors, Key::new(["b"]));
    let found = store.read(vec![row, other_table]).await;
    assert_eq!(
        found.bytes(Table::CertifiedRecords, &below[1]),
        Some(&b"b/10"[..])
    );
    assert_eq!(found.keys(Table::CertifiedRecords).count(), 1);
    assert_eq!(found.keys(Table::Anchors).count(), 0);
}

pub(crate) async fn a_copy_of_everything_holds_every_row_of_a_large_table_once<S: Store>() {
    let keys: Vec<Key> = (0_u64..1300).map(|number| Key::new(["x"]).with(number)).collect();
    let store = filled::<S>(Table::StagedRecords, &keys).await;
    let snapshot = store.snapshot().await;
    assert_eq!(
        snapshot.keys(Table::StagedRecords).collect::<Vec<_>>(),
        keys.iter().collect::<Vec<_>>()
    );
    let last = &keys[1299];
    assert_eq!(snapshot.bytes(Table::StagedRecords, last), Some(&b"x/1299"[..]));
}
