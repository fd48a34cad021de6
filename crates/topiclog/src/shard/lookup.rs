//! Small reads before and beside publishing: which envelopes are stored already, and which inbox an identifier or a handle
//! belongs to (API-222, API-270, API-299). Each is one turn.

use bytes::Bytes;
use conclave_grpc_web::Status;
use conclave_proto::conclave::internal::v1::{
    FindRequest, FindResponse, ResolveRequest, ResolveResponse, find_request::Key,
};
use conclave_sql::{Sql, SqlError, Value};
use prost::Message as _;

use super::{
    Shard, associations, conditions,
    read::{topics_to_json, unasked},
    rows::{self, Found},
};
use crate::{platform::ObjectPlatform, status};

impl<P: ObjectPlatform> Shard<P> {
    /// Method "find".
    pub(super) async fn find(&self, request: &[u8]) -> Result<FindResponse, Status> {
        let request =
            FindRequest::decode(request).map_err(|_| Status::internal("a find request does not decode"))?;
        self.birth.ensure().await?;
        let is_stored = |key: &Key| {
            rows::find(self.platform.sql(), &key.topic, &key.hash)
                .map(|found| matches!(found, Found::Stored(_)))
        };
        let is_stored = request
            .keys
            .iter()
            .map(is_stored)
            .collect::<Result<_, SqlError>>();
        is_stored
            .map(|is_stored| FindResponse { is_stored })
            .map_err(|error| status::from_sql_error(&error))
    }

    /// Method "resolve".
    pub(super) async fn resolve(&self, request: &[u8]) -> Result<ResolveResponse, Status> {
        let request = ResolveRequest::decode(request)
            .map_err(|_| Status::internal("a resolve request does not decode"))?;
        self.birth.ensure().await?;
        let sql = self.platform.sql();
        let resolve = || {
            Ok(ResolveResponse {
                owners: look_up(sql, conditions::OWNERS, &request.claims)?,
                inboxes: look_up(sql, associations::LATEST, &request.associations)?,
            })
        };
        resolve().map_err(|error: SqlError| status::from_sql_error(&error))
    }
}

/// What a statement over a list of keys finds for each, in the order asked; empty where it finds nothing.
fn look_up(sql: &impl Sql, statement: &str, keys: &[Bytes]) -> Result<Vec<Bytes>, SqlError> {
    let mut found = vec![Bytes::new(); keys.len()];
    if keys.is_empty() {
        return Ok(found);
    }
    for row in sql.query(statement, &[Value::from(topics_to_json(keys))])? {
        let place = usize::try_from(row.unsigned(0)?).unwrap_or(usize::MAX);
        let slot = found.get_mut(place).ok_or_else(unasked)?;
        *slot = Bytes::copy_from_slice(row.blob(1)?);
    }
    Ok(found)
}
