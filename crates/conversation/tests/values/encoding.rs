use conclave_conversation::test_support::{Conversation, history};
use conclave_conversation::values::*;
use conclave_harness::canonical_json;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{at, try_tamper};

/// One of every packet and of every value nested in one, of a conversation of two.
struct Samples {
    packets: Vec<DirectPacket>,
    statements: Vec<EvidenceStatement>,
}

fn samples() -> Samples {
    let conversation = Conversation::new(2);
    let genesis = conversation.certified_genesis(0, "hello");
    let (record, anchor) = (*genesis.record().hash(), *genesis.record().anchor_hash());
    let reanchor = conversation.reanchor(anchor, record, 1);
    let completed = conversation.completed_reanchor(reanchor.clone());
    let post = conversation.post(conversation.intent(1, "again"), record, *completed.anchor_hash());
    let certified = conversation.certified(post.clone(), completed.value().clone());
    let request = conversation.catch_up_request(1, Some((record, *completed.anchor_hash())));
    let page = conversation.catch_up_page(0, request.clone(), certified.to_value().into());
    let incomplete = CatchUpIncomplete {
        sharness_version: request.sharness_version,
        kind: CatchUpIncompleteKind,
        attestation: conversation
            .attestation(0, &request, None, false)
            .encoded()
            .clone(),
        request: request.clone(),
    };
    let proposal = |action: ActionCore| ActionProposal {
        sharness_version: action.sharness_version(),
        kind: ActionProposalKind,
        action,
    };
    let reanchor_page = conversation.catch_up_page(
        0,
        conversation.catch_up_request(1, Some((record, anchor))),
        completed.value().clone().into(),
    );
    Samples {
        packets: vec![
            proposal(genesis.record_core().to_action()).into(),
            proposal(post.core().clone()).into(),
            genesis.action_certified().to_value().into(),
            certified.action_certified().to_value().into(),
            genesis.to_value().into(),
            certified.to_value().into(),
            completed.value().clone().into(),
            conversation.catch_up_request(0, None).into(),
            request.into(),
            page.into(),
            reanchor_page.into(),
            incomplete.into(),
        ],
        statements: vec![
            conversation.action_signature(0, *post.hash()).statement().clone(),
            conversation.durability_vote(0, record).statement().clone(),
            conversation.reanchor_vote(0, &reanchor).statement().clone(),
            conversation
                .attestation(0, &conversation.catch_up_request(1, None), None, false)
                .statement()
                .clone(),
        ],
    }
}

fn objects(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                objects(member, format!("{path}/{name}"), found);
            }
            found.push(path);
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(2) {
                objects(item, format!("{path}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_value_reads_back_from_its_own_bytes() {
    let samples = samples();
    for packet in samples.packets {
        let bytes = packet.encode();
        assert_eq!(
            DirectPacket::decode_over(&history(), &bytes).as_ref(),
            Ok(&packet)
        );
        assert_eq!(Plaintext::decode(&bytes), Ok(Plaintext::Packet(packet)));
    }
    for statement in samples.statements {
        assert_eq!(EvidenceStatement::decode(&statement.encode()), Ok(statement));
    }
}

// CONV-B01
#[test]
fn an_unknown_or_missing_member_is_refused_wherever_it_is() {
    for packet in samples().packets {
        let mut found = Vec::new();
        objects(&serde_json::to_value(&packet).unwrap(), String::new(), &mut found);
        for path in found {
            let with_more = try_tamper(&packet, |json| {
                at(json, &path)["unknown"] = json!(1);
            });
            assert_eq!(with_more, None, "an unknown member at {path:?}");
            let names: Vec<String> = serde_json::to_value(&packet)
                .unwrap()
                .pointer(&path)
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            for name in names {
                let with_less = try_tamper(&packet, |json| {
                    at(json, &path).as_object_mut().unwrap().remove(&name);
                });
                assert_eq!(with_less, None, "without {path}/{name}");
            }
        }
    }
}

// CONV-B01
#[test]
fn an_unknown_kind_or_version_is_refused_wherever_it_is() {
    for packet in samples().packets {
        let mut found = Vec::new();
        objects(&serde_json::to_value(&packet).unwrap(), String::new(), &mut found);
        for path in found {
            for (member, wrong) in [
                ("kind", json!("catch_up")),
                ("kind", json!(null)),
                ("sharnessVersion", json!("2026.1021.4")),
            ] {
                if serde_json::to_value(&packet)
                    .unwrap()
                    .pointer(&format!("{path}/{member}"))
                    .is_some()
                {
                    let changed = try_tamper(&packet, |json| at(json, &path)[member] = wrong.clone());
                    assert_eq!(changed, None, "{member} {wrong} at {path:?}");
                }
            }
        }
    }
    for statement in samples().statements {
        assert_eq!(try_tamper(&statement, |json| json["kind"] = json!("vote")), None);
    }
}

// CONV-B02
#[test]
fn bytes_that_are_not_the_canonical_spelling_are_refused() {
    let intent = Conversation::new(2).intent(0, "hello");
    let text = String::from_utf8(intent.encode()).unwrap();
    assert!(PostIntent::decode(text.as_bytes()).is_ok());
    let content = r#"[{"text":"hello","type":"text"}]"#;
    for (from, to) in [
        ("{\"authorAgentId\"", "{ \"authorAgentId\""),
        (
            "\"kind\":\"post_intent\"",
            "\"kind\":\"post_intent\",\"kind\":\"post_intent\"",
        ),
        ("post_intent", "post\\u005fintent"),
        ("hello", "\\ud800"),
        ("hello", "\\udc00\\ud800"),
        (content, r#"[{"type":"text","text":"hello"}]"#),
        (content, r#"[{"type":"data","value":1.0}]"#),
        (content, r#"[{"type":"data","value":1e2}]"#),
        (content, r#"[{"type":"data","value":-0}]"#),
        (content, r#"[{"type":"data","value":NaN}]"#),
        (content, r#"[{"type":"data","value":1e999}]"#),
        (content, r#"[{"type":"data","value":9007199254740993}]"#),
        (content, r#"[{"type":"data","value":{"a":1,"a":1}}]"#),
        (content, r#"[{"type":"data","value":{"b":1,"a":1}}]"#),
    ] {
        assert!(text.contains(from));
        assert!(
            PostIntent::decode(text.replace(from, to).as_bytes()).is_err(),
            "{to}"
        );
    }
    for bytes in [
        format!("{text}\n"),
        format!(" {text}"),
        format!("\u{feff}{text}"),
        format!("{text}{text}"),
    ] {
        assert!(PostIntent::decode(bytes.as_bytes()).is_err());
    }
    let mut not_utf8 = text.into_bytes();
    let place = not_utf8.iter().position(|byte| *byte == b'h').unwrap();
    not_utf8[place] = 0xff;
    assert!(PostIntent::decode(&not_utf8).is_err());
}

// CONV-B06
#[test]
fn a_post_embeds_no_descriptor_and_genesis_does_not_name_one_by_hash() {
    let conversation = Conversation::new(2);
    let genesis = conversation.certified_genesis(0, "hello");
    let post = conversation.post(
        conversation.intent(1, "again"),
        *genesis.record().hash(),
        *genesis.record().anchor_hash(),
    );
    let post = conversation.certified(post, conversation.genesis_anchor());
    let descriptor = serde_json::to_value(conversation.membership.descriptor()).unwrap();
    let hash = json!(conversation.membership.hash());

    for path in ["", "/action"] {
        let embedded = try_tamper(post.record_core(), |json| {
            let object = at(json, path).as_object_mut().unwrap();
            object.remove("membershipHash");
            object.insert("membership".to_owned(), descriptor.clone());
        });
        assert_eq!(embedded, None, "POST at {path:?}");
        let by_hash = try_tamper(genesis.record_core(), |json| {
            let object = at(json, path).as_object_mut().unwrap();
            object.remove("membership");
            object.insert("membershipHash".to_owned(), hash.clone());
        });
        assert_eq!(by_hash, None, "GENESIS at {path:?}");
    }
}

#[test]
fn null_is_required_where_the_schema_says_null() {
    let conversation = Conversation::new(2);
    let genesis = conversation.genesis(conversation.intent(0, "hello")).into_core();
    let record = json!(RecordHash::from_bytes([1; 32]));
    assert_eq!(
        try_tamper(&genesis, |json| json["previousRecordHash"] = record),
        None
    );
    let request = conversation.catch_up_request(0, None);
    let anchor = json!(AnchorHash::from_bytes([1; 32]));
    assert_eq!(
        try_tamper(&request, |json| json["knownRecordHash"] = anchor),
        None,
        "another kind of hash"
    );
}

fn padded(bytes: usize) -> Vec<ContentPart> {
    let overhead = canonical_json::encode(&Content::text("").unwrap()).len();
    vec![ContentPart::Text {
        text: "x".repeat(bytes - overhead),
    }]
}

// CONV-B07
#[test]
fn content_takes_exactly_32768_bytes_at_most() {
    let full = Content::new(padded(32_768)).unwrap();
    assert_eq!(full.encode().len(), 32_768);
    assert_eq!(Content::decode(&full.encode()), Ok(full.clone()));
    assert_eq!(Content::new(padded(32_769)), Err(ContentError::TooLong(32_769)));
    let conversation = Conversation::new(2);
    let intent = conversation.intent_of_content(0, full);
    assert!(PostIntent::decode(&intent.encode()).is_ok());
    assert_eq!(
        try_tamper(&intent, |json| json["content"] = json!(padded(32_769))),
        None
    );
    // Escapes count as they are spelled.
    let escaped = vec![ContentPart::Text {
        text: "\u{1}".repeat(6_000),
    }];
    assert!(matches!(Content::new(escaped), Err(ContentError::TooLong(_))));
}

#[test]
fn content_has_a_part_and_nothing_but_parts() {
    assert_eq!(Content::new(Vec::new()), Err(ContentError::Empty));
    for wrong in [
        "[]",
        "{}",
        "null",
        r#"[{"type":"text"}]"#,
        r#"[{"type":"data"}]"#,
        r#"[{"text":1,"type":"text"}]"#,
        r#"[{"text":"a","type":"data"}]"#,
        r#"[{"text":"a","type":"text","value":1}]"#,
        r#"[{"text":"a","type":"html"}]"#,
        r#"["text"]"#,
        r#"[{"text":"a"}]"#,
    ] {
        assert!(Content::decode(wrong.as_bytes()).is_err(), "{wrong}");
    }
    for right in [
        r#"[{"type":"data","value":null}]"#,
        r#"[{"text":"","type":"text"}]"#,
    ] {
        assert_eq!(
            Content::decode(right.as_bytes()).unwrap().encode(),
            right.as_bytes()
        );
    }
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(0), |inner, level| {
        if level % 2 == 0 {
            json!([inner])
        } else {
            json!({ "a": inner })
        }
    })
}

/// A stack half as large as the smallest we run on, a browser's wasm stack.
const SMALL_STACK_BYTES: usize = 512 * 1024;

fn on_a_small_stack(test: fn()) {
    std::thread::Builder::new()
        .stack_size(SMALL_STACK_BYTES)
        .spawn(test)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn content_of_the_greatest_depth_travels_in_every_container() {
    on_a_small_stack(|| {
        let data = |value| vec![ContentPart::Data { value }];
        let content = Content::new(data(nested(CONTENT_DEPTH_MAX - 2))).unwrap();
        assert_eq!(
            Content::new(data(nested(CONTENT_DEPTH_MAX - 1))),
            Err(ContentError::TooDeep)
        );

        let conversation = Conversation::new(2);
        let genesis = conversation.genesis(conversation.intent_of_content(0, content.clone()));
        let certified = conversation.certified(genesis, conversation.genesis_anchor());
        let request = conversation.catch_up_request(1, None);
        let page = DirectPacket::from(conversation.catch_up_page(0, request, certified.to_value().into()));
        assert_eq!(DirectPacket::decode(&page.encode()).as_ref(), Ok(&page));

        let intent = conversation.intent_of_content(0, content);
        let deeper = try_tamper(&intent, |json| {
            json["content"][0]["value"] = nested(CONTENT_DEPTH_MAX - 1)
        });
        assert_eq!(
            deeper, None,
            "the content's own bound holds in a shallow container too"
        );
    });
}

#[test]
fn nesting_without_end_is_refused_on_a_small_stack() {
    on_a_small_stack(|| {
        for open in ["[", "{\"a\":", "[{\"type\":\"data\",\"value\":["] {
            let bytes = open.repeat(PLAINTEXT_BYTES_MAX / open.len());
            assert!(Plaintext::decode(bytes.as_bytes()).is_err());
            assert!(Content::decode(&bytes.as_bytes()[..CONTENT_BYTES_MAX]).is_err());
        }
        let deep = (0..200_000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert_eq!(
            Content::new(vec![ContentPart::Data { value: deep }]),
            Err(ContentError::TooDeep)
        );
    });
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(".{0,4}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_content_reads_back_as_itself(
        parts in proptest::collection::vec(
            prop_oneof![
                ".{0,20}".prop_map(|text| ContentPart::Text { text }),
                any_json().prop_map(|value| ContentPart::Data { value }),
            ],
            1..4,
        ),
    ) {
        let content = Content::new(parts).unwrap();
        prop_assert_eq!(Content::decode(&content.encode()).unwrap(), content.clone());
        let intent = Conversation::new(2).intent_of_content(0, content);
        prop_assert_eq!(PostIntent::decode(&intent.encode()).unwrap(), intent);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\":,a-z0-9]{0,80}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let _ = Plaintext::decode(bytes);
            let _ = Content::decode(bytes);
            let _ = EvidenceStatement::decode(bytes);
        }
    }
}
