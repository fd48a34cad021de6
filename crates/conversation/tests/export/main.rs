//! A history in a file, verified with nothing but the Registry's key.

use std::sync::LazyLock;

use conclave_conversation::export::{
    EXPORT_LINE_BYTES_MAX, ExportBegin, ExportError, ExportLine, ExportProblem, ExportVerifier,
};
use conclave_conversation::membership::MembershipError;
use conclave_conversation::test_support::{Agent, Conversation, history, registry};
use conclave_conversation::values::{ClosedValue, RouterAnchor};
use conclave_harness::{PublicJwk, PublicKey};
use proptest::prelude::*;

/// The lines of a history: members, GENESIS, a post, a re-anchor, a post under it.
fn lines_of(conversation: &Conversation) -> Vec<Vec<u8>> {
    let genesis = conversation.certified_genesis(0, "hello");
    let anchor = conversation.genesis_anchor();
    let second = conversation.post(
        conversation.intent(1, "again"),
        *genesis.record().hash(),
        anchor.hash(),
    );
    let second = conversation.certified(second, anchor.clone());
    let head = *second.record().hash();
    let reanchor = conversation.completed_reanchor(conversation.reanchor(anchor.hash(), head, 1));
    let third = conversation.post(conversation.intent(0, "elsewhere"), head, *reanchor.anchor_hash());
    let third = conversation.certified(third, RouterAnchor::from(reanchor.value().clone()));
    vec![
        conversation.membership.descriptor().encode(),
        genesis.to_value().encode(),
        second.to_value().encode(),
        reanchor.value().encode(),
        third.to_value().encode(),
    ]
}

static LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| lines_of(&Conversation::new(2)));

fn file(lines: &[Vec<u8>]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|line| [line, &b"\n"[..]].concat())
        .collect()
}

/// How many records and re-anchors a file holds.
fn verify_under(key: PublicKey, begin: ExportBegin, file: &[u8]) -> Result<(usize, usize), ExportError> {
    let mut verifier = ExportVerifier::new(key, history(), begin);
    let mut parts: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
    let rest = parts.pop().unwrap_or_default();
    let mut found = (0, 0);
    for part in parts {
        match verifier.line(part)? {
            ExportLine::Membership => {}
            ExportLine::Record(_) => found.0 += 1,
            ExportLine::Reanchor(_) => found.1 += 1,
        }
    }
    verifier.end(rest)?;
    Ok(found)
}

fn verify(file: &[u8]) -> Result<(usize, usize), ExportError> {
    verify_under(registry(), ExportBegin::Genesis, file)
}

fn refused(file: &[u8]) -> (u64, ExportProblem) {
    let error = verify(file).unwrap_err();
    (error.line, error.problem)
}

/// The lines at these places.
fn picked(places: &[usize]) -> Vec<u8> {
    file(
        &places
            .iter()
            .map(|place| LINES[*place].clone())
            .collect::<Vec<_>>(),
    )
}

#[test]
fn a_whole_history_verifies_and_every_line_says_what_it_is() {
    assert_eq!(verify(&file(&LINES)), Ok((3, 1)));
    let mut verifier = ExportVerifier::new(registry(), history(), ExportBegin::Genesis);
    for (place, line) in LINES.iter().enumerate() {
        let taken = verifier.line(line).unwrap();
        assert_eq!(matches!(taken, ExportLine::Membership), place == 0);
        assert_eq!(matches!(taken, ExportLine::Reanchor(_)), place == 3);
        if let ExportLine::Record(record) = taken {
            assert_eq!(record.to_value().encode(), *line);
            assert_eq!(record.signatures().len(), 2);
            assert_eq!(verifier.position(), Some(&record.position_after()));
        }
    }
    assert_eq!(verifier.membership().unwrap().len(), 2);
}

/// What was written when the format was decided. The tests of the package read these files, too.
static KEPT: &[u8] = include_bytes!("history.jsonl");
static KEPT_KEY: &[u8] = include_bytes!("registry.json");

#[test]
fn the_kept_export_verifies_and_is_what_is_written_now() {
    let key = PublicJwk::from_canonical_bytes(KEPT_KEY.trim_ascii()).unwrap();
    assert_eq!(
        verify_under(key.public_key(), ExportBegin::Genesis, KEPT),
        Ok((3, 1))
    );
    assert!(KEPT == file(&lines_of(&Conversation::new(4))));
}

#[test]
fn an_empty_conversation_is_its_members_alone() {
    assert_eq!(verify(&picked(&[0])), Ok((0, 0)));
}

#[test]
fn a_file_cut_between_lines_is_a_beginning_and_one_cut_within_a_line_is_refused() {
    for (lines, holds) in [(2, (1, 0)), (3, (2, 0)), (4, (2, 1)), (5, (3, 1))] {
        assert_eq!(verify(&file(&LINES[..lines])), Ok(holds));
    }
    assert_eq!(refused(b""), (1, ExportProblem::Empty));
    let whole = file(&LINES);
    assert_eq!(
        refused(&whole[..whole.len() - 1]),
        (5, ExportProblem::EndsWithinLine)
    );
    assert_eq!(
        refused(&whole[..LINES[0].len() + 20]),
        (2, ExportProblem::EndsWithinLine)
    );
}

#[test]
fn a_line_left_out_repeated_or_moved_is_named() {
    for (places, line) in [
        (&[0, 2, 3, 4][..], 2),
        (&[0, 1, 3, 4], 3),
        (&[0, 1, 2, 4], 4),
        (&[0, 1, 1, 2], 3),
        (&[0, 1, 2, 3, 3], 5),
        (&[0, 1, 2, 4, 3], 4),
        (&[0, 3], 2),
    ] {
        assert_eq!(
            refused(&picked(places)),
            (line, ExportProblem::OutOfOrder),
            "{places:?}"
        );
    }
    assert!(matches!(
        refused(&picked(&[1, 0])),
        (1, ExportProblem::Membership(_))
    ));
    assert!(matches!(refused(&picked(&[0, 0])), (2, ExportProblem::Item(_))));
}

#[test]
fn nothing_verifies_under_another_registrys_key() {
    let stranger = Agent::new(7).key.public_key();
    let error = verify_under(stranger, ExportBegin::Genesis, &file(&LINES)).unwrap_err();
    assert_eq!(
        (error.line, error.problem),
        (1, MembershipError::Card { index: 0 }.into())
    );
}

#[test]
fn a_record_of_other_members_is_refused() {
    let others = lines_of(&Conversation::new(3));
    let mixed = file(&[LINES[0].clone(), others[1].clone()]);
    assert!(matches!(refused(&mixed), (2, ExportProblem::Untrue(_))));
}

#[test]
fn an_excerpt_verifies_only_for_whoever_asks_for_one() {
    for places in [&[0, 2][..], &[0, 2, 3, 4], &[0, 3, 4], &[0, 4]] {
        let excerpt = picked(places);
        assert_eq!(refused(&excerpt), (2, ExportProblem::OutOfOrder));
        assert!(verify_under(registry(), ExportBegin::Anywhere, &excerpt).is_ok());
    }
    // Within it, everything follows.
    let gap = picked(&[0, 1, 4]);
    assert!(verify_under(registry(), ExportBegin::Anywhere, &gap).is_err());
}

#[test]
fn after_a_line_that_is_refused_no_other_is_taken() {
    let mut verifier = ExportVerifier::new(registry(), history(), ExportBegin::Genesis);
    verifier.line(&LINES[0]).unwrap();
    assert_eq!(
        verifier.line(&LINES[2]).unwrap_err().problem,
        ExportProblem::OutOfOrder
    );
    let after = verifier.line(&LINES[1]).unwrap_err();
    assert_eq!((after.line, after.problem), (2, ExportProblem::Refused));
    assert_eq!(verifier.end(b"").unwrap_err().problem, ExportProblem::Refused);
}

#[test]
fn a_line_longer_than_any_value_is_not_looked_into() {
    let mut verifier = ExportVerifier::new(registry(), history(), ExportBegin::Genesis);
    let long = vec![b'['; EXPORT_LINE_BYTES_MAX + 1];
    assert_eq!(verifier.line(&long).unwrap_err().problem, ExportProblem::TooLong);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn no_byte_of_an_export_can_change(place: prop::sample::Index, other in 1..=255_u8) {
        let mut bytes = file(&LINES);
        let place = place.index(bytes.len());
        bytes[place] ^= other;
        prop_assert!(verify(&bytes).is_err(), "byte {}", place);
    }

    #[test]
    fn any_line_after_any_beginning_is_taken_or_refused(after in 0..5_usize, line in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [file(&LINES[..after]), line, b"\n".to_vec()].concat();
        prop_assert!(verify(&bytes).is_err());
    }
}
