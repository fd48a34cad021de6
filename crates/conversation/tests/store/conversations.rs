//! Identity, first posts, foundations: what a conversation begins with, and an empty one begins again with.

use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;
use conclave_conversation::store::{MemoryStore, Outcome};

use crate::rows::*;

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
    applied(&store, locking(None, "genesis"));
    let genesis = record(None, "genesis", LOCAL, "post 0");
    applied(&store, staging(&genesis, 0));
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

    assert!(conflict(apply(&crate::rows::store(), restart("anc_2"))));
}
