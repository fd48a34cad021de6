//! Locks, their signatures, and what supersedes them.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::Store;
use crate::rows::*;

// CONV-D04
pub(crate) async fn a_predecessor_is_locked_by_one_action<S: Store>() {
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
    assert_eq!(apply(&store, locking(HEAD, "a")).await, Ok(Outcome::Existing));
    assert!(conflict(apply(&store, locking(HEAD, "b")).await));
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
pub(crate) async fn a_superseded_lock_goes_with_its_signatures_and_brings_the_whole_certificate<S: Store>() {
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
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
        )
        .await;
    }
    let certificate: Vec<_> = ["agt_x", "agt_y", OTHER]
        .map(|signer| evidence(EvidenceKind::Action, "b", signer))
        .to_vec();
    let mut mixed = certificate.clone();
    mixed[1] = evidence(EvidenceKind::Action, "a", "agt_y");
    assert!(invalid(apply(&store, T(supersede(mixed))).await));
    let mut votes = certificate.clone();
    votes[1].evidence_kind = EvidenceKind::Durability;
    assert!(invalid(apply(&store, T(supersede(votes))).await));
    assert!(invalid(apply(&store, T(supersede(Vec::new()))).await));
    assert_eq!(rows::<ProposalLockRow>(&store).await[1], lock(HEAD, "a"));

    applied(&store, T(supersede(certificate.clone()))).await;
    assert_eq!(rows::<ProposalLockRow>(&store).await[1], lock(HEAD, "b"));
    let left: Vec<EvidenceRow> = rows(&store).await;
    assert!(left.iter().all(|row| row.subject_id != "a"));
    assert_eq!(left.iter().filter(|row| row.subject_id == "b").count(), 3);
    // Whatever happens next, the own signature on the second action has no place: it was not in the certificate, and the
    // endpoint that finds this store finds the certificate complete.
    assert!(
        left.iter()
            .all(|row| row.subject_id != "b" || row.evidence_key != LOCAL)
    );
    assert_eq!(
        apply(&store, T(supersede(certificate))).await,
        Ok(Outcome::Existing)
    );
}

// CONV-D19, CONV-D22
pub(crate) async fn neither_a_staged_action_nor_a_genesis_loses_its_lock<S: Store>() {
    let store = store::<S>().await;
    applied(&store, locking(HEAD, "a")).await;
    let staged = record(HEAD, "a", OTHER, "post 1");
    applied(&store, staging(&staged, 1)).await;
    let certificate = vec![evidence(EvidenceKind::Action, "b", OTHER)];
    assert!(conflict(apply(&store, T(supersede(certificate))).await));
    let genesis = SupersedeLock {
        superseded_action_hash: "genesis".to_owned(),
        superseded_record_hash: "record of genesis".to_owned(),
        lock: lock(None, "c"),
        certificate: vec![evidence(EvidenceKind::Action, "c", OTHER)],
    };
    assert!(invalid(apply(&store, T(genesis)).await));
}

pub(crate) async fn evidence_needs_its_subject_and_keeps_its_first_bytes<S: Store>() {
    let store = store::<S>().await;
    let previous_record_hash = HEAD.map(str::to_owned);
    let merge = |evidence| {
        T(MergeEvidence {
            evidence,
            previous_record_hash: previous_record_hash.clone(),
        })
    };
    let signature = evidence(EvidenceKind::Action, "a", LOCAL);
    assert!(
        invalid(apply(&store, merge(signature.clone())).await),
        "no lock on the action"
    );
    applied(&store, locking(HEAD, "a")).await;
    applied(&store, merge(signature.clone())).await;
    assert_eq!(
        apply(&store, merge(signature.clone())).await,
        Ok(Outcome::Existing)
    );
    let other_bytes = EvidenceRow {
        canonical_evidence: "signed otherwise".to_owned(),
        ..signature
    };
    assert!(conflict(apply(&store, merge(other_bytes)).await));
    let vote = evidence(EvidenceKind::Durability, "record of a", LOCAL);
    assert!(
        invalid(apply(&store, merge(vote.clone())).await),
        "no staged record"
    );
    let staged = record(HEAD, "a", OTHER, "post 1");
    applied(&store, staging(&staged, 1)).await;
    applied(&store, merge(vote)).await;
}
