use conclave_conversation::certificates::{
    CertificateError, CertificateRule, EvidenceError, EvidenceMemory, Merge, SignerMap, Subject,
    VerifiedEvidence, WrongSubject, quorum, verify_certificate, verify_evidence,
};
use conclave_conversation::test_support::{Agent, Conversation, history};
use conclave_conversation::values::*;
use conclave_harness::identifiers::MessageId;
use conclave_harness::signed_message::{EncodedSignedMessage, SignedMessage};
use conclave_harness::wire_version::WIRE_VERSION;

const ACTION: ActionHash = ActionHash::from_bytes([1; 32]);
const RECORD: RecordHash = RecordHash::from_bytes([2; 32]);

fn messages(signers: &SignerMap) -> EvidenceMessages {
    EvidenceMessages::new(
        signers
            .iter()
            .map(|evidence| evidence.encoded().clone())
            .collect(),
    )
    .expect("not empty")
}

fn verify(
    conversation: &Conversation,
    messages: &EvidenceMessages,
    subject: Subject,
    rule: &CertificateRule,
) -> Result<SignerMap, CertificateError> {
    verify_certificate(
        messages,
        subject,
        rule,
        &conversation.membership,
        &mut EvidenceMemory::default(),
    )
}

/// Verifies an action certificate of these entries under the rule of GENESIS among two members or more.
fn verify_action(
    conversation: &Conversation,
    entries: Vec<EncodedSignedMessage>,
    rule: &CertificateRule,
) -> Result<SignerMap, CertificateError> {
    verify(
        conversation,
        &EvidenceMessages::new(entries).expect("not empty"),
        Subject::Action(ACTION),
        rule,
    )
}

fn encoded(signers: &SignerMap) -> Vec<EncodedSignedMessage> {
    signers
        .iter()
        .map(|evidence| evidence.encoded().clone())
        .collect()
}

fn post_of(conversation: &Conversation, author: usize) -> CertificateRule {
    CertificateRule::PostAction {
        author: conversation.agent(author).id(),
    }
}

// CONV-C01
#[test]
fn a_durability_certificate_needs_a_quorum_of_votes() {
    for (members, needed) in [(2, 2), (3, 3), (4, 3), (10, 7)] {
        let conversation = Conversation::new(members);
        let full = conversation.durability_votes(0..needed, RECORD);
        let verified = verify(
            &conversation,
            &messages(&full),
            full.subject(),
            &CertificateRule::Durability,
        );
        assert_eq!(verified.as_ref(), Ok(&full));
        let short = conversation.durability_votes(0..needed - 1, RECORD);
        let refused = verify(
            &conversation,
            &messages(&short),
            full.subject(),
            &CertificateRule::Durability,
        );
        assert_eq!(refused, Err(CertificateError::Incomplete { entries: needed - 1 }));
    }
}

// CONV-C02
#[test]
fn every_certificate_completes_from_its_threshold_to_all_members_for_every_size() {
    let conversation = Conversation::new(32);
    let body = conversation.reanchor(AnchorHash::from_bytes([1; 32]), RECORD, 1);
    let author = conversation.agent(0).id();
    let complete = |signers: &SignerMap, rule: CertificateRule, needed: usize, members: usize| {
        let expected = (needed..=members).contains(&signers.len());
        assert_eq!(
            signers.satisfies(&rule, members),
            expected,
            "{rule:?}: {} of {members}",
            signers.len()
        );
    };
    let mut actions = SignerMap::new(Subject::Action(ACTION));
    let mut records = SignerMap::new(conversation.durability_vote(0, RECORD).subject());
    let mut reanchors = SignerMap::new(Subject::Reanchor(body.hash()));
    for signer in 0..=32 {
        for members in 2..=32 {
            complete(&actions, CertificateRule::GenesisAction, members, members);
            complete(
                &actions,
                CertificateRule::PostAction { author },
                quorum(members),
                members,
            );
            complete(&records, CertificateRule::Durability, quorum(members), members);
            complete(&reanchors, CertificateRule::Reanchor, quorum(members), members);
        }
        if signer < 32 {
            actions
                .merge(conversation.action_signature(signer, ACTION))
                .unwrap();
            records
                .merge(conversation.durability_vote(signer, RECORD))
                .unwrap();
            reanchors
                .merge(conversation.reanchor_vote(signer, &body))
                .unwrap();
        }
    }
}

// CONV-C03
#[test]
fn genesis_needs_every_member() {
    let conversation = Conversation::new(4);
    let rule = CertificateRule::GenesisAction;
    let three = encoded(&conversation.action_signatures(0..3, ACTION));
    assert_eq!(
        verify_action(&conversation, three, &rule),
        Err(CertificateError::Incomplete { entries: 3 })
    );
    assert!(
        verify_action(
            &conversation,
            encoded(&conversation.action_signatures(0..4, ACTION)),
            &rule
        )
        .is_ok()
    );
}

// CONV-C04
#[test]
fn a_post_needs_its_author_among_the_quorum() {
    let conversation = Conversation::new(4);
    let three = encoded(&conversation.action_signatures(0..3, ACTION));
    assert!(verify_action(&conversation, three.clone(), &post_of(&conversation, 2)).is_ok());
    let without_author = verify_action(&conversation, three, &post_of(&conversation, 3));
    assert_eq!(without_author, Err(CertificateError::Incomplete { entries: 3 }));
    let everyone = encoded(&conversation.action_signatures(0..4, ACTION));
    assert!(verify_action(&conversation, everyone, &post_of(&conversation, 3)).is_ok());
}

// CONV-C05
#[test]
fn an_action_signature_is_no_durability_vote() {
    let conversation = Conversation::new(4);
    // The hashes have the same bytes, so that only the kind tells them apart.
    let record = RecordHash::from_bytes(*ACTION.as_bytes());
    let votes = conversation.durability_votes(0..4, record);
    let mut entries = encoded(&votes);
    entries[1] = conversation.action_signature(1, ACTION).encoded().clone();
    let entries = EvidenceMessages::new(entries).unwrap();
    let refused = verify(
        &conversation,
        &entries,
        votes.subject(),
        &CertificateRule::Durability,
    );
    assert_eq!(refused, Err(CertificateError::WrongSubject { index: 1 }));

    let mut signatures = encoded(&conversation.action_signatures(0..4, ACTION));
    signatures[2] = conversation.durability_vote(2, record).encoded().clone();
    let refused = verify_action(&conversation, signatures, &CertificateRule::GenesisAction);
    assert_eq!(refused, Err(CertificateError::WrongSubject { index: 2 }));

    let mut map = votes.clone();
    assert_eq!(
        map.merge(conversation.action_signature(1, ACTION)),
        Err(WrongSubject)
    );
    assert!(!votes.satisfies(&CertificateRule::GenesisAction, 4));
    assert!(!votes.satisfies(&CertificateRule::Reanchor, 4));
}

// CONV-C06
#[test]
fn a_certificate_with_a_stranger_is_refused() {
    let conversation = Conversation::new(4);
    let stranger = Agent::new(9);
    let mut entries = encoded(&conversation.action_signatures(0..4, ACTION));
    let statement = ActionSignatureStatement {
        sharness_version: WIRE_VERSION,
        kind: ActionSignatureKind,
        signer_agent_id: stranger.id(),
        action_hash: ACTION,
    };
    entries[3] = stranger.sign(statement).encoded().clone();
    entries.sort_by_key(EncodedSignedMessage::sender);
    let index = entries
        .iter()
        .position(|entry| entry.sender() == stranger.id())
        .unwrap();
    let refused = verify_action(&conversation, entries, &post_of(&conversation, 0));
    assert_eq!(
        refused,
        Err(CertificateError::Evidence {
            index,
            source: EvidenceError::NotAMember
        })
    );
}

// CONV-C06
#[test]
fn a_certificate_with_a_repeated_signer_or_out_of_order_is_refused() {
    let conversation = Conversation::new(4);
    let signed = encoded(&conversation.action_signatures(0..4, ACTION));
    let mut repeated = signed.clone();
    repeated[2] = repeated[1].clone();
    let rule = post_of(&conversation, 0);
    let refused = Err(CertificateError::OutOfOrder { index: 2 });
    assert_eq!(verify_action(&conversation, repeated, &rule), refused);
    let mut swapped = signed;
    swapped.swap(1, 2);
    assert_eq!(verify_action(&conversation, swapped, &rule), refused);
}

// CONV-C06
#[test]
fn a_certificate_about_another_target_is_refused() {
    let conversation = Conversation::new(4);
    let other = ActionHash::from_bytes([7; 32]);
    let refused = verify_action(
        &conversation,
        encoded(&conversation.action_signatures(0..4, other)),
        &CertificateRule::GenesisAction,
    );
    assert_eq!(refused, Err(CertificateError::WrongSubject { index: 0 }));
}

/// Agent 0's signature on the action, in a message of its own making.
fn odd_message(conversation: &Conversation, change: impl FnOnce(&mut OddMessage)) -> EncodedSignedMessage {
    let agent = conversation.agent(0);
    let statement = conversation.action_signature(0, ACTION).statement().clone();
    let mut odd = OddMessage {
        recipients: vec![0],
        message_id: statement.evidence_message_id(),
        body: statement.encode(),
    };
    change(&mut odd);
    let recipients: Vec<_> = odd
        .recipients
        .iter()
        .map(|index| conversation.agent(*index).id())
        .collect();
    SignedMessage::sign(
        &agent.card,
        &agent.key,
        &recipients,
        odd.message_id,
        &odd.body,
        WIRE_VERSION,
    )
    .unwrap()
    .into_encoded()
}

struct OddMessage {
    recipients: Vec<usize>,
    message_id: MessageId,
    body: Vec<u8>,
}

// CONV-C06
#[test]
fn evidence_is_refused_unless_it_is_the_one_message_its_signer_may_make() {
    let conversation = Conversation::new(4);
    let check = |message: &EncodedSignedMessage| {
        verify_evidence(message, &conversation.membership, &mut EvidenceMemory::default())
    };
    let proper = odd_message(&conversation, |_| {});
    assert_eq!(check(&proper), Ok(conversation.action_signature(0, ACTION)));

    let other_id = odd_message(&conversation, |odd| {
        odd.message_id = MessageId::from_bytes([5; 16])
    });
    assert_eq!(check(&other_id), Err(EvidenceError::WrongMessageId));
    let to_another = odd_message(&conversation, |odd| odd.recipients = vec![1]);
    assert_eq!(check(&to_another), Err(EvidenceError::NotToItself));
    let to_two = odd_message(&conversation, |odd| odd.recipients = vec![0, 1]);
    assert_eq!(check(&to_two), Err(EvidenceError::NotToItself));
    let foreign = conversation.action_signature(1, ACTION).statement().clone();
    let of_another = odd_message(&conversation, |odd| {
        odd.message_id = foreign.evidence_message_id();
        odd.body = foreign.encode();
    });
    assert_eq!(check(&of_another), Err(EvidenceError::ForeignSigner));
    let no_statement = odd_message(&conversation, |odd| odd.body = b"{}".to_vec());
    assert!(matches!(check(&no_statement), Err(EvidenceError::NoStatement(_))));

    let signed = serde_json::to_value(&proper).unwrap();
    let mut forged = serde_json::to_value(
        conversation
            .action_signature(0, ActionHash::from_bytes([8; 32]))
            .encoded(),
    )
    .unwrap();
    forged["payload"] = signed["payload"].clone();
    let forged =
        EncodedSignedMessage::from_canonical_bytes(&conclave_harness::canonical_json::encode(&forged))
            .unwrap();
    assert_eq!(check(&forged), Err(EvidenceError::WrongSignature));
}

#[test]
fn a_reanchor_vote_whose_hash_is_not_of_its_body_is_no_evidence() {
    let conversation = Conversation::new(4);
    let body = conversation.reanchor(AnchorHash::from_bytes([1; 32]), RECORD, 1);
    let vote = conversation.agent(0).sign(ReanchorVoteStatement {
        sharness_version: WIRE_VERSION,
        kind: ReanchorVoteKind,
        signer_agent_id: conversation.agent(0).id(),
        anchor_hash: AnchorHash::from_bytes([2; 32]),
        reanchor: body,
    });
    let refused = verify_evidence(
        vote.encoded(),
        &conversation.membership,
        &mut EvidenceMemory::default(),
    );
    assert_eq!(refused, Err(EvidenceError::WrongAnchorHash));
}

// CONV-C07
#[test]
fn a_reanchor_certificate_needs_a_quorum() {
    for members in [2, 3, 4, 7] {
        let conversation = Conversation::new(members);
        let body = conversation.reanchor(AnchorHash::from_bytes([1; 32]), RECORD, 1);
        let subject = Subject::Reanchor(body.hash());
        let needed = quorum(members);
        let full = conversation.reanchor_votes(0..needed, &body);
        assert!(
            verify(
                &conversation,
                &messages(&full),
                subject,
                &CertificateRule::Reanchor
            )
            .is_ok()
        );
        let short = conversation.reanchor_votes(0..needed - 1, &body);
        assert!(
            verify(
                &conversation,
                &messages(&short),
                subject,
                &CertificateRule::Reanchor
            )
            .is_err()
        );
    }
}

// CONV-C08
#[test]
fn more_entries_than_members_are_refused() {
    let larger = Conversation::new(5);
    let entries = encoded(&larger.action_signatures(0..5, ACTION));
    let smaller = Conversation::new(4);
    let refused = verify_action(&smaller, entries, &CertificateRule::GenesisAction);
    assert_eq!(
        refused,
        Err(CertificateError::TooMany {
            entries: 5,
            members: 4
        })
    );

    let one = larger.action_signature(0, ACTION).encoded().clone();
    assert!(EvidenceMessages::new(vec![one.clone(); 32]).is_some());
    assert!(EvidenceMessages::new(vec![one; 33]).is_none());
    assert!(EvidenceMessages::new(Vec::new()).is_none());
}

#[test]
fn the_first_statement_of_a_signer_stays() {
    let conversation = Conversation::new(4);
    let mut signers = conversation.action_signatures(0..1, ACTION);
    assert_eq!(
        signers.merge(conversation.action_signature(0, ACTION)),
        Ok(Merge::Existing)
    );
    assert_eq!(
        signers.merge(conversation.action_signature(1, ACTION)),
        Ok(Merge::Added)
    );
    let mut other_version = conversation.action_signature(0, ACTION).statement().clone();
    if let EvidenceStatement::ActionSignature(statement) = &mut other_version {
        statement.sharness_version = conclave_conversation::test_support::SECOND_VERSION;
    }
    let different = conversation.agent(0).sign(other_version);
    assert_eq!(signers.merge(different.clone()), Ok(Merge::Different));
    assert_ne!(signers.get(&conversation.agent(0).id()), Some(&different));
    assert_eq!(signers.len(), 2);
}

#[test]
fn a_remembered_message_gives_the_same_evidence_and_does_not_vouch_for_another() {
    let conversation = Conversation::new(4);
    let mut memory = EvidenceMemory::default();
    let evidence = conversation.action_signature(0, ACTION);
    for _ in 0..2 {
        let verified = verify_evidence(evidence.encoded(), &conversation.membership, &mut memory);
        assert_eq!(verified.as_ref(), Ok(&evidence));
        assert_eq!(memory.len(), 1);
    }
    // The same agent id under another card is another agent to the memory.
    let impostors = Conversation::of(
        (0..4)
            .map(|number| Agent::named(number, &format!("other-{number}"), WIRE_VERSION))
            .collect(),
    );
    assert_eq!(
        impostors.membership.agent_ids(),
        conversation.membership.agent_ids()
    );
    let refused = verify_evidence(evidence.encoded(), &impostors.membership, &mut memory);
    assert_eq!(refused, Err(EvidenceError::WrongSignature));
}

#[test]
fn only_its_own_agent_signs_a_statement() {
    let conversation = Conversation::new(2);
    let statement = conversation.action_signature(0, ACTION).statement().clone();
    let other = conversation.agent(1);
    assert_eq!(
        VerifiedEvidence::sign(statement.clone(), &other.card, &other.key),
        None
    );
    assert_eq!(
        VerifiedEvidence::sign(statement.clone(), &conversation.agent(0).card, &other.key),
        None
    );
    let again = conversation.agent(0).sign(statement.clone());
    assert_eq!(
        again,
        conversation.agent(0).sign(statement),
        "signing is deterministic"
    );
}

#[test]
fn a_certificate_assembled_from_a_map_reads_back_as_the_map() {
    let conversation = Conversation::new(7);
    let signers = conversation.action_signatures([6, 0, 3, 1, 2], ACTION);
    let certificate = ActionCertificate::assemble(WIRE_VERSION, &signers).unwrap();
    let certificate = ActionCertificate::decode_over(&history(), &certificate.encode()).unwrap();
    let read = verify(
        &conversation,
        &certificate.signatures,
        Subject::Action(ACTION),
        &post_of(&conversation, 3),
    );
    assert_eq!(read, Ok(signers.clone()));
    assert_eq!(DurabilityCertificate::assemble(WIRE_VERSION, &signers), None);
    assert_eq!(ReanchorCertificate::assemble(WIRE_VERSION, &signers), None);
    assert_eq!(
        ActionCertificate::assemble(WIRE_VERSION, &SignerMap::new(Subject::Action(ACTION))),
        None
    );
}
