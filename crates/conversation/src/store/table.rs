//! The names of the tables.

/// One table of the endpoint's store. `name` is what an object store is called in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Version of the layout. One row.
    SchemaMeta,
    /// The one agent this store belongs to. One row.
    IdentityBinding,
    /// The verified membership of each conversation.
    Memberships,
    /// Every anchor a conversation had, in the order it took them.
    Anchors,
    /// Where each conversation stands: current anchor and head.
    ConversationState,
    /// The local agent's posts, finished or not.
    PostIntents,
    /// The one action this endpoint may sign at each predecessor.
    ProposalLocks,
    /// Record cores this endpoint holds durably.
    StagedRecords,
    /// Retained signatures and votes.
    ProtocolEvidence,
    /// The certified chain, by ordinal.
    CertifiedRecords,
    /// Re-anchor candidates. Written by recovery, read by every rule that must not vote past a candidate.
    Reanchors,
    /// Remote posts the host has, or has not yet, acknowledged.
    PendingDeliveries,
    /// Signed envelopes on their way out.
    OutboundMessages,
    /// Record copies this endpoint owes its conversation.
    DisseminationObligations,
    /// How far each feed was read.
    TransportCursors,
    /// Conversations the endpoint was invited to and of which it has seen nothing yet.
    WatchedConversations,
    /// The next number of each sequence.
    Sequences,
}

impl Table {
    /// Every table, in the order of declaration.
    pub const ALL: [Table; 17] = [
        Table::SchemaMeta,
        Table::IdentityBinding,
        Table::Memberships,
        Table::Anchors,
        Table::ConversationState,
        Table::PostIntents,
        Table::ProposalLocks,
        Table::StagedRecords,
        Table::ProtocolEvidence,
        Table::CertifiedRecords,
        Table::Reanchors,
        Table::PendingDeliveries,
        Table::OutboundMessages,
        Table::DisseminationObligations,
        Table::TransportCursors,
        Table::WatchedConversations,
        Table::Sequences,
    ];

    /// The table's name in a database.
    pub const fn name(self) -> &'static str {
        match self {
            Table::SchemaMeta => "schema_meta",
            Table::IdentityBinding => "identity_binding",
            Table::Memberships => "memberships",
            Table::Anchors => "anchors",
            Table::ConversationState => "conversation_state",
            Table::PostIntents => "post_intents",
            Table::ProposalLocks => "proposal_locks",
            Table::StagedRecords => "staged_records",
            Table::ProtocolEvidence => "protocol_evidence",
            Table::CertifiedRecords => "certified_records",
            Table::Reanchors => "reanchors",
            Table::PendingDeliveries => "pending_deliveries",
            Table::OutboundMessages => "outbound_messages",
            Table::DisseminationObligations => "dissemination_obligations",
            Table::TransportCursors => "transport_cursors",
            Table::WatchedConversations => "watched_conversations",
            Table::Sequences => "sequences",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_table_has_its_own_name() {
        let names: BTreeSet<_> = Table::ALL.iter().map(|table| table.name()).collect();
        assert_eq!(names.len(), Table::ALL.len());
    }
}
