//! What an owner may read of its own store: certified history, and the proof of each post. Pure.

use conclave_conversation::address::agent_address;
use conclave_conversation::certificates::quorum;
use conclave_conversation::engine::history::{History, HistoryEntry};
use conclave_conversation::membership::Membership;
use conclave_conversation::ordered::OrderedMap;
use conclave_conversation::values::{Content, RecordCore};
use conclave_harness::{AgentId, EncodedSignedMessage};
use serde::Serialize;

/// A certified post as it crosses to JavaScript (`HistoryEntry`).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryView {
    position: u64,
    post_id: String,
    author: String,
    content: Content,
    conversation_id: String,
    membership_hash: String,
    post_intent_hash: String,
    anchor_hash: String,
    action_hash: String,
    record_hash: String,
    previous_record_hash: Option<String>,
    action_signers: Vec<SignerView>,
    durability_signers: Vec<SignerView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignerView {
    agent: String,
    agent_id: String,
    signature: String,
}

/// One thing that was checked (`Check`).
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    name: &'static str,
    passed: bool,
    detail: String,
}

/// What came of verifying a post (`Verification`).
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verification {
    valid: bool,
    checks: Vec<Check>,
}

/// The posts of a history, first to last.
pub(crate) fn entries(history: &History) -> Vec<EntryView> {
    history
        .entries
        .iter()
        .map(|entry| view(entry, &history.membership))
        .collect()
}

fn view(entry: &HistoryEntry, membership: &Membership) -> EntryView {
    let intent = entry.record_core.post_intent();
    EntryView {
        position: entry.ordinal,
        post_id: intent.post_id.to_string(),
        author: address_of(membership, &intent.author_agent_id),
        content: intent.content.clone(),
        conversation_id: intent.conversation_id.to_string(),
        membership_hash: intent.membership_hash.to_string(),
        post_intent_hash: intent.hash().to_string(),
        anchor_hash: entry.anchor_hash.to_string(),
        action_hash: entry.action_hash.to_string(),
        record_hash: entry.record_hash.to_string(),
        previous_record_hash: entry.previous_record_hash.map(|hash| hash.to_string()),
        action_signers: signers(&entry.action_signatures, membership),
        durability_signers: signers(&entry.durability_votes, membership),
    }
}

fn signers(messages: &OrderedMap<AgentId, EncodedSignedMessage>, membership: &Membership) -> Vec<SignerView> {
    messages
        .iter()
        .map(|(agent, message)| SignerView {
            agent: address_of(membership, agent),
            agent_id: agent.to_string(),
            signature: signature_of(message).unwrap_or_default(),
        })
        .collect()
}

/// The text of the one signature in the message's General JWS.
fn signature_of(message: &EncodedSignedMessage) -> Option<String> {
    let jws: serde_json::Value = serde_json::from_slice(&message.to_canonical_bytes()).ok()?;
    jws.pointer("/signatures/0/signature")?
        .as_str()
        .map(str::to_owned)
}

fn address_of(membership: &Membership, agent: &AgentId) -> String {
    membership
        .card(agent)
        .map_or_else(|| agent.to_string(), |card| agent_address(card.agent_name()))
}

/// A history that does not verify, as the outcome of verifying one of its posts.
pub(crate) fn not_verified(problem: String) -> Verification {
    verification(vec![Check {
        name: "stored history",
        passed: false,
        detail: problem,
    }])
}

/// Recomputes every hash of a post that was just read back and checks each of its signatures by itself.
///
/// The history was verified as a whole to be read at all; this says in single steps what was verified.
pub(crate) fn verify(history: &History, position: usize) -> Option<Verification> {
    let entry = history.entries.get(position)?;
    let (core, membership) = (&entry.record_core, &history.membership);
    let intent = core.post_intent();
    let action = core.to_action();
    let mut checks = vec![
        equal(
            "conversation and membership",
            intent.membership_hash,
            membership.descriptor().hash(),
        ),
        equal("post intent hash", *action.post_intent_hash(), intent.hash()),
        equal("action hash", entry.action_hash, action.hash()),
        equal("record hash", entry.record_hash, core.hash()),
    ];
    checks.push(
        match (
            core,
            position
                .checked_sub(1)
                .and_then(|before| history.entries.get(before)),
        ) {
            (RecordCore::Genesis(_), None) => Check {
                name: "predecessor",
                passed: true,
                detail: "the first post has none".to_owned(),
            },
            (RecordCore::Post(post), Some(before)) => equal(
                "predecessor",
                post.action.previous_record_hash,
                before.record_core.hash(),
            ),
            _ => Check {
                name: "predecessor",
                passed: false,
                detail: "it does not extend the post before".to_owned(),
            },
        },
    );
    let needed = match core {
        RecordCore::Genesis(_) => membership.len(),
        RecordCore::Post(_) => quorum(membership.len()),
    };
    checks.push(signatures(
        "signatures",
        &entry.action_signatures,
        needed,
        membership,
    ));
    checks.push(signatures(
        "storage votes",
        &entry.durability_votes,
        quorum(membership.len()),
        membership,
    ));
    Some(verification(checks))
}

fn verification(checks: Vec<Check>) -> Verification {
    Verification {
        valid: checks.iter().all(|check| check.passed),
        checks,
    }
}

fn equal<H: PartialEq + ToString>(name: &'static str, stated: H, computed: H) -> Check {
    let passed = stated == computed;
    let detail = if passed {
        computed.to_string()
    } else {
        format!("stated {}, computed {}", stated.to_string(), computed.to_string())
    };
    Check { name, passed, detail }
}

fn signatures(
    name: &'static str,
    messages: &OrderedMap<AgentId, EncodedSignedMessage>,
    needed: usize,
    membership: &Membership,
) -> Check {
    let is_valid = |agent: &AgentId, message: &EncodedSignedMessage| {
        membership
            .card(agent)
            .is_some_and(|card| message.verify(card, membership.history()).is_ok())
    };
    let valid = messages
        .iter()
        .filter(|(agent, message)| is_valid(agent, message))
        .count();
    Check {
        name,
        passed: valid == messages.len() && valid >= needed,
        detail: format!("{valid} of {} valid, {needed} needed", messages.len()),
    }
}
