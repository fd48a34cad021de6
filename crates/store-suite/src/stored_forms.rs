//! The stored form of every row.

use conclave_conversation::store::Row;
use conclave_conversation::store::rows::*;

use crate::rows::*;

// A stored form may change only together with the schema version and a migration.
#[test]
fn every_row_keeps_its_stored_form() {
    fn stored<R: Row>(row: &R) -> String {
        format!(
            "{} {} {}",
            R::TABLE.name(),
            row.key(),
            String::from_utf8(row.encode()).unwrap()
        )
    }
    let a = record(HEAD, "a", OTHER, "post 1");
    let invitation = OutboundInvitation {
        recipient_agent_id: OTHER.to_owned(),
        canonical_signed_message: "invitation".to_owned(),
    };
    let forms = [
        stored(&identity(LOCAL).identity),
        stored(&foundation("members").membership),
        stored(&foundation("members").anchor),
        stored(&foundation("members").state()),
        stored(&intent("post 1", 3)),
        stored(&lock(HEAD, "a")),
        stored(&lock(None, "genesis")),
        stored(&a),
        stored(&evidence(EvidenceKind::Durability, "record of a", OTHER)),
        stored(&delivery(&a, 4, "hello")),
        stored(&OutboundRow {
            invitations: vec![invitation],
            ..outbound(5)
        }),
        stored(&obligation(&a, 6)),
        stored(&SequenceRow {
            name: Sequence::Outbound.name().to_owned(),
            next: 7,
        }),
    ];
    let expected = [
        r#"identity_binding 1 {"agent_id":"agt_local","canonical_agent_card":"card of agt_local"}"#,
        r#"memberships cnv_1 {"conversation_id":"cnv_1","membership_hash":"hash of members","canonical_membership":"members"}"#,
        r#"anchors cnv_1/anc_1 {"conversation_id":"cnv_1","anchor_hash":"anc_1","position":0,"previous_anchor_hash":null,"selected_record_hash":null,"canonical_anchor":"anchor"}"#,
        r#"conversation_state cnv_1 {"conversation_id":"cnv_1","membership_hash":"hash of members","current_anchor_hash":"anc_1","head_record_hash":null,"head_ordinal":-1}"#,
        r#"post_intents agt_local/post 1 {"author_agent_id":"agt_local","post_id":"post 1","intent_sequence":3,"conversation_id":"cnv_1","membership_hash":"hash of members","canonical_intent":"intent of post 1","completed_record_hash":null}"#,
        r#"proposal_locks cnv_1/record of genesis {"conversation_id":"cnv_1","predecessor_key":"record of genesis","previous_record_hash":"record of genesis","action_hash":"a","canonical_action_core":"core of a"}"#,
        r#"proposal_locks cnv_1/ {"conversation_id":"cnv_1","predecessor_key":"","previous_record_hash":null,"action_hash":"genesis","canonical_action_core":"core of genesis"}"#,
        r#"staged_records cnv_1/record of a {"conversation_id":"cnv_1","record_hash":"record of a","previous_record_hash":"record of genesis","membership_hash":"hash of members","anchor_hash":"anc_1","action_hash":"a","author_agent_id":"agt_other","post_id":"post 1","canonical_record_core":"record core of a"}"#,
        r#"protocol_evidence cnv_1/durability/record of a/agt_other {"conversation_id":"cnv_1","evidence_kind":"durability","subject_id":"record of a","evidence_key":"agt_other","canonical_evidence":"agt_other on record of a"}"#,
        r#"pending_deliveries cnv_1/record of a {"conversation_id":"cnv_1","record_hash":"record of a","delivery_sequence":4,"delivery_token":"dlv_4","recipient_agent_id":"agt_local","canonical_message":"hello","acknowledged":false}"#,
        r#"outbound_messages 5 {"outbound_sequence":5,"outbound_id":"msg_5","conversation_id":"cnv_1","canonical_signed_message":"envelope 5","invitations":[{"recipient_agent_id":"agt_other","canonical_signed_message":"invitation"}],"attempted":false,"disposition":"pending","wire_version":"2026.1021.3"}"#,
        r#"dissemination_obligations cnv_1/record of a {"conversation_id":"cnv_1","record_hash":"record of a","obligation_sequence":6,"outbound_id":null}"#,
        r#"sequences outbound {"name":"outbound","next":7}"#,
    ];
    for (form, expected) in forms.iter().zip(expected) {
        assert_eq!(form, expected);
    }
}
