//! T19: the host accepted a delivery.

use super::{Decision, Read, ReadSet, Refusal, Table};
use crate::store::rows::PendingDeliveryRow;
use crate::store::{Key, Row};

/// T19: the host accepted a delivery. The row stays, so that a second delivery of its record can never arise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcknowledgeDelivery {
    /// The conversation.
    pub conversation_id: String,
    /// The record.
    pub record_hash: String,
    /// The delivery's token.
    pub delivery_token: String,
}

impl AcknowledgeDelivery {
    fn key(&self) -> Key {
        Key::new([&self.conversation_id, &self.record_hash])
    }

    pub(super) fn reads(&self) -> Vec<Read> {
        vec![Read::Row(Table::PendingDeliveries, self.key())]
    }

    pub(super) fn decide(&self, reads: &ReadSet) -> Result<Decision, Refusal> {
        match reads.get::<PendingDeliveryRow>(&self.key())? {
            Some(row) if row.delivery_token != self.delivery_token => {
                Err(Refusal::Conflict("the record was delivered under another token"))
            }
            Some(row) if row.acknowledged => Ok(Decision::existing()),
            Some(row) => Ok(Decision::applied(vec![
                PendingDeliveryRow {
                    acknowledged: true,
                    ..row
                }
                .put(),
            ])),
            None => Err(Refusal::InvalidInput("there is no such delivery")),
        }
    }
}
