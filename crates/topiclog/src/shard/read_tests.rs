//! The statements of the hot paths find their rows by index, whatever the size of the tables.

use conclave_sql::native::Database;

use super::*;
use crate::{
    shard::{rows, schema},
    storage,
};

fn database() -> Database {
    let database = Database::in_memory().expect("a database");
    storage::migrate(&database, schema::MIGRATIONS).expect("the schema");
    database
}

/// SQLite's plan of a statement, a line a step.
fn plan(database: &Database, statement: &str, parameters: &[Value]) -> Vec<String> {
    let explained = format!("EXPLAIN QUERY PLAN {statement}");
    let rows = database.query(&explained, parameters).expect("a plan");
    rows.iter()
        .map(|row| row.text(3).expect("a step").to_owned())
        .collect()
}

fn fill(database: &Database, topics: u32, envelopes: u32) {
    database
        .transaction(|| {
            database.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) \
                 INSERT INTO topic (id, topic) SELECT i, unhex(printf('00%032x', i)) FROM n",
                &[topics.into()],
            )?;
            database.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2) \
                 INSERT INTO envelope SELECT i, 1 + i % ?1, unhex(printf('%064x', i)), \
                 unhex('0000000000000001'), unhex('0000000000000000'), 0, x'07' FROM n",
                &[topics.into(), envelopes.into()],
            )
        })
        .unwrap_or_else(|error: SqlError| panic!("{error}"));
}

fn topic(n: u32) -> Bytes {
    let mut bytes = vec![0; 17];
    bytes[13..].copy_from_slice(&n.to_be_bytes());
    bytes.into()
}

#[test]
fn every_statement_of_a_hot_path_searches_by_index() {
    let database = database();
    for size in [0, 1_000] {
        if size > 0 {
            fill(&database, 50, size);
            database.execute("ANALYZE", &[]).expect("analysed");
        }
        let list = || Value::from("[]");
        let some = |n: u32| Value::from(n);
        let blob = || Value::from(vec![0_u8; 17]);
        for (statement, parameters, seeks) in [
            (PAGE, vec![list(), some(1)], 2),
            (PAGE_JOINED, vec![list(), some(1)], 2),
            (PAGE_SIZE, vec![list(), some(1), some(1)], 2),
            (NEWEST, vec![list()], 3),
            (NEWEST_FULL, vec![list()], 3),
            (NEWEST_BYTES, vec![list()], 3),
            (HEADS, vec![list()], 2),
            (PREVIOUS, vec![some(1), some(1)], 1),
            (rows::FIND, vec![blob(), blob()], 2),
            (rows::FIND_EACH, vec![list()], 2),
        ] {
            let steps = plan(&database, statement, &parameters);
            let scans: Vec<&String> = steps
                .iter()
                .filter(|step| {
                    step.contains("SCAN") && !step.contains("asked") && !step.contains("(subquery")
                })
                .collect();
            assert!(scans.is_empty(), "{statement}\n{steps:#?}");
            assert!(
                !steps.iter().any(|step| step.contains("TEMP B-TREE")),
                "{statement}\n{steps:#?}"
            );
            let searches = steps
                .iter()
                .filter(|step| step.contains("USING") && step.starts_with("SEARCH"))
                .count();
            assert_eq!(searches, seeks, "{statement}\n{steps:#?}");
        }
    }
}

// API-240
#[test]
fn a_page_is_exact_at_any_size_of_the_tables() {
    for (topics, envelopes) in [(3, 30), (300, 30_000)] {
        let database = database();
        fill(&database, topics, envelopes);
        let positions = vec![
            TopicPosition {
                topic: topic(1),
                after: 0,
            },
            TopicPosition {
                topic: topic(2),
                after: 5,
            },
            TopicPosition {
                topic: topic(topics + 1),
                after: 0,
            },
        ];
        let bounds = PageBounds {
            limit: 7,
            max_bytes: 1_000,
            at_least_one: false,
        };
        let page = page(&database, &positions, bounds).expect("a page");
        assert_eq!(page.envelopes.len(), 7);
        assert!(page.has_more && !page.cut_by_bytes);
        let heads = heads(&database, &[topic(1), topic(topics + 1)]).expect("heads");
        assert_eq!(heads, [u64::from(envelopes), 0]);
    }
}

// API-283
#[test]
fn bytes_end_a_page_before_the_envelope_that_exceeds_them() {
    let database = database();
    fill(&database, 1, 10);
    let positions = [TopicPosition {
        topic: topic(1),
        after: 0,
    }];
    let read = |limit, max_bytes, at_least_one| {
        let bounds = PageBounds {
            limit,
            max_bytes,
            at_least_one,
        };
        let page = page(&database, &positions, bounds).expect("a page");
        (page.envelopes.len(), page.has_more, page.cut_by_bytes)
    };
    assert_eq!(read(10, 10, false), (10, false, false));
    assert_eq!(read(9, 10, false), (9, true, false));
    assert_eq!(read(10, 9, false), (9, false, true));
    assert_eq!(read(5, 4, false), (4, true, true));
    assert_eq!(read(5, 0, false), (0, true, true));
    assert_eq!(read(5, 0, true), (1, true, true));
}

// API-240
#[test]
fn a_list_of_topics_longer_than_one_statement_takes_reads_as_one() {
    let database = database();
    fill(&database, 20_000, 20_000);
    let topics: Vec<Bytes> = (1..=20_000).map(topic).collect();
    let positions: Vec<TopicPosition> = topics
        .iter()
        .map(|topic| TopicPosition {
            topic: topic.clone(),
            after: 0,
        })
        .collect();
    let bounds = |limit| PageBounds {
        limit,
        max_bytes: 1_000_000,
        at_least_one: false,
    };
    for (limit, length, has_more) in [
        (20_000, 20_000, false),
        (19_999, 19_999, true),
        (9_000, 9_000, true),
    ] {
        let page = page(&database, &positions, bounds(limit)).expect("a page");
        assert_eq!((page.envelopes.len(), page.has_more), (length, has_more));
    }
    let page_of_exactly_one_statement = page(&database, &positions, bounds(8_192)).expect("a page");
    assert!(page_of_exactly_one_statement.has_more);
    assert!(
        heads(&database, &topics)
            .expect("heads")
            .iter()
            .all(|head| *head > 0)
    );
    assert_eq!(
        newest(&database, &topics, true, 20_000)
            .expect("read")
            .map(|found| found.len()),
        Some(20_000)
    );
    assert_eq!(newest(&database, &topics, true, 19_999), Ok(None));
}

// API-222
#[test]
fn envelopes_are_found_in_a_list_as_they_are_found_one_by_one() {
    let database = database();
    fill(&database, 3, 30);
    let hash = |n: u32| {
        let mut bytes = [0; 32];
        bytes[28..].copy_from_slice(&n.to_be_bytes());
        bytes
    };
    let hashes: Vec<[u8; 32]> = (0..40).map(hash).collect();
    let topics: Vec<Bytes> = (0..5).map(topic).collect();
    let keys: Vec<(&[u8], &[u8])> = topics
        .iter()
        .flat_map(|topic| hashes.iter().map(|hash| (&topic[..], &hash[..])))
        .collect();
    let one_by_one: Vec<rows::Found> = keys
        .iter()
        .map(|(topic, hash)| rows::find(&database, topic, hash).expect("found or not"))
        .collect();
    let is_stored = |found: &&rows::Found| matches!(found, rows::Found::Stored(_));
    assert_eq!(one_by_one.iter().filter(is_stored).count(), 30);
    for count in [0, 1, keys.len()] {
        let found = rows::find_each(&database, &keys[..count]).expect("found or not");
        assert_eq!(found, one_by_one[..count]);
    }
}

// API-240
#[test]
fn a_page_is_the_same_joined_and_row_by_row() {
    let database = database();
    let bodies: Vec<Vec<u8>> = vec![
        vec![0; 300],
        (0..=255).collect(),
        "\u{10348}'%\0\n".as_bytes().to_vec(),
        vec![0xff],
        vec![0xc3, 0x28, 0, 0xed, 0xa0, 0x80],
        vec![7; 100_000],
    ];
    fill(&database, 3, 1);
    for (index, body) in (1_u32..).zip(&bodies) {
        database
            .execute(
                "INSERT INTO envelope VALUES (?1, 1 + ?1 % 2, ?2, ?3, ?4, ?1 % 2, ?5)",
                &[
                    (index * 1_000_003).into(),
                    vec![u8::try_from(index).expect("small"); 32].into(),
                    vec![0x80; 8].into(),
                    vec![0; 8].into(),
                    body.clone().into(),
                ],
            )
            .expect("stored");
    }
    let asked: Vec<TopicPosition> = (0..4)
        .map(|n| TopicPosition {
            topic: topic(n),
            after: 0,
        })
        .collect();
    let list = || Value::from(positions_to_json(&asked));
    let held = bodies.len() as u64 + 1;
    for count in 1..=held + 1 {
        let joined = joined_page(&database, list(), count, &asked).expect("a page");
        assert_eq!(
            joined,
            separate_page(&database, list(), count, &asked).expect("a page")
        );
        assert_eq!(joined.len() as u64, count.min(held));
    }
}
