//! Looking cards up (reference section 5.3). Anybody may; whoever does verifies what comes back.

use crate::{Registry, request::LookupKey};
use conclave_grpc_web::Status;
use conclave_harness::AgentId;
use conclave_proto::conclave::registry::v1::{ListResponse, LookupResponse};
use conclave_sql::{Sql, SqlError, Value};

/// Cards on one page of a list.
pub const LIST_PAGE_LENGTH: usize = 100;

impl<S: Sql> Registry<S> {
    pub(crate) fn lookup(&self, key: &LookupKey) -> Result<LookupResponse, Status> {
        let cards = match key {
            LookupKey::AgentId(id) => self.cards(
                "SELECT card FROM agent WHERE agent_id = ?",
                &[Value::from(id.as_bytes().as_slice())],
            ),
            LookupKey::AgentName(name) => self.cards(
                "SELECT card FROM agent WHERE agent_name = ?",
                &[Value::from(name.as_str())],
            ),
        };
        Ok(LookupResponse {
            agent_card: cards?.into_iter().next().map(Into::into),
        })
    }

    pub(crate) fn list(&self, after: Option<AgentId>) -> Result<ListResponse, Status> {
        // One more than a page, to know whether there is a next one. Blobs are ordered bytewise, and every id is
        // greater than no bytes at all.
        let limit = u32::try_from(LIST_PAGE_LENGTH + 1).unwrap_or(u32::MAX);
        let after = after.map_or(Vec::new(), |id| id.as_bytes().to_vec());
        let mut cards = self.cards(
            "SELECT card FROM agent WHERE agent_id > ? ORDER BY agent_id LIMIT ?",
            &[after.into(), limit.into()],
        )?;
        let has_more = cards.len() > LIST_PAGE_LENGTH;
        cards.truncate(LIST_PAGE_LENGTH);
        Ok(ListResponse {
            agent_cards: cards.into_iter().map(Into::into).collect(),
            has_more,
        })
    }

    fn cards(&self, statement: &str, parameters: &[Value]) -> Result<Vec<Vec<u8>>, Status> {
        let read = || -> Result<Vec<Vec<u8>>, SqlError> {
            let rows = self.sql.query(statement, parameters)?;
            rows.iter().map(|row| row.blob(0).map(<[u8]>::to_vec)).collect()
        };
        read().map_err(|error| Status::internal(format!("the Registry's storage failed: {error}")))
    }
}
