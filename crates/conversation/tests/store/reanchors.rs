//! Candidates, own votes away from an anchor, and what goes with the anchor that is left.

use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;
use conclave_conversation::store::{MemoryStore, Outcome};

use crate::rows::*;

// CONV-G06
#[test]
fn after_a_candidate_away_from_an_anchor_no_own_vote_under_it_is_kept_alone_or_in_a_whole_record() {
    let store = store();
    applied(&store, locking(HEAD, "a"));
    let a = record(HEAD, "a", OTHER, "post 1");
    let locked = Some(head_lock("a"));
    applied(
        &store,
        T(StageReanchor {
            candidate: candidate("anc_2", "rti_2"),
            locked,
        }),
    );
    assert!(conflict(apply(&store, staging(&a, 1))));
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
    applied(store, locking(HEAD, "a"));
    let a = record(HEAD, "a", OTHER, "post 1");
    applied(store, staging(&a, 1));
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
    let store = crate::rows::store();
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
    applied(&store, locking(HEAD, "a"));
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
    let store = crate::rows::store();
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
