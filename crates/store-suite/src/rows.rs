//! Rows and transitions as short as a test wants them, and a store with a conversation in it.

use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;
use conclave_conversation::store::{CommitError, Outcome, Refusal, Row, Transition};

use crate::Store;

pub(crate) const LOCAL: &str = "agt_local";
pub(crate) const OTHER: &str = "agt_other";
pub(crate) const CONVERSATION: &str = "cnv_1";

pub(crate) async fn apply<S: Store>(
    store: &S,
    transition: impl Into<Transition>,
) -> Result<Outcome, Refusal> {
    let before = store.snapshot().await;
    match store.commit(vec![transition.into()]).await {
        Ok(outcomes) => {
            if outcomes[0] == Outcome::Existing {
                assert_eq!(store.snapshot().await, before, "what exists is not written again");
            }
            Ok(outcomes[0])
        }
        Err(CommitError::Refused { index: 0, refusal }) => {
            assert_eq!(store.snapshot().await, before, "what is refused changes nothing");
            Err(refusal)
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) async fn applied<S: Store>(store: &S, transition: impl Into<Transition>) {
    assert_eq!(apply(store, transition).await, Ok(Outcome::Applied));
}

pub(crate) fn conflict(result: Result<Outcome, Refusal>) -> bool {
    matches!(result, Err(Refusal::Conflict(_)))
}

pub(crate) fn invalid(result: Result<Outcome, Refusal>) -> bool {
    matches!(result, Err(Refusal::InvalidInput(_)))
}

/// Wraps each transition, so that the tests below read without the enum.
pub(crate) struct T<X>(pub(crate) X);

macro_rules! wrap {
    ($($name:ident),+ $(,)?) => {$(
        impl From<T<$name>> for Transition {
            fn from(wrapped: T<$name>) -> Self {
                Transition::$name(wrapped.0)
            }
        }
    )+};
}

wrap!(
    BindIdentity,
    BindPostIntent,
    LockProposal,
    LockGenesis,
    SupersedeLock,
    MergeEvidence,
    StageRecord,
    PromoteRecord,
    ApplyRecord,
    StageReanchor,
    CompleteReanchor,
    AdoptReanchor,
    RestartEmpty,
    Enqueue,
    AttachObligation,
    BeginOutbound,
    CompleteOutbound,
    DiscardOutbound,
    AcknowledgeDelivery,
    AdvanceCursor,
    WatchConversation,
    UnwatchConversation,
);

pub(crate) fn identity(agent: &str) -> BindIdentity {
    BindIdentity {
        identity: IdentityBindingRow {
            agent_id: agent.to_owned(),
            canonical_agent_card: format!("card of {agent}"),
        },
    }
}

pub(crate) fn foundation(membership: &str) -> Foundation {
    Foundation {
        membership: MembershipRow {
            conversation_id: CONVERSATION.to_owned(),
            membership_hash: format!("hash of {membership}"),
            canonical_membership: membership.to_owned(),
        },
        anchor: AnchorRow {
            conversation_id: CONVERSATION.to_owned(),
            anchor_hash: "anc_1".to_owned(),
            position: 0,
            previous_anchor_hash: None,
            selected_record_hash: None,
            canonical_anchor: "anchor".to_owned(),
        },
    }
}

pub(crate) fn intent(post: &str, number: u64) -> PostIntentRow {
    PostIntentRow {
        author_agent_id: LOCAL.to_owned(),
        post_id: post.to_owned(),
        intent_sequence: number,
        conversation_id: CONVERSATION.to_owned(),
        membership_hash: "hash of members".to_owned(),
        canonical_intent: format!("intent of {post}"),
        completed_record_hash: None,
    }
}

pub(crate) fn lock(previous: Option<&str>, action: &str) -> ProposalLockRow {
    ProposalLockRow {
        conversation_id: CONVERSATION.to_owned(),
        predecessor_key: previous.unwrap_or("").to_owned(),
        previous_record_hash: previous.map(str::to_owned),
        action_hash: action.to_owned(),
        canonical_action_core: format!("core of {action}"),
    }
}

pub(crate) fn record(previous: Option<&str>, action: &str, author: &str, post: &str) -> StagedRecordRow {
    StagedRecordRow {
        conversation_id: CONVERSATION.to_owned(),
        record_hash: format!("record of {action}"),
        previous_record_hash: previous.map(str::to_owned),
        membership_hash: "hash of members".to_owned(),
        anchor_hash: "anc_1".to_owned(),
        action_hash: action.to_owned(),
        author_agent_id: author.to_owned(),
        post_id: post.to_owned(),
        canonical_record_core: format!("record core of {action}"),
    }
}

pub(crate) fn evidence(kind: EvidenceKind, subject: &str, signer: &str) -> EvidenceRow {
    EvidenceRow {
        conversation_id: CONVERSATION.to_owned(),
        evidence_kind: kind,
        subject_id: subject.to_owned(),
        evidence_key: signer.to_owned(),
        canonical_evidence: format!("{signer} on {subject}"),
    }
}

pub(crate) fn both(record: &StagedRecordRow, signers: &[&str]) -> Vec<EvidenceRow> {
    signers
        .iter()
        .flat_map(|signer| {
            [
                evidence(EvidenceKind::Action, &record.action_hash, signer),
                evidence(EvidenceKind::Durability, &record.record_hash, signer),
            ]
        })
        .collect()
}

pub(crate) fn obligation(record: &StagedRecordRow, number: u64) -> ObligationRow {
    ObligationRow {
        conversation_id: record.conversation_id.clone(),
        record_hash: record.record_hash.clone(),
        obligation_sequence: number,
        outbound_id: None,
    }
}

pub(crate) fn delivery(record: &StagedRecordRow, number: u64, message: &str) -> PendingDeliveryRow {
    PendingDeliveryRow {
        conversation_id: record.conversation_id.clone(),
        record_hash: record.record_hash.clone(),
        delivery_sequence: number,
        delivery_token: format!("dlv_{number}"),
        recipient_agent_id: LOCAL.to_owned(),
        canonical_message: message.to_owned(),
        acknowledged: false,
    }
}

pub(crate) fn outbound(number: u64) -> OutboundRow {
    OutboundRow {
        outbound_sequence: number,
        outbound_id: format!("msg_{number}"),
        conversation_id: CONVERSATION.to_owned(),
        canonical_signed_message: format!("envelope {number}"),
        invitations: Vec::new(),
        attempted: false,
        disposition: Disposition::Pending,
        wire_version: "2026.1021.3".to_owned(),
    }
}

pub(crate) fn candidate(anchor: &str, instance: &str) -> ReanchorRow {
    ReanchorRow {
        conversation_id: CONVERSATION.to_owned(),
        anchor_hash: anchor.to_owned(),
        previous_anchor_hash: "anc_1".to_owned(),
        router_instance_id: instance.to_owned(),
        selected_record_hash: "record of genesis".to_owned(),
        canonical_body: format!("body of {anchor}"),
        canonical_completed_reanchor: None,
    }
}

pub(crate) fn head_lock(action: &str) -> HeadLock {
    HeadLock {
        action_hash: action.to_owned(),
        record_hash: format!("record of {action}"),
    }
}

pub(crate) fn leave(candidate: &ReanchorRow, released: Option<HeadLock>) -> LeaveAnchor {
    let completed = format!("completed {}", candidate.anchor_hash);
    LeaveAnchor {
        reanchor: ReanchorRow {
            canonical_completed_reanchor: Some(completed.clone()),
            ..candidate.clone()
        },
        anchor: AnchorRow {
            conversation_id: CONVERSATION.to_owned(),
            anchor_hash: candidate.anchor_hash.clone(),
            position: 1,
            previous_anchor_hash: Some(candidate.previous_anchor_hash.clone()),
            selected_record_hash: Some(candidate.selected_record_hash.clone()),
            canonical_anchor: completed,
        },
        released,
    }
}

/// Locks an action at a predecessor.
pub(crate) fn locking(previous: Option<&str>, action: &str) -> T<LockProposal> {
    T(LockProposal {
        lock: lock(previous, action),
    })
}

/// Stages a record, whose copy is then owed.
pub(crate) fn staging(record: &StagedRecordRow, obligation_number: u64) -> T<StageRecord> {
    T(StageRecord {
        obligation: obligation(record, obligation_number),
        record: record.clone(),
    })
}

/// Puts envelope `number` on its way.
pub(crate) fn enqueuing(number: u64) -> T<Enqueue> {
    T(Enqueue {
        outbound: outbound(number),
    })
}

/// A store with a conversation, its certified GENESIS by the other agent, and the local identity.
pub(crate) async fn store<S: Store>() -> S {
    let store = S::fresh().await;
    applied(&store, T(identity(LOCAL))).await;
    applied(
        &store,
        T(LockGenesis {
            foundation: foundation("members"),
            lock: lock(None, "genesis"),
        }),
    )
    .await;
    let genesis = record(None, "genesis", OTHER, "post 0");
    applied(&store, staging(&genesis, 0)).await;
    applied(
        &store,
        T(PromoteRecord {
            ordinal: 0,
            evidence: both(&genesis, &[LOCAL, OTHER]),
            completion: Completion::Delivery(delivery(&genesis, 0, "hello")),
            record: genesis,
        }),
    )
    .await;
    store
}

pub(crate) const HEAD: Option<&str> = Some("record of genesis");

pub(crate) async fn rows<R: Row>(store: &impl Store) -> Vec<R> {
    store.snapshot().await.rows().unwrap()
}
