//! Rows of publishes that are prepared here and decided elsewhere. They survive a restart, and no read sees them.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use conclave_proto::conclave::internal::v1::{Association, Claim, NewEnvelope};
use conclave_sql::{Row, Sql, SqlError, Value};

use super::holds::{Key, Transaction};

pub(super) const TABLE: &str = "CREATE TABLE prepared (
    tx BLOB NOT NULL,
    position INTEGER NOT NULL,
    topic BLOB NOT NULL,
    hash BLOB NOT NULL,
    is_commit_or_proposal INTEGER NOT NULL,
    retention INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tx, position)
) WITHOUT ROWID";

pub(super) const CLAIM_TABLE: &str = "CREATE TABLE prepared_claim (
    tx BLOB NOT NULL,
    key BLOB NOT NULL,
    owner BLOB NOT NULL,
    PRIMARY KEY (tx, key)
) WITHOUT ROWID";

pub(super) const ASSOCIATION_TABLE: &str = "CREATE TABLE prepared_association (
    tx BLOB NOT NULL,
    position INTEGER NOT NULL,
    key BLOB NOT NULL,
    inbox BLOB NOT NULL,
    is_live INTEGER NOT NULL,
    PRIMARY KEY (tx, position)
) WITHOUT ROWID";

const INSERT: &str = "INSERT INTO prepared \
     (tx, position, topic, hash, is_commit_or_proposal, retention, body) VALUES (?, ?, ?, ?, ?, ?, ?)";

/// What a transaction holds here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) keys: HashSet<Key>,
    pub(super) bytes: u64,
}

/// Everything that is prepared.
pub(super) fn load(sql: &impl Sql) -> Result<BTreeMap<Transaction, Held>, SqlError> {
    let mut held: BTreeMap<Transaction, Held> = BTreeMap::new();
    for row in sql.query("SELECT tx, topic, length(body) FROM prepared", &[])? {
        let entry = held.entry(Transaction::from_bytes(row.array(0)?)).or_default();
        entry.keys.insert(Key::Topic(blob(&row, 1)?));
        entry.bytes += row.unsigned(2)?;
    }
    for row in sql.query("SELECT tx, key FROM prepared_claim", &[])? {
        let entry = held.entry(Transaction::from_bytes(row.array(0)?)).or_default();
        entry.keys.insert(Key::Claim(blob(&row, 1)?));
    }
    for row in sql.query("SELECT DISTINCT tx FROM prepared_association", &[])? {
        held.entry(Transaction::from_bytes(row.array(0)?)).or_default();
    }
    Ok(held)
}

pub(super) fn insert(
    sql: &impl Sql,
    transaction: Transaction,
    envelopes: &[NewEnvelope],
    claims: &[Claim],
) -> Result<(), SqlError> {
    let tx = transaction.to_bytes();
    for (position, envelope) in (0u32..).zip(envelopes) {
        sql.execute(
            INSERT,
            &[
                tx.as_slice().into(),
                position.into(),
                envelope.topic.as_ref().into(),
                envelope.hash.as_ref().into(),
                envelope.is_commit_or_proposal.into(),
                Value::integer(envelope.retention)?,
                envelope.body.as_ref().into(),
            ],
        )?;
    }
    claims.iter().try_for_each(|claim| {
        sql.execute(
            "INSERT OR IGNORE INTO prepared_claim (tx, key, owner) VALUES (?, ?, ?)",
            &[
                tx.as_slice().into(),
                claim.key.as_ref().into(),
                claim.owner.as_ref().into(),
            ],
        )
    })
}

/// The envelopes of a transaction, in the order prepared, and its claims.
pub(super) fn read(
    sql: &impl Sql,
    transaction: Transaction,
) -> Result<(Vec<NewEnvelope>, Vec<Claim>), SqlError> {
    let tx = Value::from(transaction.to_bytes().as_slice());
    let envelopes = sql.query(
        "SELECT topic, hash, is_commit_or_proposal, retention, body FROM prepared WHERE tx = ? ORDER BY position",
        std::slice::from_ref(&tx),
    )?;
    let claims = sql.query(
        "SELECT key, owner FROM prepared_claim WHERE tx = ? ORDER BY key",
        &[tx],
    )?;
    let envelopes = envelopes.iter().map(to_envelope).collect::<Result<_, _>>()?;
    let claims = claims
        .iter()
        .map(|row| {
            Ok(Claim {
                key: blob(row, 0)?,
                owner: blob(row, 1)?,
                index: 0,
            })
        })
        .collect::<Result<_, SqlError>>()?;
    Ok((envelopes, claims))
}

pub(super) fn insert_associations(
    sql: &impl Sql,
    transaction: Transaction,
    associations: &[Association],
) -> Result<(), SqlError> {
    let tx = transaction.to_bytes();
    (0u32..)
        .zip(associations)
        .try_for_each(|(position, association)| {
            sql.execute(
                "INSERT INTO prepared_association (tx, position, key, inbox, is_live) VALUES (?, ?, ?, ?, ?)",
                &[
                    tx.as_slice().into(),
                    position.into(),
                    association.key.as_ref().into(),
                    association.inbox.as_ref().into(),
                    association.is_live.into(),
                ],
            )
        })
}

/// The associations of a transaction, in the order prepared.
pub(super) fn read_associations(
    sql: &impl Sql,
    transaction: Transaction,
) -> Result<Vec<Association>, SqlError> {
    let rows = sql.query(
        "SELECT key, inbox, is_live FROM prepared_association WHERE tx = ? ORDER BY position",
        &[transaction.to_bytes().as_slice().into()],
    )?;
    rows.iter()
        .map(|row| {
            Ok(Association {
                key: blob(row, 0)?,
                inbox: blob(row, 1)?,
                is_live: row.unsigned(2)? != 0,
                envelope: 0,
            })
        })
        .collect()
}

pub(super) fn delete(sql: &impl Sql, transaction: Transaction) -> Result<(), SqlError> {
    let tx = Value::from(transaction.to_bytes().as_slice());
    sql.execute("DELETE FROM prepared WHERE tx = ?", std::slice::from_ref(&tx))?;
    sql.execute(
        "DELETE FROM prepared_claim WHERE tx = ?",
        std::slice::from_ref(&tx),
    )?;
    sql.execute("DELETE FROM prepared_association WHERE tx = ?", &[tx])
}

fn to_envelope(row: &Row) -> Result<NewEnvelope, SqlError> {
    Ok(NewEnvelope {
        topic: blob(row, 0)?,
        hash: blob(row, 1)?,
        is_commit_or_proposal: row.unsigned(2)? != 0,
        retention: i32::try_from(row.integer(3)?).unwrap_or_default(),
        body: blob(row, 4)?,
    })
}

fn blob(row: &Row, column: usize) -> Result<Bytes, SqlError> {
    row.blob(column).map(Bytes::copy_from_slice)
}
