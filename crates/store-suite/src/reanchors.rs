//! Candidates, own votes away from an anchor, and what goes with the anchor that is left.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::Store;
use crate::rows::*;

// CONV-G06
pub(crate) async fn after_a_candidate_away_from_an_anchor_no_own_vote_under_it_is_kept_alone_or_in_a_whole_record<
    S: Store,
>() {
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
    let a = record(HEAD, "a", OTHER, "post 1");
    let locked = Some(head_lock("a"));
    applied(
        &store,
        T(StageReanchor {
            candidate: candidate("anc_2", "rti_2"),
            locked,
        }),
    )
    .await;
    assert!(conflict(apply(&store, staging(&a, 1)).await));
    let whole = |signers: &[&str]| {
        T(ApplyRecord {
            record: a.clone(),
            ordinal: 1,
            evidence: both(&a, signers),
            completion: Completion::Delivery(delivery(&a, 1, "a")),
        })
    };
    assert!(conflict(apply(&store, whole(&[LOCAL, OTHER])).await));
    applied(&store, whole(&[OTHER, "agt_x"])).await;
    let evidence = evidence(EvidenceKind::Durability, &a.record_hash, LOCAL);
    let previous_record_hash = HEAD.map(str::to_owned);
    assert!(conflict(
        apply(
            &store,
            T(MergeEvidence {
                evidence,
                previous_record_hash
            })
        )
        .await
    ));
}

/// Locks and stages `a` at the head.
async fn stage_a<S: Store>(store: &S) {
    applied(store, locking(HEAD, "a")).await;
    let a = record(HEAD, "a", OTHER, "post 1");
    applied(store, staging(&a, 1)).await;
    for row in both(&a, &[LOCAL]) {
        applied(
            store,
            T(MergeEvidence {
                evidence: row,
                previous_record_hash: HEAD.map(str::to_owned),
            }),
        )
        .await;
    }
}

// CONV-G05
pub(crate) async fn a_candidate_is_staged_neither_behind_a_staged_successor_nor_beside_another_of_its_scope<
    S: Store,
>() {
    let store = store::<S>().await;
    let stage = |anchor: &str, instance: &str, locked: Option<HeadLock>| {
        T(StageReanchor {
            candidate: candidate(anchor, instance),
            locked,
        })
    };
    applied(&store, stage("anc_2", "rti_2", None)).await;
    assert_eq!(
        apply(&store, stage("anc_2", "rti_2", None)).await,
        Ok(Outcome::Existing)
    );
    assert!(
        conflict(apply(&store, stage("anc_x", "rti_2", None)).await),
        "one a scope"
    );
    applied(&store, stage("anc_3", "rti_3", None)).await;
    let elsewhere = ReanchorRow {
        selected_record_hash: "record of x".to_owned(),
        ..candidate("anc_4", "rti_4")
    };
    assert!(conflict(
        apply(
            &store,
            T(StageReanchor {
                candidate: elsewhere,
                locked: None
            })
        )
        .await
    ));
    let store = crate::rows::store::<S>().await;
    stage_a(&store).await;
    assert!(
        conflict(apply(&store, stage("anc_2", "rti_2", None)).await),
        "the lock is named"
    );
    assert!(
        conflict(apply(&store, stage("anc_2", "rti_2", Some(head_lock("a")))).await),
        "its record is staged"
    );
}

// CONV-G07
pub(crate) async fn a_completed_reanchor_takes_the_lock_at_its_head_and_everything_kept_about_it<S: Store>() {
    // Completed by its votes, with another candidate of the same anchor beside it.
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
    applied(
        &store,
        T(MergeEvidence {
            evidence: evidence(EvidenceKind::Action, "a", LOCAL),
            previous_record_hash: HEAD.map(str::to_owned),
        }),
    )
    .await;
    let chosen = candidate("anc_2", "rti_2");
    let released = Some(head_lock("a"));
    assert!(invalid(
        apply(&store, T(CompleteReanchor(leave(&chosen, released.clone())))).await
    ));
    for staged in [&chosen, &candidate("anc_3", "rti_3")] {
        applied(
            &store,
            T(StageReanchor {
                candidate: staged.clone(),
                locked: released.clone(),
            }),
        )
        .await;
        applied(
            &store,
            T(MergeEvidence {
                evidence: evidence(EvidenceKind::Reanchor, &staged.anchor_hash, LOCAL),
                previous_record_hash: None,
            }),
        )
        .await;
    }
    let unstaged = evidence(EvidenceKind::Reanchor, "anc_9", LOCAL);
    assert!(invalid(
        apply(
            &store,
            T(MergeEvidence {
                evidence: unstaged,
                previous_record_hash: None
            })
        )
        .await
    ));
    assert!(conflict(
        apply(&store, T(CompleteReanchor(leave(&chosen, None)))).await
    ));
    applied(&store, T(CompleteReanchor(leave(&chosen, released.clone())))).await;
    assert_eq!(
        apply(&store, T(CompleteReanchor(leave(&chosen, released)))).await,
        Ok(Outcome::Existing)
    );
    require_only_the_genesis_is_left(&store, "anc_2").await;

    // Adopted, over a staged successor and without any candidate.
    let store = crate::rows::store::<S>().await;
    stage_a(&store).await;
    let leave = leave(&chosen, Some(head_lock("a")));
    assert!(invalid(apply(&store, T(CompleteReanchor(leave.clone()))).await));
    applied(&store, T(AdoptReanchor(leave))).await;
    require_only_the_genesis_is_left(&store, "anc_2").await;
}

async fn require_only_the_genesis_is_left<S: Store>(store: &S, anchor: &str) {
    let states: Vec<ConversationStateRow> = rows(store).await;
    assert_eq!(states[0].current_anchor_hash, anchor);
    assert_eq!(states[0].head_record_hash.as_deref(), HEAD);
    assert_eq!(rows::<AnchorRow>(store).await.len(), 2);
    assert_eq!(rows::<ReanchorRow>(store).await, []);
    let locks: Vec<ProposalLockRow> = rows(store).await;
    let staged: Vec<StagedRecordRow> = rows(store).await;
    let obligations: Vec<ObligationRow> = rows(store).await;
    let evidence: Vec<EvidenceRow> = rows(store).await;
    let counts = (locks.len(), staged.len(), obligations.len(), evidence.len());
    assert_eq!(counts, (1, 1, 1, 4), "those of the GENESIS");
}
