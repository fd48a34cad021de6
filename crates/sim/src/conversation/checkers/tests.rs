//! Histories made by hand that the checkers must refuse, and one that none refuses.

use conclave_conversation::{
    engine::{Delivery, Feed, RequestId, SentPost},
    store::{
        Transition,
        rows::{EvidenceKind, EvidenceRow, ReanchorRow, StagedRecordRow, TransportCursorRow},
        transition::{AdvanceCursor, ApplyRecord, Completion, MergeEvidence, StageReanchor},
    },
    test_support::router_instance,
    values::{ActionHash, AnchorHash, ConversationId, DeliveryToken, PostId, RecordHash},
};
use conclave_harness::MessageId;

use super::*;
use crate::conversation::{
    agents::agents,
    history::{Action, Certified, Event, Known, Place, Said},
};

const CONVERSATION: ConversationId = ConversationId::from_bytes([1; 32]);
const ANCHOR: AnchorHash = AnchorHash::from_bytes([2; 32]);

fn record(number: u8) -> RecordHash {
    RecordHash::from_bytes([number; 32])
}

fn action(number: u8) -> ActionHash {
    ActionHash::from_bytes([number; 32])
}

fn post(number: u8) -> PostId {
    PostId::from_bytes([number; 32])
}

fn place(previous: Option<u8>) -> Place {
    Place {
        conversation: CONVERSATION,
        previous: previous.map(record),
        anchor: ANCHOR,
    }
}

/// Nothing happened among some members.
fn quiet(members: usize) -> History {
    let mut history = History {
        agents: agents(members).iter().map(|agent| agent.id()).collect(),
        honest: vec![true; members],
        conversations: vec![Known {
            id: CONVERSATION,
            members: (0..members).collect(),
        }],
        ..History::default()
    };
    history.end.is_at_rest = true;
    history
}

impl History {
    /// An action and its record of one number, by a member, after another record.
    fn knows(&mut self, number: u8, author: usize, previous: Option<u8>) {
        let place = place(previous);
        let (author, post) = (self.agents[author], post(number));
        self.actions
            .insert(action(number), Action { place, author, post });
        self.records.insert(record(number), (action(number), place));
    }

    fn says(&mut self, member: usize, said: Said) {
        let id = MessageId::from_bytes([u8::try_from(self.events.len()).expect("few events"); 16]);
        let conversation = CONVERSATION;
        self.push(
            0,
            member,
            Event::Left {
                id,
                conversation,
                said,
            },
        );
    }

    fn makes_durable(&mut self, member: usize, transition: Transition) {
        self.push(0, member, Event::Durable(vec![transition]));
    }

    /// A record of one number as a member receives it whole, signed and voted for by some.
    fn applies(&mut self, member: usize, number: u8, ordinal: u64, signers: &[usize]) {
        let (record_action, at) = self.records[&record(number)];
        let known = self.actions[&record_action];
        let row = StagedRecordRow {
            conversation_id: CONVERSATION.to_string(),
            record_hash: record(number).to_string(),
            previous_record_hash: at.previous.map(|previous| previous.to_string()),
            membership_hash: String::new(),
            anchor_hash: ANCHOR.to_string(),
            action_hash: record_action.to_string(),
            author_agent_id: known.author.to_string(),
            post_id: known.post.to_string(),
            canonical_record_core: String::new(),
        };
        let signers: Vec<_> = signers.iter().map(|signer| self.agents[*signer]).collect();
        let kinds = [
            (EvidenceKind::Action, record_action.to_string()),
            (EvidenceKind::Durability, record(number).to_string()),
        ];
        let mut evidence = Vec::new();
        for (evidence_kind, subject_id) in kinds {
            evidence.extend(signers.iter().map(|signer| EvidenceRow {
                conversation_id: CONVERSATION.to_string(),
                evidence_kind,
                subject_id: subject_id.clone(),
                evidence_key: signer.to_string(),
                canonical_evidence: String::new(),
            }));
        }
        let completion = Completion::LocalPost;
        self.makes_durable(
            member,
            Transition::ApplyRecord(ApplyRecord {
                record: row,
                ordinal,
                evidence,
                completion,
            }),
        );
        self.end
            .chains
            .entry((CONVERSATION, member))
            .or_default()
            .push(Certified {
                record: record(number),
                action: record_action,
                place: at,
                author: known.author,
                post: known.post,
                text: format!("post {number}"),
                signers: signers.clone(),
                voters: signers,
            });
    }

    fn is_given(&mut self, member: usize, number: u8, token: u8, sequence: u64) {
        self.push(
            0,
            member,
            Event::Delivered(Delivery {
                delivery_token: DeliveryToken::from_bytes([token; 32]),
                delivery_sequence: sequence,
                conversation_id: CONVERSATION,
                record_hash: record(number),
                canonical_message: format!("[\"post {number}\"]"),
            }),
        );
    }
}

fn refuses(checker: Checker, history: &History) -> bool {
    !checker(history).is_empty()
}

/// Two posts by member 0 that member 1 was given.
fn good() -> History {
    let mut history = quiet(2);
    history.knows(10, 0, None);
    history.knows(11, 0, Some(10));
    for (ordinal, number) in [10, 11].into_iter().enumerate() {
        history.applies(1, number, ordinal as u64, &[0, 1]);
        history.is_given(1, number, number, ordinal as u64);
    }
    history
}

#[test]
fn a_good_history_is_accepted_by_all_that_ask_for_no_binding() {
    let history = good();
    let asked = ["post_ids"];
    for (name, checker) in ALWAYS.iter().chain(&WITHIN_F) {
        if !asked.contains(name) {
            assert_eq!(checker(&history), Vec::<String>::new(), "{name}");
        }
    }
}

#[test]
fn two_certified_successors_are_refused() {
    let mut history = good();
    history.knows(12, 1, Some(10));
    assert!(!refuses(agreement::check, &history));
    history.applies(0, 12, 1, &[0, 1]);
    assert!(refuses(agreement::check, &history));
    assert!(refuses(same_history::check, &history));
}

#[test]
fn two_successors_that_enough_members_voted_for_are_refused() {
    let mut history = good();
    history.knows(12, 1, Some(10));
    for member in 0..2 {
        for number in [11, 12] {
            let signer = history.agents[member];
            history.says(
                member,
                Said::Vote {
                    signer,
                    record: record(number),
                },
            );
        }
    }
    assert!(refuses(agreement::check, &history));
}

#[test]
fn a_record_with_too_few_votes_or_without_its_author_is_refused() {
    let mut history = quiet(4);
    history.knows(10, 0, None);
    history.applies(1, 10, 0, &[0, 1, 2, 3]);
    history.knows(11, 0, Some(10));
    history.applies(1, 11, 1, &[0, 1, 2]);
    assert!(!refuses(thresholds::check, &history));
    let mut few = quiet(4);
    few.knows(11, 0, Some(10));
    few.applies(1, 11, 1, &[0, 1]);
    assert!(refuses(thresholds::check, &few));
    let mut authorless = quiet(4);
    authorless.knows(11, 0, Some(10));
    authorless.applies(1, 11, 1, &[1, 2, 3]);
    assert!(refuses(thresholds::check, &authorless));
}

#[test]
fn what_is_sent_before_it_is_durable_is_refused() {
    let mut history = quiet(2);
    history.knows(10, 0, None);
    let signer = history.agents[1];
    history.says(
        1,
        Said::Signature {
            signer,
            action: action(10),
        },
    );
    assert!(refuses(durable_before_sent::check, &history));
}

#[test]
fn two_signatures_at_one_place_are_refused() {
    let mut history = quiet(2);
    history.knows(10, 0, None);
    history.knows(11, 1, None);
    let signer = history.agents[1];
    history.says(
        1,
        Said::Signature {
            signer,
            action: action(10),
        },
    );
    assert!(!refuses(own_votes::check, &history));
    history.says(
        1,
        Said::Signature {
            signer,
            action: action(11),
        },
    );
    assert!(refuses(own_votes::check, &history));
}

#[test]
fn a_vote_under_an_anchor_that_was_voted_away_is_refused() {
    let mut history = quiet(2);
    history.knows(11, 0, Some(10));
    let candidate = ReanchorRow {
        conversation_id: CONVERSATION.to_string(),
        anchor_hash: AnchorHash::from_bytes([9; 32]).to_string(),
        previous_anchor_hash: ANCHOR.to_string(),
        router_instance_id: router_instance(1).to_string(),
        selected_record_hash: record(10).to_string(),
        canonical_body: String::new(),
        canonical_completed_reanchor: None,
    };
    let locked = None;
    history.makes_durable(1, Transition::StageReanchor(StageReanchor { candidate, locked }));
    assert!(!refuses(own_votes::check, &history));
    let vote = EvidenceRow {
        conversation_id: CONVERSATION.to_string(),
        evidence_kind: EvidenceKind::Durability,
        subject_id: record(11).to_string(),
        evidence_key: history.agents[1].to_string(),
        canonical_evidence: String::new(),
    };
    let merge = MergeEvidence {
        evidence: vote,
        previous_record_hash: None,
    };
    history.makes_durable(1, Transition::MergeEvidence(merge));
    assert!(refuses(own_votes::check, &history));
}

#[test]
fn a_proposal_behind_the_fence_is_refused() {
    let mut history = quiet(2);
    let conversation = CONVERSATION;
    let fence = |is_fenced| Event::Fenced {
        conversation,
        is_fenced,
    };
    history.push(0, 0, fence(true));
    history.push(0, 0, fence(false));
    history.says(0, Said::Proposal(action(10)));
    assert!(!refuses(fence::check, &history));
    history.push(0, 0, fence(true));
    history.says(0, Said::Proposal(action(10)));
    assert!(refuses(fence::check, &history));
}

#[test]
fn a_delivery_that_is_missing_repeated_or_of_another_token_is_refused() {
    let mut missing = good();
    missing
        .events
        .retain(|happened| !matches!(happened.event, Event::Delivered(_)));
    assert!(refuses(deliveries::check, &missing));
    let mut repeated = good();
    repeated.is_given(1, 11, 11, 1);
    assert!(refuses(deliveries::check, &repeated));
    repeated.events.pop();
    repeated.push(0, 1, Event::Opened);
    repeated.is_given(1, 11, 11, 1);
    assert!(!refuses(deliveries::check, &repeated));
    repeated.push(0, 1, Event::Opened);
    repeated.is_given(1, 11, 12, 1);
    assert!(refuses(deliveries::check, &repeated));
}

#[test]
fn a_send_that_succeeds_without_its_record_is_refused() {
    let mut history = good();
    let sent = |number| SentPost {
        conversation_id: CONVERSATION,
        post_id: post(number),
        record_hash: record(number),
    };
    let request = RequestId(1);
    history.push(
        0,
        1,
        Event::Sent {
            request,
            result: Ok(sent(11)),
        },
    );
    assert!(!refuses(intents::check, &history));
    history.push(
        0,
        0,
        Event::Sent {
            request,
            result: Ok(sent(11)),
        },
    );
    assert!(refuses(intents::check, &history));
}

#[test]
fn a_post_that_nobody_bound_is_refused() {
    assert!(refuses(post_ids::check, &good()));
}

#[test]
fn a_message_too_many_is_refused_where_counts_are_exact() {
    let mut history = good();
    for member in 0..2 {
        let signer = history.agents[member];
        for number in [10, 11] {
            history.says(
                member,
                Said::Signature {
                    signer,
                    action: action(number),
                },
            );
            history.says(member, Said::Copy(record(number)));
            history.says(
                member,
                Said::Vote {
                    signer,
                    record: record(number),
                },
            );
        }
    }
    history.says(0, Said::Proposal(action(10)));
    history.says(0, Said::Certified(record(10)));
    history.says(0, Said::Proposal(action(11)));
    history.is_exact = true;
    history.exact_until = history.events.len();
    assert_eq!(message_counts::check(&history), Vec::<String>::new());
    history.says(1, Said::Certified(record(10)));
    history.exact_until += 1;
    assert!(refuses(message_counts::check, &history));
}

#[test]
fn a_proposal_without_its_head_or_too_often_is_refused() {
    let mut headless = good();
    headless.says(0, Said::Proposal(action(11)));
    assert!(refuses(resends::check, &headless));
    let mut often = good();
    for _ in 0..9 {
        often.says(0, Said::Proposal(action(10)));
    }
    assert!(!refuses(resends::check, &often));
    often.says(0, Said::Proposal(action(10)));
    assert!(refuses(resends::check, &often));
}

#[test]
fn what_is_unfinished_and_what_is_broken_is_refused() {
    let mut history = good();
    history
        .end
        .unfinished
        .insert(CONVERSATION, vec!["0 is down".to_owned()]);
    assert!(refuses(progress::check, &history));
    let (what, text) = ("startup", String::new());
    history.push(0, 0, Event::Broken { what, text });
    assert!(refuses(unbroken::check, &history));
}

#[test]
fn a_message_that_is_passed_over_is_refused() {
    let feed = Feed::Conversation(CONVERSATION);
    let handed = |history: &mut History, position| {
        let instance = router_instance(0);
        history.push(
            0,
            0,
            Event::Handed {
                feed,
                instance,
                position,
            },
        );
    };
    let mut history = quiet(2);
    handed(&mut history, 1);
    let cursor = TransportCursorRow {
        feed: feed.to_string(),
        router_instance_id: router_instance(0).to_string(),
        position: 1,
    };
    history.makes_durable(0, Transition::AdvanceCursor(AdvanceCursor { cursor }));
    handed(&mut history, 2);
    history.push(0, 0, Event::Crashed);
    history.push(0, 0, Event::Opened);
    handed(&mut history, 2);
    history.push(0, 0, Event::Gap(feed));
    handed(&mut history, 5);
    assert!(!refuses(cursors::check, &history));
    // Handed over, and never durable.
    history.push(0, 0, Event::Opened);
    handed(&mut history, 3);
    assert!(refuses(cursors::check, &history));
}
