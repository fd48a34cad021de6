//! From a staged record to a certified one, its delivery or its finished post, and the acknowledgment.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::Store;
use crate::rows::*;

pub(crate) async fn a_record_is_staged_at_the_head_under_the_current_anchor_by_its_lock_alone<S: Store>() {
    let store = store::<S>().await;
    let a = record(HEAD, "a", OTHER, "post 1");
    let stage = |record: &StagedRecordRow| staging(record, 1);
    assert!(invalid(apply(&store, stage(&a)).await), "no lock");
    applied(&store, locking(HEAD, "a")).await;
    assert!(
        conflict(apply(&store, stage(&record(HEAD, "b", OTHER, "post 2"))).await),
        "another lock"
    );
    let elsewhere = StagedRecordRow {
        anchor_hash: "anc_2".to_owned(),
        ..a.clone()
    };
    assert!(conflict(apply(&store, stage(&elsewhere)).await));
    assert!(conflict(
        apply(&store, stage(&record(Some("record of x"), "a", OTHER, "post 1"))).await
    ));
    applied(&store, stage(&a)).await;
    assert_eq!(apply(&store, stage(&a)).await, Ok(Outcome::Existing));
}

// CONV-E14
pub(crate) async fn a_remote_record_is_certified_with_its_delivery_or_not_at_all<S: Store>() {
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
    let a = record(HEAD, "a", OTHER, "post 1");
    applied(&store, staging(&a, 1)).await;
    let promote = |completion| {
        T(PromoteRecord {
            record: a.clone(),
            ordinal: 1,
            evidence: both(&a, &[LOCAL, OTHER]),
            completion,
        })
    };
    assert!(invalid(apply(&store, promote(Completion::LocalPost)).await));
    let of_another = delivery(&record(None, "genesis", OTHER, "post 0"), 1, "hello");
    assert!(invalid(
        apply(&store, promote(Completion::Delivery(of_another))).await
    ));
    assert_eq!(rows::<CertifiedRecordRow>(&store).await.len(), 1);
    applied(&store, promote(Completion::Delivery(delivery(&a, 1, "a")))).await;
    let state: Vec<ConversationStateRow> = rows(&store).await;
    assert_eq!(state[0].head_record_hash, Some(a.record_hash.clone()));
    assert_eq!(state[0].head_ordinal, 1);
    assert_eq!(rows::<PendingDeliveryRow>(&store).await.len(), 2);
}

// CONV-M09, CONV-M02
pub(crate) async fn the_same_record_again_keeps_its_token_and_another_projection_of_it_is_a_conflict<
    S: Store,
>() {
    let store = store::<S>().await;
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
    assert_eq!(apply(&store, again("hello")).await, Ok(Outcome::Existing));
    assert_eq!(
        rows::<PendingDeliveryRow>(&store).await[0].delivery_token,
        "dlv_0"
    );
    assert!(conflict(apply(&store, again("goodbye")).await));
}

pub(crate) async fn a_local_record_finishes_its_post_and_is_not_delivered<S: Store>() {
    let store = store::<S>().await;
    applied(
        &store,
        T(BindPostIntent {
            foundation: None,
            intent: intent("mine", 0),
        }),
    )
    .await;
    applied(&store, locking(HEAD, "a")).await;
    let a = record(HEAD, "a", LOCAL, "mine");
    let whole = |completion| {
        T(ApplyRecord {
            record: a.clone(),
            ordinal: 1,
            evidence: both(&a, &[LOCAL, OTHER]),
            completion,
        })
    };
    assert!(invalid(
        apply(&store, whole(Completion::Delivery(delivery(&a, 1, "mine")))).await
    ));
    applied(&store, whole(Completion::LocalPost)).await;
    assert_eq!(
        rows::<PostIntentRow>(&store).await[0].completed_record_hash,
        Some(a.record_hash.clone())
    );
    assert_eq!(
        apply(&store, whole(Completion::LocalPost)).await,
        Ok(Outcome::Existing)
    );
    assert!(
        rows::<ObligationRow>(&store)
            .await
            .iter()
            .all(|row| row.record_hash != a.record_hash),
        "nothing is owed"
    );
}

pub(crate) async fn a_record_takes_the_next_place_of_the_chain_and_no_other<S: Store>() {
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
    let a = record(HEAD, "a", OTHER, "post 1");
    let whole = |ordinal, number| {
        T(ApplyRecord {
            record: a.clone(),
            ordinal,
            evidence: both(&a, &[LOCAL, OTHER]),
            completion: Completion::Delivery(delivery(&a, number, "a")),
        })
    };
    assert!(conflict(apply(&store, whole(0, 1)).await), "the place of GENESIS");
    assert!(conflict(apply(&store, whole(2, 1)).await), "beyond the end");
    assert!(
        conflict(apply(&store, whole(1, 7)).await),
        "another number than the next"
    );
    applied(&store, whole(1, 1)).await;
}

// CONV-M03
pub(crate) async fn a_delivery_is_acknowledged_by_its_own_token_once<S: Store>() {
    let store = store::<S>().await;
    let acknowledge = |record: &str, token: &str| {
        T(AcknowledgeDelivery {
            conversation_id: CONVERSATION.to_owned(),
            record_hash: record.to_owned(),
            delivery_token: token.to_owned(),
        })
    };
    assert!(conflict(
        apply(&store, acknowledge("record of genesis", "dlv_9")).await
    ));
    assert!(invalid(
        apply(&store, acknowledge("record of nothing", "dlv_0")).await
    ));
    applied(&store, acknowledge("record of genesis", "dlv_0")).await;
    assert_eq!(
        apply(&store, acknowledge("record of genesis", "dlv_0")).await,
        Ok(Outcome::Existing)
    );
}
