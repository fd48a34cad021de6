//! Identity, first posts, foundations: what a conversation begins with, and an empty one begins again with.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::Store;
use crate::rows::*;

pub(crate) async fn an_identity_is_bound_once<S: Store>() {
    let store = S::fresh().await;
    applied(&store, T(identity(LOCAL))).await;
    assert_eq!(apply(&store, T(identity(LOCAL))).await, Ok(Outcome::Existing));
    assert!(conflict(apply(&store, T(identity(OTHER))).await));
}

// CONV-G03
pub(crate) async fn a_first_post_and_its_foundation_are_one_transition_and_a_competing_foundation_a_conflict<
    S: Store,
>() {
    let store = S::fresh().await;
    let first = BindPostIntent {
        foundation: Some(foundation("members")),
        intent: intent("post 1", 0),
    };
    assert!(
        invalid(apply(&store, T(first.clone())).await),
        "without an identity"
    );
    applied(&store, T(identity(LOCAL))).await;
    let homeless = BindPostIntent {
        foundation: None,
        ..first.clone()
    };
    assert!(invalid(apply(&store, T(homeless)).await), "without a foundation");
    applied(&store, T(first.clone())).await;
    let state: Vec<ConversationStateRow> = rows(&store).await;
    assert_eq!((state.len(), state[0].head_ordinal), (1, -1));
    assert_eq!(apply(&store, T(first.clone())).await, Ok(Outcome::Existing));
    let competing = BindPostIntent {
        foundation: Some(foundation("others")),
        ..first.clone()
    };
    assert!(conflict(apply(&store, T(competing)).await));
    assert_eq!(rows::<MembershipRow>(&store).await.len(), 1);
    let mut changed = first;
    changed.intent.canonical_intent = "another content".to_owned();
    assert!(conflict(apply(&store, T(changed)).await));
    let foreign = PostIntentRow {
        author_agent_id: OTHER.to_owned(),
        ..intent("post 2", 1)
    };
    assert!(invalid(
        apply(
            &store,
            T(BindPostIntent {
                foundation: None,
                intent: foreign
            })
        )
        .await
    ));
}

// CONV-G04
pub(crate) async fn a_genesis_lock_and_its_foundation_are_one_transition_and_a_competing_genesis_a_conflict<
    S: Store,
>() {
    let store = S::fresh().await;
    applied(&store, T(identity(LOCAL))).await;
    let genesis = LockGenesis {
        foundation: foundation("members"),
        lock: lock(None, "genesis"),
    };
    applied(&store, T(genesis.clone())).await;
    assert_eq!(apply(&store, T(genesis)).await, Ok(Outcome::Existing));
    let competing = LockGenesis {
        foundation: foundation("members"),
        lock: lock(None, "another"),
    };
    assert!(conflict(apply(&store, T(competing)).await));
    let elsewhere = LockGenesis {
        foundation: foundation("others"),
        lock: lock(None, "genesis"),
    };
    assert!(conflict(apply(&store, T(elsewhere)).await));
    assert_eq!(rows::<ProposalLockRow>(&store).await, [lock(None, "genesis")]);
}

// CONV-G13
pub(crate) async fn an_empty_conversation_is_restarted_with_its_posts_and_one_with_a_record_is_not<
    S: Store,
>() {
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
    let store = S::fresh().await;
    applied(&store, T(identity(LOCAL))).await;
    applied(
        &store,
        T(BindPostIntent {
            foundation: Some(foundation("members")),
            intent: intent("post 0", 0),
        }),
    )
    .await;
    applied(&store, locking(None, "genesis")).await;
    let genesis = record(None, "genesis", LOCAL, "post 0");
    applied(&store, staging(&genesis, 0)).await;
    for row in both(&genesis, &[OTHER]) {
        applied(
            &store,
            T(MergeEvidence {
                evidence: row,
                previous_record_hash: None,
            }),
        )
        .await;
    }
    applied(&store, restart("anc_2")).await;
    assert_eq!(apply(&store, restart("anc_2")).await, Ok(Outcome::Existing));
    let anchors: Vec<AnchorRow> = rows(&store).await;
    assert_eq!((anchors.len(), anchors[0].anchor_hash.as_str()), (1, "anc_2"));
    assert_eq!(
        rows::<ConversationStateRow>(&store).await[0].current_anchor_hash,
        "anc_2"
    );
    assert_eq!(rows::<PostIntentRow>(&store).await, [intent("post 0", 0)]);
    let locks: Vec<ProposalLockRow> = rows(&store).await;
    let staged: Vec<StagedRecordRow> = rows(&store).await;
    let obligations: Vec<ObligationRow> = rows(&store).await;
    let evidence: Vec<EvidenceRow> = rows(&store).await;
    let counts = (locks.len(), staged.len(), obligations.len(), evidence.len());
    assert_eq!(counts, (0, 0, 0, 0));

    assert!(conflict(
        apply(&crate::rows::store::<S>().await, restart("anc_2")).await
    ));
}
