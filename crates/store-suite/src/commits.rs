//! Batches, commits that fail, and rows that this crate did not write.

use conclave_conversation::store::transition::AttachObligation;
use conclave_conversation::store::{CommitError, Key, Outcome, Refusal, Table, Transition};

use crate::Store;
use crate::rows::*;

fn batch() -> Vec<Transition> {
    let a = record(HEAD, "a", OTHER, "post 1");
    vec![
        locking(HEAD, "a").into(),
        staging(&a, 1).into(),
        T(AttachObligation {
            record_hash: a.record_hash,
            outbound: outbound(0),
        })
        .into(),
        enqueuing(1).into(),
    ]
}

pub(crate) async fn a_batch_is_committed_whole_or_not_at_all_and_each_transition_sees_those_before_it<
    S: Store,
>() {
    let store = store::<S>().await;
    let before = store.snapshot().await;
    let mut spoilt = batch();
    spoilt.push(locking(HEAD, "b").into());
    assert!(matches!(
        store.commit(spoilt).await,
        Err(CommitError::Refused { index: 4, .. })
    ));
    assert_eq!(store.snapshot().await, before);
    assert_eq!(store.commit(batch()).await.unwrap(), [Outcome::Applied; 4]);
    assert_eq!(store.commit(batch()).await.unwrap(), [Outcome::Existing; 4]);
}

// CONV-N03
pub(crate) async fn a_commit_that_fails_writes_nothing_and_the_same_batch_can_be_committed_after_it<
    S: Store,
>() {
    let store = store::<S>().await;
    let before = store.snapshot().await;
    store.fail_next_commit();
    assert_eq!(store.commit(batch()).await, Err(CommitError::Failed));
    assert_eq!(store.snapshot().await, before);
    assert_eq!(store.commit(batch()).await.unwrap(), [Outcome::Applied; 4]);
}

pub(crate) async fn a_row_that_this_crate_did_not_write_is_corruption_and_not_a_refusal<S: Store>() {
    let store = store::<S>().await;
    let key = Key::new([CONVERSATION]);
    let row = (Table::ConversationState, key, b"{\"head\":1}".to_vec());
    store.put(vec![row]).await;
    assert!(matches!(
        apply(&store, locking(HEAD, "a")).await,
        Err(Refusal::Corrupt(_))
    ));
}
