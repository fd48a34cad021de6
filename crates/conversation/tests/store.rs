//! The transitions of the store, each through the store in memory: what they require, what they write, and that a refused
//! one leaves everything as it was.

use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;
use conclave_conversation::store::{CommitError, Key, MemoryStore, Outcome, Refusal, Row, Table, Transition};

const LOCAL: &str = "agt_local";
const OTHER: &str = "agt_other";
const CONVERSATION: &str = "cnv_1";

fn apply(store: &MemoryStore, transition: impl Into<Transition>) -> Result<Outcome, Refusal> {
    let before = store.snapshot();
    match store.apply(&[transition.into()]) {
        Ok(outcomes) => {
            if outcomes[0] == Outcome::Existing {
                assert_eq!(store.snapshot(), before, "what exists is not written again");
            }
            Ok(outcomes[0])
        }
        Err(CommitError::Refused { index: 0, refusal }) => {
            assert_eq!(store.snapshot(), before, "what is refused changes nothing");
            Err(refusal)
        }
        Err(error) => panic!("{error}"),
    }
}

fn applied(store: &MemoryStore, transition: impl Into<Transition>) {
    assert_eq!(apply(store, transition), Ok(Outcome::Applied));
}

fn conflict(result: Result<Outcome, Refusal>) -> bool {
    matches!(result, Err(Refusal::Conflict(_)))
}

fn invalid(result: Result<Outcome, Refusal>) -> bool {
    matches!(result, Err(Refusal::InvalidInput(_)))
}

/// Wraps each transition, so that the tests below read without the enum.
struct T<X>(X);

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

fn identity(agent: &str) -> BindIdentity {
    BindIdentity {
        identity: IdentityBindingRow {
            agent_id: agent.to_owned(),
            canonical_agent_card: format!("card of {agent}"),
        },
    }
}

fn foundation(membership: &str) -> Foundation {
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

fn intent(post: &str, number: u64) -> PostIntentRow {
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

fn lock(previous: Option<&str>, action: &str) -> ProposalLockRow {
    ProposalLockRow {
        conversation_id: CONVERSATION.to_owned(),
        predecessor_key: previous.unwrap_or("").to_owned(),
        previous_record_hash: previous.map(str::to_owned),
        action_hash: action.to_owned(),
        canonical_action_core: format!("core of {action}"),
    }
}

fn record(previous: Option<&str>, action: &str, author: &str, post: &str) -> StagedRecordRow {
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

fn evidence(kind: EvidenceKind, subject: &str, signer: &str) -> EvidenceRow {
    EvidenceRow {
        conversation_id: CONVERSATION.to_owned(),
        evidence_kind: kind,
        subject_id: subject.to_owned(),
        evidence_key: signer.to_owned(),
        canonical_evidence: format!("{signer} on {subject}"),
    }
}

fn both(record: &StagedRecordRow, signers: &[&str]) -> Vec<EvidenceRow> {
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

fn obligation(record: &StagedRecordRow, number: u64) -> ObligationRow {
    ObligationRow {
        conversation_id: record.conversation_id.clone(),
        record_hash: record.record_hash.clone(),
        obligation_sequence: number,
        outbound_id: None,
    }
}

fn delivery(record: &StagedRecordRow, number: u64, message: &str) -> PendingDeliveryRow {
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

fn outbound(number: u64) -> OutboundRow {
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

fn candidate(anchor: &str, instance: &str) -> ReanchorRow {
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

fn head_lock(action: &str) -> HeadLock {
    HeadLock {
        action_hash: action.to_owned(),
        record_hash: format!("record of {action}"),
    }
}

fn leave(candidate: &ReanchorRow, released: Option<HeadLock>) -> LeaveAnchor {
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

/// A store with a conversation, its certified GENESIS by the other agent, and the local identity.
fn store() -> MemoryStore {
    let store = MemoryStore::new();
    applied(&store, T(identity(LOCAL)));
    applied(
        &store,
        T(LockGenesis {
            foundation: foundation("members"),
            lock: lock(None, "genesis"),
        }),
    );
    let genesis = record(None, "genesis", OTHER, "post 0");
    applied(
        &store,
        T(StageRecord {
            obligation: obligation(&genesis, 0),
            record: genesis.clone(),
        }),
    );
    applied(
        &store,
        T(PromoteRecord {
            ordinal: 0,
            evidence: both(&genesis, &[LOCAL, OTHER]),
            completion: Completion::Delivery(delivery(&genesis, 0, "hello")),
            record: genesis,
        }),
    );
    store
}

const HEAD: Option<&str> = Some("record of genesis");

fn rows<R: Row>(store: &MemoryStore) -> Vec<R> {
    store.snapshot().rows().unwrap()
}

#[test]
fn an_identity_is_bound_once() {
    let store = MemoryStore::new();
    applied(&store, T(identity(LOCAL)));
    assert_eq!(apply(&store, T(identity(LOCAL))), Ok(Outcome::Existing));
    assert!(conflict(apply(&store, T(identity(OTHER)))));
}

// CONV-G03
#[test]
fn a_first_post_and_its_foundation_are_one_transition_and_a_competing_foundation_a_conflict() {
    let store = MemoryStore::new();
    let first = BindPostIntent {
        foundation: Some(foundation("members")),
        intent: intent("post 1", 0),
    };
    assert!(invalid(apply(&store, T(first.clone()))), "without an identity");
    applied(&store, T(identity(LOCAL)));
    let homeless = BindPostIntent {
        foundation: None,
        ..first.clone()
    };
    assert!(invalid(apply(&store, T(homeless))), "without a foundation");
    applied(&store, T(first.clone()));
    let state: Vec<ConversationStateRow> = rows(&store);
    assert_eq!((state.len(), state[0].head_ordinal), (1, -1));
    assert_eq!(apply(&store, T(first.clone())), Ok(Outcome::Existing));
    let competing = BindPostIntent {
        foundation: Some(foundation("others")),
        ..first.clone()
    };
    assert!(conflict(apply(&store, T(competing))));
    assert_eq!(rows::<MembershipRow>(&store).len(), 1);
    let mut changed = first;
    changed.intent.canonical_intent = "another content".to_owned();
    assert!(conflict(apply(&store, T(changed))));
    let foreign = PostIntentRow {
        author_agent_id: OTHER.to_owned(),
        ..intent("post 2", 1)
    };
    assert!(invalid(apply(
        &store,
        T(BindPostIntent {
            foundation: None,
            intent: foreign
        })
    )));
}

// CONV-G04
#[test]
fn a_genesis_lock_and_its_foundation_are_one_transition_and_a_competing_genesis_a_conflict() {
    let store = MemoryStore::new();
    applied(&store, T(identity(LOCAL)));
    let genesis = LockGenesis {
        foundation: foundation("members"),
        lock: lock(None, "genesis"),
    };
    applied(&store, T(genesis.clone()));
    assert_eq!(apply(&store, T(genesis)), Ok(Outcome::Existing));
    let competing = LockGenesis {
        foundation: foundation("members"),
        lock: lock(None, "another"),
    };
    assert!(conflict(apply(&store, T(competing))));
    let elsewhere = LockGenesis {
        foundation: foundation("others"),
        lock: lock(None, "genesis"),
    };
    assert!(conflict(apply(&store, T(elsewhere))));
    assert_eq!(rows::<ProposalLockRow>(&store), [lock(None, "genesis")]);
}

// CONV-D04
#[test]
fn a_predecessor_is_locked_by_one_action() {
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    assert_eq!(
        apply(
            &store,
            T(LockProposal {
                lock: lock(HEAD, "a")
            })
        ),
        Ok(Outcome::Existing)
    );
    assert!(conflict(apply(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "b")
        })
    )));
}

fn supersede(certificate: Vec<EvidenceRow>) -> SupersedeLock {
    SupersedeLock {
        superseded_action_hash: "a".to_owned(),
        superseded_record_hash: "record of a".to_owned(),
        lock: lock(HEAD, "b"),
        certificate,
    }
}

// CONV-D20
#[test]
fn a_superseded_lock_goes_with_its_signatures_and_brings_the_whole_certificate() {
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let previous_record_hash = HEAD.map(str::to_owned);
    for signer in [LOCAL, OTHER] {
        let evidence = evidence(EvidenceKind::Action, "a", signer);
        let previous_record_hash = previous_record_hash.clone();
        applied(
            &store,
            T(MergeEvidence {
                evidence,
                previous_record_hash,
            }),
        );
    }
    let certificate: Vec<_> = ["agt_x", "agt_y", OTHER]
        .map(|signer| evidence(EvidenceKind::Action, "b", signer))
        .to_vec();
    let mut mixed = certificate.clone();
    mixed[1] = evidence(EvidenceKind::Action, "a", "agt_y");
    assert!(invalid(apply(&store, T(supersede(mixed)))));
    let mut votes = certificate.clone();
    votes[1].evidence_kind = EvidenceKind::Durability;
    assert!(invalid(apply(&store, T(supersede(votes)))));
    assert!(invalid(apply(&store, T(supersede(Vec::new())))));
    assert_eq!(rows::<ProposalLockRow>(&store)[1], lock(HEAD, "a"));

    applied(&store, T(supersede(certificate.clone())));
    assert_eq!(rows::<ProposalLockRow>(&store)[1], lock(HEAD, "b"));
    let left: Vec<EvidenceRow> = rows(&store);
    assert!(left.iter().all(|row| row.subject_id != "a"));
    assert_eq!(left.iter().filter(|row| row.subject_id == "b").count(), 3);
    // Whatever happens next, the own signature on the second action has no place: it was not in the certificate, and the
    // endpoint that finds this store finds the certificate complete.
    assert!(
        left.iter()
            .all(|row| row.subject_id != "b" || row.evidence_key != LOCAL)
    );
    assert_eq!(apply(&store, T(supersede(certificate))), Ok(Outcome::Existing));
}

// CONV-D19, CONV-D22
#[test]
fn neither_a_staged_action_nor_a_genesis_loses_its_lock() {
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let staged = record(HEAD, "a", OTHER, "post 1");
    applied(
        &store,
        T(StageRecord {
            obligation: obligation(&staged, 1),
            record: staged,
        }),
    );
    let certificate = vec![evidence(EvidenceKind::Action, "b", OTHER)];
    assert!(conflict(apply(&store, T(supersede(certificate)))));
    let genesis = SupersedeLock {
        superseded_action_hash: "genesis".to_owned(),
        superseded_record_hash: "record of genesis".to_owned(),
        lock: lock(None, "c"),
        certificate: vec![evidence(EvidenceKind::Action, "c", OTHER)],
    };
    assert!(invalid(apply(&store, T(genesis))));
}

#[test]
fn evidence_needs_its_subject_and_keeps_its_first_bytes() {
    let store = store();
    let previous_record_hash = HEAD.map(str::to_owned);
    let merge = |evidence| {
        T(MergeEvidence {
            evidence,
            previous_record_hash: previous_record_hash.clone(),
        })
    };
    let signature = evidence(EvidenceKind::Action, "a", LOCAL);
    assert!(
        invalid(apply(&store, merge(signature.clone()))),
        "no lock on the action"
    );
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    applied(&store, merge(signature.clone()));
    assert_eq!(apply(&store, merge(signature.clone())), Ok(Outcome::Existing));
    let other_bytes = EvidenceRow {
        canonical_evidence: "signed otherwise".to_owned(),
        ..signature
    };
    assert!(conflict(apply(&store, merge(other_bytes))));
    let vote = evidence(EvidenceKind::Durability, "record of a", LOCAL);
    assert!(invalid(apply(&store, merge(vote.clone()))), "no staged record");
    let staged = record(HEAD, "a", OTHER, "post 1");
    applied(
        &store,
        T(StageRecord {
            obligation: obligation(&staged, 1),
            record: staged,
        }),
    );
    applied(&store, merge(vote));
}

#[test]
fn a_record_is_staged_at_the_head_under_the_current_anchor_by_its_lock_alone() {
    let store = store();
    let a = record(HEAD, "a", OTHER, "post 1");
    let stage = |record: &StagedRecordRow| {
        T(StageRecord {
            obligation: obligation(record, 1),
            record: record.clone(),
        })
    };
    assert!(invalid(apply(&store, stage(&a))), "no lock");
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    assert!(
        conflict(apply(&store, stage(&record(HEAD, "b", OTHER, "post 2")))),
        "another lock"
    );
    let elsewhere = StagedRecordRow {
        anchor_hash: "anc_2".to_owned(),
        ..a.clone()
    };
    assert!(conflict(apply(&store, stage(&elsewhere))));
    assert!(conflict(apply(
        &store,
        stage(&record(Some("record of x"), "a", OTHER, "post 1"))
    )));
    applied(&store, stage(&a));
    assert_eq!(apply(&store, stage(&a)), Ok(Outcome::Existing));
}

// CONV-G06
#[test]
fn after_a_candidate_away_from_an_anchor_no_own_vote_under_it_is_kept_alone_or_in_a_whole_record() {
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let a = record(HEAD, "a", OTHER, "post 1");
    let locked = Some(head_lock("a"));
    applied(
        &store,
        T(StageReanchor {
            candidate: candidate("anc_2", "rti_2"),
            locked,
        }),
    );
    assert!(conflict(apply(
        &store,
        T(StageRecord {
            obligation: obligation(&a, 1),
            record: a.clone()
        })
    )));
    let whole = |signers: &[&str]| {
        T(ApplyRecord {
            record: a.clone(),
            ordinal: 1,
            evidence: both(&a, signers),
            completion: Completion::Delivery(delivery(&a, 1, "a")),
        })
    };
    assert!(conflict(apply(&store, whole(&[LOCAL, OTHER]))));
    applied(&store, whole(&[OTHER, "agt_x"]));
    let evidence = evidence(EvidenceKind::Durability, &a.record_hash, LOCAL);
    let previous_record_hash = HEAD.map(str::to_owned);
    assert!(conflict(apply(
        &store,
        T(MergeEvidence {
            evidence,
            previous_record_hash
        })
    )));
}

/// Locks and stages `a` at the head.
fn stage_a(store: &MemoryStore) {
    applied(
        store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let a = record(HEAD, "a", OTHER, "post 1");
    applied(
        store,
        T(StageRecord {
            obligation: obligation(&a, 1),
            record: a.clone(),
        }),
    );
    for row in both(&a, &[LOCAL]) {
        applied(
            store,
            T(MergeEvidence {
                evidence: row,
                previous_record_hash: HEAD.map(str::to_owned),
            }),
        );
    }
}

// CONV-G05
#[test]
fn a_candidate_is_staged_neither_behind_a_staged_successor_nor_beside_another_of_its_scope() {
    let store = store();
    let stage = |anchor: &str, instance: &str, locked: Option<HeadLock>| {
        T(StageReanchor {
            candidate: candidate(anchor, instance),
            locked,
        })
    };
    applied(&store, stage("anc_2", "rti_2", None));
    assert_eq!(
        apply(&store, stage("anc_2", "rti_2", None)),
        Ok(Outcome::Existing)
    );
    assert!(
        conflict(apply(&store, stage("anc_x", "rti_2", None))),
        "one a scope"
    );
    applied(&store, stage("anc_3", "rti_3", None));
    let elsewhere = ReanchorRow {
        selected_record_hash: "record of x".to_owned(),
        ..candidate("anc_4", "rti_4")
    };
    assert!(conflict(apply(
        &store,
        T(StageReanchor {
            candidate: elsewhere,
            locked: None
        })
    )));
    let store = self::store();
    stage_a(&store);
    assert!(
        conflict(apply(&store, stage("anc_2", "rti_2", None))),
        "the lock is named"
    );
    assert!(
        conflict(apply(&store, stage("anc_2", "rti_2", Some(head_lock("a"))))),
        "its record is staged"
    );
}

// CONV-G07
#[test]
fn a_completed_reanchor_takes_the_lock_at_its_head_and_everything_kept_about_it() {
    // Completed by its votes, with another candidate of the same anchor beside it.
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    applied(
        &store,
        T(MergeEvidence {
            evidence: evidence(EvidenceKind::Action, "a", LOCAL),
            previous_record_hash: HEAD.map(str::to_owned),
        }),
    );
    let chosen = candidate("anc_2", "rti_2");
    let released = Some(head_lock("a"));
    assert!(invalid(apply(
        &store,
        T(CompleteReanchor(leave(&chosen, released.clone())))
    )));
    for staged in [&chosen, &candidate("anc_3", "rti_3")] {
        applied(
            &store,
            T(StageReanchor {
                candidate: staged.clone(),
                locked: released.clone(),
            }),
        );
        applied(
            &store,
            T(MergeEvidence {
                evidence: evidence(EvidenceKind::Reanchor, &staged.anchor_hash, LOCAL),
                previous_record_hash: None,
            }),
        );
    }
    let unstaged = evidence(EvidenceKind::Reanchor, "anc_9", LOCAL);
    assert!(invalid(apply(
        &store,
        T(MergeEvidence {
            evidence: unstaged,
            previous_record_hash: None
        })
    )));
    assert!(conflict(apply(&store, T(CompleteReanchor(leave(&chosen, None))))));
    applied(&store, T(CompleteReanchor(leave(&chosen, released.clone()))));
    assert_eq!(
        apply(&store, T(CompleteReanchor(leave(&chosen, released)))),
        Ok(Outcome::Existing)
    );
    require_only_the_genesis_is_left(&store, "anc_2");

    // Adopted, over a staged successor and without any candidate.
    let store = self::store();
    stage_a(&store);
    let leave = leave(&chosen, Some(head_lock("a")));
    assert!(invalid(apply(&store, T(CompleteReanchor(leave.clone())))));
    applied(&store, T(AdoptReanchor(leave)));
    require_only_the_genesis_is_left(&store, "anc_2");
}

fn require_only_the_genesis_is_left(store: &MemoryStore, anchor: &str) {
    let states: Vec<ConversationStateRow> = rows(store);
    assert_eq!(states[0].current_anchor_hash, anchor);
    assert_eq!(states[0].head_record_hash.as_deref(), HEAD);
    assert_eq!(rows::<AnchorRow>(store).len(), 2);
    assert_eq!(rows::<ReanchorRow>(store), []);
    let locks: Vec<ProposalLockRow> = rows(store);
    let staged: Vec<StagedRecordRow> = rows(store);
    let obligations: Vec<ObligationRow> = rows(store);
    let evidence: Vec<EvidenceRow> = rows(store);
    let counts = (locks.len(), staged.len(), obligations.len(), evidence.len());
    assert_eq!(counts, (1, 1, 1, 4), "those of the GENESIS");
}

// CONV-G13
#[test]
fn an_empty_conversation_is_restarted_with_its_posts_and_one_with_a_record_is_not() {
    let restart = |anchor: &str| {
        T(RestartEmpty {
            membership: foundation("members").membership,
            expected: foundation("members").anchor,
            anchor: AnchorRow {
                anchor_hash: anchor.to_owned(),
                canonical_anchor: format!("genesis {anchor}"),
                ..foundation("members").anchor
            },
        })
    };
    let store = MemoryStore::new();
    applied(&store, T(identity(LOCAL)));
    applied(
        &store,
        T(BindPostIntent {
            foundation: Some(foundation("members")),
            intent: intent("post 0", 0),
        }),
    );
    applied(
        &store,
        T(LockProposal {
            lock: lock(None, "genesis"),
        }),
    );
    let genesis = record(None, "genesis", LOCAL, "post 0");
    applied(
        &store,
        T(StageRecord {
            obligation: obligation(&genesis, 0),
            record: genesis.clone(),
        }),
    );
    for row in both(&genesis, &[OTHER]) {
        applied(
            &store,
            T(MergeEvidence {
                evidence: row,
                previous_record_hash: None,
            }),
        );
    }
    applied(&store, restart("anc_2"));
    assert_eq!(apply(&store, restart("anc_2")), Ok(Outcome::Existing));
    let anchors: Vec<AnchorRow> = rows(&store);
    assert_eq!((anchors.len(), anchors[0].anchor_hash.as_str()), (1, "anc_2"));
    assert_eq!(
        rows::<ConversationStateRow>(&store)[0].current_anchor_hash,
        "anc_2"
    );
    assert_eq!(rows::<PostIntentRow>(&store), [intent("post 0", 0)]);
    let locks: Vec<ProposalLockRow> = rows(&store);
    let staged: Vec<StagedRecordRow> = rows(&store);
    let obligations: Vec<ObligationRow> = rows(&store);
    let evidence: Vec<EvidenceRow> = rows(&store);
    let counts = (locks.len(), staged.len(), obligations.len(), evidence.len());
    assert_eq!(counts, (0, 0, 0, 0));

    assert!(conflict(apply(&self::store(), restart("anc_2"))));
}

// CONV-E14
#[test]
fn a_remote_record_is_certified_with_its_delivery_or_not_at_all() {
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let a = record(HEAD, "a", OTHER, "post 1");
    applied(
        &store,
        T(StageRecord {
            obligation: obligation(&a, 1),
            record: a.clone(),
        }),
    );
    let promote = |completion| {
        T(PromoteRecord {
            record: a.clone(),
            ordinal: 1,
            evidence: both(&a, &[LOCAL, OTHER]),
            completion,
        })
    };
    assert!(invalid(apply(&store, promote(Completion::LocalPost))));
    let of_another = delivery(&record(None, "genesis", OTHER, "post 0"), 1, "hello");
    assert!(invalid(apply(&store, promote(Completion::Delivery(of_another)))));
    assert_eq!(rows::<CertifiedRecordRow>(&store).len(), 1);
    applied(&store, promote(Completion::Delivery(delivery(&a, 1, "a"))));
    let state: Vec<ConversationStateRow> = rows(&store);
    assert_eq!(state[0].head_record_hash, Some(a.record_hash.clone()));
    assert_eq!(state[0].head_ordinal, 1);
    assert_eq!(rows::<PendingDeliveryRow>(&store).len(), 2);
}

// CONV-M09, CONV-M02
#[test]
fn the_same_record_again_keeps_its_token_and_another_projection_of_it_is_a_conflict() {
    let store = store();
    let genesis = record(None, "genesis", OTHER, "post 0");
    let again = |message: &str| {
        T(PromoteRecord {
            record: genesis.clone(),
            ordinal: 0,
            evidence: both(&genesis, &[LOCAL, OTHER]),
            completion: Completion::Delivery(PendingDeliveryRow {
                delivery_token: "dlv_another".to_owned(),
                ..delivery(&genesis, 0, message)
            }),
        })
    };
    assert_eq!(apply(&store, again("hello")), Ok(Outcome::Existing));
    assert_eq!(rows::<PendingDeliveryRow>(&store)[0].delivery_token, "dlv_0");
    assert!(conflict(apply(&store, again("goodbye"))));
}

#[test]
fn a_local_record_finishes_its_post_and_is_not_delivered() {
    let store = store();
    applied(
        &store,
        T(BindPostIntent {
            foundation: None,
            intent: intent("mine", 0),
        }),
    );
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let a = record(HEAD, "a", LOCAL, "mine");
    let whole = |completion| {
        T(ApplyRecord {
            record: a.clone(),
            ordinal: 1,
            evidence: both(&a, &[LOCAL, OTHER]),
            completion,
        })
    };
    assert!(invalid(apply(
        &store,
        whole(Completion::Delivery(delivery(&a, 1, "mine")))
    )));
    applied(&store, whole(Completion::LocalPost));
    assert_eq!(
        rows::<PostIntentRow>(&store)[0].completed_record_hash,
        Some(a.record_hash.clone())
    );
    assert_eq!(apply(&store, whole(Completion::LocalPost)), Ok(Outcome::Existing));
    assert!(
        rows::<ObligationRow>(&store)
            .iter()
            .all(|row| row.record_hash != a.record_hash),
        "nothing is owed"
    );
}

#[test]
fn a_record_takes_the_next_place_of_the_chain_and_no_other() {
    let store = store();
    applied(
        &store,
        T(LockProposal {
            lock: lock(HEAD, "a"),
        }),
    );
    let a = record(HEAD, "a", OTHER, "post 1");
    let whole = |ordinal, number| {
        T(ApplyRecord {
            record: a.clone(),
            ordinal,
            evidence: both(&a, &[LOCAL, OTHER]),
            completion: Completion::Delivery(delivery(&a, number, "a")),
        })
    };
    assert!(conflict(apply(&store, whole(0, 1))), "the place of GENESIS");
    assert!(conflict(apply(&store, whole(2, 1))), "beyond the end");
    assert!(
        conflict(apply(&store, whole(1, 7))),
        "another number than the next"
    );
    applied(&store, whole(1, 1));
}

// CONV-H01
#[test]
fn an_envelope_is_begun_once_and_completed_once() {
    let store = store();
    applied(
        &store,
        T(Enqueue {
            outbound: outbound(0),
        }),
    );
    assert_eq!(
        apply(
            &store,
            T(Enqueue {
                outbound: outbound(0)
            })
        ),
        Ok(Outcome::Existing)
    );
    assert!(
        conflict(apply(
            &store,
            T(Enqueue {
                outbound: outbound(2)
            })
        )),
        "numbers have no gaps"
    );
    let begin = || {
        T(BeginOutbound {
            outbound_sequence: 0,
            outbound_id: "msg_0".to_owned(),
        })
    };
    let complete = || {
        T(CompleteOutbound {
            outbound_sequence: 0,
            outbound_id: "msg_0".to_owned(),
        })
    };
    assert_eq!(apply(&store, begin()), Ok(Outcome::Applied), "initial");
    assert_eq!(apply(&store, begin()), Ok(Outcome::Existing), "retry");
    assert_eq!(apply(&store, complete()), Ok(Outcome::Applied));
    assert_eq!(apply(&store, complete()), Ok(Outcome::Existing));
    assert!(invalid(apply(&store, begin())));
    let unknown = CompleteOutbound {
        outbound_sequence: 5,
        outbound_id: "msg_5".to_owned(),
    };
    assert!(invalid(apply(&store, T(unknown))));
}

// CONV-H02, CONV-H03
#[test]
fn a_set_of_envelopes_is_discarded_whole_and_an_obligation_is_owed_again() {
    let store = store();
    let genesis_copy = AttachObligation {
        record_hash: "record of genesis".to_owned(),
        outbound: outbound(0),
    };
    applied(&store, T(genesis_copy.clone()));
    assert_eq!(apply(&store, T(genesis_copy)), Ok(Outcome::Existing));
    let second = AttachObligation {
        record_hash: "record of genesis".to_owned(),
        outbound: outbound(1),
    };
    assert!(conflict(apply(&store, T(second))), "one envelope serves it");
    applied(
        &store,
        T(Enqueue {
            outbound: outbound(1),
        }),
    );

    let attached: Vec<ObligationRow> = rows(&store);
    let altered = OutboundRow {
        attempted: true,
        ..outbound(1)
    };
    let with_altered = DiscardOutbound {
        outbound: vec![outbound(0), altered],
        obligations: attached.clone(),
    };
    assert!(conflict(apply(&store, T(with_altered))));
    let all = DiscardOutbound {
        outbound: vec![outbound(0), outbound(1)],
        obligations: attached,
    };
    applied(&store, T(all));
    assert!(
        rows::<OutboundRow>(&store)
            .iter()
            .all(|row| row.disposition == Disposition::Discarded)
    );
    assert_eq!(rows::<ObligationRow>(&store)[0].outbound_id, None);
    let again = AttachObligation {
        record_hash: "record of genesis".to_owned(),
        outbound: outbound(2),
    };
    applied(&store, T(again));
    let complete = CompleteOutbound {
        outbound_sequence: 0,
        outbound_id: "msg_0".to_owned(),
    };
    assert!(
        conflict(apply(&store, T(complete))),
        "what was discarded is not completed"
    );
}

// CONV-M03
#[test]
fn a_delivery_is_acknowledged_by_its_own_token_once() {
    let store = store();
    let acknowledge = |record: &str, token: &str| {
        T(AcknowledgeDelivery {
            conversation_id: CONVERSATION.to_owned(),
            record_hash: record.to_owned(),
            delivery_token: token.to_owned(),
        })
    };
    assert!(conflict(apply(&store, acknowledge("record of genesis", "dlv_9"))));
    assert!(invalid(apply(&store, acknowledge("record of nothing", "dlv_0"))));
    applied(&store, acknowledge("record of genesis", "dlv_0"));
    assert_eq!(
        apply(&store, acknowledge("record of genesis", "dlv_0")),
        Ok(Outcome::Existing)
    );
}

#[test]
fn a_cursor_moves_forward_within_an_instance_and_starts_again_in_another() {
    let store = store();
    let cursor = |instance: &str, position| {
        T(AdvanceCursor {
            cursor: TransportCursorRow {
                feed: CONVERSATION.to_owned(),
                router_instance_id: instance.to_owned(),
                position,
            },
        })
    };
    applied(&store, cursor("rti_1", 5));
    assert_eq!(apply(&store, cursor("rti_1", 5)), Ok(Outcome::Existing));
    assert!(conflict(apply(&store, cursor("rti_1", 4))));
    applied(&store, cursor("rti_1", 9));
    applied(&store, cursor("rti_2", 1));
}

#[test]
fn a_conversation_is_watched_until_it_is_held_or_dropped() {
    let store = store();
    let watch = |conversation: &str, number| {
        T(WatchConversation {
            watched: WatchedConversationRow {
                conversation_id: conversation.to_owned(),
                inviter_agent_id: OTHER.to_owned(),
                watch_sequence: number,
                canonical_membership: "members".to_owned(),
            },
        })
    };
    assert!(
        conflict(apply(&store, watch(CONVERSATION, 0))),
        "a held one is not watched"
    );
    applied(&store, watch("cnv_2", 0));
    assert_eq!(apply(&store, watch("cnv_2", 1)), Ok(Outcome::Existing));
    let cursor = TransportCursorRow {
        feed: "cnv_2".to_owned(),
        router_instance_id: "rti_1".to_owned(),
        position: 3,
    };
    applied(&store, T(AdvanceCursor { cursor }));
    let drop = || {
        T(UnwatchConversation {
            conversation_id: "cnv_2".to_owned(),
            forget_cursor: true,
        })
    };
    applied(&store, drop());
    assert!(rows::<TransportCursorRow>(&store).is_empty());
    assert_eq!(apply(&store, drop()), Ok(Outcome::Existing));
}

#[test]
fn a_batch_is_committed_whole_or_not_at_all_and_each_transition_sees_those_before_it() {
    let store = store();
    let a = record(HEAD, "a", OTHER, "post 1");
    let batch: Vec<Transition> = vec![
        T(LockProposal {
            lock: lock(HEAD, "a"),
        })
        .into(),
        T(StageRecord {
            obligation: obligation(&a, 1),
            record: a.clone(),
        })
        .into(),
        T(AttachObligation {
            record_hash: a.record_hash.clone(),
            outbound: outbound(0),
        })
        .into(),
        T(Enqueue {
            outbound: outbound(1),
        })
        .into(),
    ];
    let before = store.snapshot();
    let mut spoilt = batch.clone();
    spoilt.push(
        T(LockProposal {
            lock: lock(HEAD, "b"),
        })
        .into(),
    );
    assert!(matches!(
        store.apply(&spoilt),
        Err(CommitError::Refused { index: 4, .. })
    ));
    assert_eq!(store.snapshot(), before);
    assert_eq!(store.apply(&batch).unwrap(), [Outcome::Applied; 4]);
    assert_eq!(store.apply(&batch).unwrap(), [Outcome::Existing; 4]);
}

#[test]
fn a_row_that_this_crate_did_not_write_is_corruption_and_not_a_refusal() {
    let mut rows = store().snapshot();
    let key = Key::new([CONVERSATION]);
    rows.insert(Table::ConversationState, key, b"{\"head\":1}".to_vec());
    let store = MemoryStore::from_snapshot(rows);
    assert!(matches!(
        apply(
            &store,
            T(LockProposal {
                lock: lock(HEAD, "a")
            })
        ),
        Err(Refusal::Corrupt(_))
    ));
}

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
