//! Locks, their signatures, and what supersedes them.

use conclave_conversation::store::Outcome;
use conclave_conversation::store::rows::*;
use conclave_conversation::store::transition::*;

use crate::rows::*;

// CONV-D04
#[test]
fn a_predecessor_is_locked_by_one_action() {
    let store = store();
    applied(&store, locking(HEAD, "a"));
    assert_eq!(apply(&store, locking(HEAD, "a")), Ok(Outcome::Existing));
    assert!(conflict(apply(&store, locking(HEAD, "b"))));
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
    applied(&store, locking(HEAD, "a"));
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
    applied(&store, locking(HEAD, "a"));
    let staged = record(HEAD, "a", OTHER, "post 1");
    applied(&store, staging(&staged, 1));
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
    applied(&store, locking(HEAD, "a"));
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
    applied(&store, staging(&staged, 1));
    applied(&store, merge(vote));
}
