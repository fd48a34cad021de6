//! The tables, and whom they belong to.
//!
//! A database is founded once, for one signer and one wire version, and refuses every other: cards already handed out
//! were signed by that key and are pinned to it.

use conclave_harness::{AgentKey, Randomness, WireVersion, randomness::random_array};
use conclave_sql::{Row, Sql, SqlError, Value};

/// The layout of the tables below.
const SCHEMA_VERSION: u32 = 1;

/// `foundation` has one row. `seed` is NULL where the operator configures it. `agent` is one row an agent, for ever.
/// `operation` is one row an answered attempt: the agent it registered, or why it was refused.
const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS foundation (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        schema_version INTEGER NOT NULL,
        wire_version TEXT NOT NULL,
        signer TEXT NOT NULL,
        seed BLOB
    )",
    "CREATE TABLE IF NOT EXISTS agent (
        agent_id BLOB NOT NULL PRIMARY KEY,
        agent_name TEXT NOT NULL UNIQUE,
        key_thumbprint BLOB NOT NULL UNIQUE,
        card BLOB NOT NULL
    ) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS operation (
        key_thumbprint BLOB NOT NULL,
        operation_id BLOB NOT NULL,
        request_hash BLOB NOT NULL,
        agent_id BLOB,
        refusal INTEGER,
        PRIMARY KEY (key_thumbprint, operation_id),
        CHECK ((agent_id IS NULL) <> (refusal IS NULL))
    ) WITHOUT ROWID",
];

/// Why a Registry does not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryOpenError {
    /// The storage was founded by another signer.
    #[error("the storage belongs to the signer {stored}, but the configured seed is that of {configured}")]
    SignerMismatch {
        /// The thumbprint URI of the signer that founded the storage.
        stored: String,
        /// The thumbprint URI of the configured seed.
        configured: String,
    },
    /// The storage was founded with a configured seed, and now there is none.
    #[error("the storage belongs to the signer {stored}, whose seed has to be configured")]
    SeedMissing {
        /// The thumbprint URI of the signer that founded the storage.
        stored: String,
    },
    /// The storage was founded for another wire version.
    #[error(
        "the storage belongs to wire version {stored}, not to {configured}; a new one needs a new Registry"
    )]
    WireVersionMismatch {
        /// The version of the cards in the storage.
        stored: String,
        /// The version this Registry issues.
        configured: WireVersion,
    },
    /// The tables are laid out for another release.
    #[error("the storage has schema version {stored}, this release reads {SCHEMA_VERSION}")]
    SchemaVersion {
        /// The version found.
        stored: u64,
    },
    /// The database failed.
    #[error("the storage failed: {0}")]
    Sql(#[from] SqlError),
}

/// Founds the storage, or finds that it belongs to this configuration. The key to sign with.
pub(crate) fn open<S: Sql>(
    sql: &S,
    configured_seed: Option<[u8; 32]>,
    wire_version: WireVersion,
    randomness: &mut dyn Randomness,
) -> Result<AgentKey, RegistryOpenError> {
    sql.transaction(|| {
        for table in TABLES {
            sql.execute(table, &[])?;
        }
        let foundation = sql.query(
            "SELECT schema_version, wire_version, signer, seed IS NOT NULL, ifnull(seed, x'') FROM foundation",
            &[],
        )?;
        match foundation.first() {
            Some(foundation) => check(foundation, configured_seed, wire_version),
            None => found(sql, configured_seed, wire_version, randomness),
        }
    })
}

fn check(
    foundation: &Row,
    configured_seed: Option<[u8; 32]>,
    wire_version: WireVersion,
) -> Result<AgentKey, RegistryOpenError> {
    let schema_version = foundation.unsigned(0)?;
    if schema_version != u64::from(SCHEMA_VERSION) {
        return Err(RegistryOpenError::SchemaVersion {
            stored: schema_version,
        });
    }
    let stored_version = foundation.text(1)?.to_owned();
    if stored_version != wire_version.to_string() {
        return Err(RegistryOpenError::WireVersionMismatch {
            stored: stored_version,
            configured: wire_version,
        });
    }
    let stored = foundation.text(2)?.to_owned();
    let seed = match (configured_seed, foundation.unsigned(3)?) {
        (Some(seed), _) => seed,
        (None, 0) => return Err(RegistryOpenError::SeedMissing { stored }),
        (None, _) => foundation.array(4)?,
    };
    let signer = AgentKey::from_seed(seed);
    let configured = signer.public_key().thumbprint_uri();
    if configured == stored {
        Ok(signer)
    } else {
        Err(RegistryOpenError::SignerMismatch { stored, configured })
    }
}

fn found<S: Sql>(
    sql: &S,
    configured_seed: Option<[u8; 32]>,
    wire_version: WireVersion,
    randomness: &mut dyn Randomness,
) -> Result<AgentKey, RegistryOpenError> {
    let (seed, kept) = match configured_seed {
        Some(seed) => (seed, Value::Null),
        None => {
            let seed = random_array::<32>(randomness);
            (seed, Value::from(seed.as_slice()))
        }
    };
    let signer = AgentKey::from_seed(seed);
    sql.execute(
        "INSERT INTO foundation (id, schema_version, wire_version, signer, seed) VALUES (1, ?, ?, ?, ?)",
        &[
            Value::from(SCHEMA_VERSION),
            wire_version.to_string().into(),
            signer.public_key().thumbprint_uri().into(),
            kept,
        ],
    )?;
    Ok(signer)
}
