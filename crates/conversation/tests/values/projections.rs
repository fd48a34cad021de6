use conclave_conversation::projection::Message;
use conclave_conversation::test_support::{Agent, Conversation, history};
use conclave_conversation::values::ClosedValue;
use serde_json::json;

// CONV-M07
#[test]
fn a_direct_message_is_addressed_by_its_author() {
    let conversation = Conversation::new(2);
    let record = conversation.certified_genesis(0, "hello");
    let (author, recipient) = (conversation.agent(0), conversation.agent(1));
    let message = Message::for_recipient(&record, &conversation.membership, &recipient.id()).unwrap();
    let address = format!("agent:{}", author.card.agent_name());
    let expected = json!({
        "kind": "direct",
        "postId": record.record_core().post_intent().post_id,
        "address": address,
        "sender": address,
        "content": [{ "type": "text", "text": "hello" }],
    });
    assert_eq!(serde_json::to_value(&message).unwrap(), expected);
    assert_eq!(Message::decode(&message.encode()), Ok(message));
}

// CONV-M07
#[test]
fn a_group_message_names_the_complete_group_in_order() {
    let conversation = Conversation::new(12);
    let record = conversation.certified_genesis(3, "hello");
    let mut names: Vec<String> = (0..12).map(|number| format!("agent-{number}")).collect();
    names.sort_unstable();
    let expected = json!({
        "kind": "group",
        "postId": record.record_core().post_intent().post_id,
        "address": format!("group:{}", names.join(",")),
        "sender": format!("agent:{}", conversation.agent(3).card.agent_name()),
        "content": [{ "type": "text", "text": "hello" }],
        "members": names.iter().map(|name| format!("agent:{name}")).collect::<Vec<_>>(),
    });
    for recipient in (0..12).filter(|recipient| *recipient != 3) {
        let recipient = conversation.agent(recipient).id();
        let message = Message::for_recipient(&record, &conversation.membership, &recipient).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), expected);
        assert_eq!(Message::decode_over(&history(), &message.encode()), Ok(message));
    }
}

#[test]
fn neither_the_author_nor_a_stranger_gets_a_delivery() {
    let conversation = Conversation::new(3);
    let record = conversation.certified_genesis(0, "hello");
    for nobody in [conversation.agent(0).id(), Agent::new(9).id()] {
        assert_eq!(
            Message::for_recipient(&record, &conversation.membership, &nobody),
            None
        );
    }
}
