//! What a deployment may never change: its identifier, its shard count, its slot table; and its Router instance, which
//! changes when storage is put back to an earlier state.
//!
//! The record is made once and decided at shard 0, which every deployment has whatever its shard count. The Sequencer
//! proposes one to shard 0 and keeps what shard 0 answers; every other shard keeps what the Sequencer answers. So a
//! deployment started with another shard count meets the record of its birth wherever it looks first: going from 4
//! shards to 1 at shard 0 itself, from 1 to 4 when the new Sequencer asks shard 0.

use std::{cell::RefCell, rc::Rc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{BirthRecord, BirthRequest, BirthResponse};
use conclave_sql::{Sql, SqlError};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::{
    Configuration, answer,
    platform::{ObjectName, ObjectPlatform, Platform},
    routing::Routing,
    status,
};

/// The table that keeps the record.
pub(crate) const TABLE: &str =
    "CREATE TABLE birth (id INTEGER PRIMARY KEY CHECK (id = 1), record BLOB NOT NULL)";

/// What every Router instance id begins with.
pub const ROUTER_INSTANCE_PREFIX: &str = "rti_";

/// Random bytes in a Router instance id.
const ROUTER_INSTANCE_BYTES: usize = 16;

/// How long an object waits for the answer to a question about birth, in milliseconds.
const BIRTH_DEADLINE_MS: u32 = 10_000;

/// Who an object is, for the question whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Sequencer,
    Shard(u32),
}

/// An object's knowledge of the birth.
#[derive(Debug)]
pub(crate) struct Birth<P> {
    platform: P,
    configuration: Rc<Configuration>,
    role: Role,
    /// As it is stored, and as others are told.
    record: RefCell<Option<Rc<BirthRecord>>>,
    /// As it holds now: with the Router instance of the last restore.
    current: RefCell<Option<Rc<BirthRecord>>>,
}

impl<P: ObjectPlatform> Birth<P> {
    /// Reads what the object already knows.
    pub(crate) fn open(platform: P, configuration: Rc<Configuration>, role: Role) -> Result<Self, SqlError> {
        let record = load(platform.sql())?.map(Rc::new);
        let current = record.as_ref().map(|record| restored(record, &configuration));
        Ok(Self {
            platform,
            configuration,
            role,
            record: RefCell::new(record),
            current: RefCell::new(current),
        })
    }

    /// The record, after checking that it is the one of this configuration. An unborn object asks for it first.
    pub(crate) async fn ensure(&self) -> Result<Rc<BirthRecord>, Status> {
        if let Some(record) = self.known() {
            return check(&record, &self.configuration).map(|()| record);
        }
        let proposed = propose(&self.platform, &self.configuration);
        let record = match self.role {
            Role::Shard(0) if self.configuration.shard_count == 1 => proposed,
            Role::Shard(_) => self.ask(ObjectName::Sequencer, proposed).await?,
            Role::Sequencer => self.ask(ObjectName::Shard(0), proposed).await?,
        };
        self.keep(record)
    }

    /// What is known without asking anyone.
    pub(crate) fn known(&self) -> Option<Rc<BirthRecord>> {
        self.current.borrow().clone()
    }

    /// The Router instance, if one is known.
    pub(crate) fn router_instance(&self) -> Option<String> {
        self.known().map(|record| record.router_instance.clone())
    }

    /// Answers another object's question. The caller compares the record with its own configuration.
    pub(crate) async fn answer(&self, request: &[u8]) -> Result<BirthResponse, Status> {
        let proposed = BirthRequest::decode(request)
            .ok()
            .and_then(|request| request.proposed)
            .ok_or_else(|| Status::internal("a question about birth does not decode"))?;
        match (self.role, self.known()) {
            (_, Some(_)) => {}
            // Shard 0 decides: the first proposal it hears becomes the record, if it is of its own configuration.
            (Role::Shard(0), None) => {
                check(&proposed, &self.configuration)?;
                self.keep(proposed)?;
            }
            (_, None) => drop(self.ensure().await?),
        }
        Ok(BirthResponse {
            record: self.record.borrow().as_deref().cloned(),
        })
    }

    async fn ask(&self, whom: ObjectName, proposed: BirthRecord) -> Result<BirthRecord, Status> {
        let request = BirthRequest {
            proposed: Some(proposed),
        }
        .encode_to_vec();
        let answered = self
            .platform
            .call(whom, "birth", request, BIRTH_DEADLINE_MS)
            .await
            .map_err(|error| status::from_call_error(&error))?;
        BirthResponse::decode(answer::decode(answered).result?)
            .ok()
            .and_then(|response| response.record)
            .ok_or_else(|| Status::internal("an answer about birth does not decode"))
    }

    /// Keeps a record that is of this configuration; one that came in the meantime goes before it.
    fn keep(&self, record: BirthRecord) -> Result<Rc<BirthRecord>, Status> {
        if let Some(known) = self.known() {
            return check(&known, &self.configuration).map(|()| known);
        }
        let record = Rc::new(record);
        check(&record, &self.configuration)?;
        store(self.platform.sql(), &record).map_err(|error| status::from_sql_error(&error))?;
        let current = restored(&record, &self.configuration);
        self.record.replace(Some(record));
        self.current.replace(Some(Rc::clone(&current)));
        Ok(current)
    }
}

/// A new record for a deployment of this configuration.
fn propose(platform: &impl Platform, configuration: &Configuration) -> BirthRecord {
    BirthRecord {
        identifier: configuration.identifier.clone(),
        shard_count: configuration.shard_count,
        router_instance: mint_router_instance(platform),
        slot_table: Routing::at_birth(configuration.shard_count).to_bytes().into(),
    }
}

fn mint_router_instance(platform: &impl Platform) -> String {
    let mut bytes = [0; ROUTER_INSTANCE_BYTES];
    platform.random(&mut bytes);
    to_router_instance(&bytes)
}

fn to_router_instance(bytes: &[u8]) -> String {
    format!("{ROUTER_INSTANCE_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// The record as it holds since storage was put back to an earlier state: everything but the Router instance is that of the
/// birth. Clients that saw what is gone now hold another instance, and notice. Every object comes to the same one by itself.
fn restored(record: &Rc<BirthRecord>, configuration: &Configuration) -> Rc<BirthRecord> {
    if configuration.restored.is_empty() {
        return Rc::clone(record);
    }
    let hash = Sha256::new()
        .chain_update(&record.router_instance)
        .chain_update([0])
        .chain_update(&configuration.restored)
        .finalize();
    Rc::new(BirthRecord {
        router_instance: to_router_instance(&hash[..ROUTER_INSTANCE_BYTES]),
        ..(**record).clone()
    })
}

/// Refuses a configuration that is not the one of the birth, naming both values.
fn check(record: &BirthRecord, configuration: &Configuration) -> Result<(), Status> {
    if record.identifier != configuration.identifier {
        return Err(Status::unavailable(format!(
            "this deployment was born with the identifier {:?}, and CONCLAVE_IDENTIFIER is now {:?}",
            record.identifier, configuration.identifier
        )));
    }
    if record.shard_count != configuration.shard_count {
        return Err(Status::unavailable(format!(
            "this deployment was born with {} shards, and CONCLAVE_SHARDS is now {}",
            record.shard_count, configuration.shard_count
        )));
    }
    // The Worker routes by the table of the birth; one that differs needs a build that knows how slots move.
    if Routing::from_bytes(&record.slot_table, record.shard_count)
        != Some(Routing::at_birth(record.shard_count))
    {
        return Err(Status::unavailable(
            "the slot table of this deployment is not the one this build routes by",
        ));
    }
    Ok(())
}

fn load(sql: &impl Sql) -> Result<Option<BirthRecord>, SqlError> {
    let rows = sql.query("SELECT record FROM birth", &[])?;
    let Some(row) = rows.first() else { return Ok(None) };
    BirthRecord::decode(Bytes::copy_from_slice(row.blob(0)?))
        .map(Some)
        .map_err(|_| SqlError::Shape {
            column: 0,
            expected: "a birth record",
            found: "other bytes",
        })
}

fn store(sql: &impl Sql, record: &BirthRecord) -> Result<(), SqlError> {
    sql.execute(
        "INSERT INTO birth (id, record) VALUES (1, ?)",
        &[record.encode_to_vec().into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance_after(restored_as: &str) -> String {
        let record = Rc::new(BirthRecord {
            router_instance: "rti_AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
            shard_count: 4,
            ..BirthRecord::default()
        });
        let configuration = Configuration {
            restored: restored_as.to_owned(),
            ..Configuration::default()
        };
        let current = restored(&record, &configuration);
        assert_eq!(current.shard_count, 4);
        current.router_instance.clone()
    }

    #[test]
    fn each_restore_has_a_router_instance_of_its_own_and_always_the_same() {
        let born = instance_after("");
        assert_eq!(born, "rti_AAAAAAAAAAAAAAAAAAAAAA");
        let instances = [born, instance_after("1"), instance_after("2")];
        for (at, instance) in instances.iter().enumerate() {
            assert_eq!(instance.len(), instances[0].len());
            assert!(!instances[..at].contains(instance));
        }
        assert_eq!(instance_after("1"), instances[1]);
    }
}
