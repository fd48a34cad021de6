//! A whole log of identity updates, each admitted after those that were: structure, signatures, state.

use bytes::Bytes;
use conclave_identity::{
    Candidate, HandleOwner, HandlePolicy, StateMemo, Surroundings, WalletQuestion, WalletVerdict,
    history::{History, HistoryEntry},
};
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, PublishRequest, client_envelope::Payload};
use prost::Message as _;

const MAX_IDENTITY_ENTRIES: u32 = 256;
/// Later than any claim in the log, by more than seven days.
const NOW_NS: u64 = 1 << 60;

/// The bytes are a PublishRequest; its identity updates are the log. A chain accepts every second signature.
pub fn run(data: &[u8]) {
    let Ok(request) = PublishRequest::decode(data) else {
        return;
    };
    let verdicts = |question: &WalletQuestion| {
        if question.block_number.is_multiple_of(2) {
            WalletVerdict::Valid
        } else {
            WalletVerdict::Unavailable
        }
    };
    let handles = HandlePolicy::default();
    let mut memo = StateMemo::new(1 << 20);
    let mut history = History::default();
    let mut entries: Vec<HistoryEntry> = Vec::new();
    for envelope in &request.envelopes {
        let Some(Payload::IdentityUpdate(update)) = &envelope.payload else {
            continue;
        };
        let message_hash = [u8::try_from(entries.len()).unwrap_or(u8::MAX); 32];
        let Ok(candidate) = Candidate::begin(update, message_hash, entries.len(), MAX_IDENTITY_ENTRIES)
        else {
            continue;
        };
        let surroundings = Surroundings {
            verdicts: &verdicts,
            handles: &handles,
            handle_owner: HandleOwner::Nobody,
            now_ns: NOW_NS,
        };
        let Ok(validated) = candidate.admit(&history, &surroundings, &mut memo) else {
            continue;
        };
        let stored = ClientEnvelope {
            payload: Some(Payload::IdentityUpdate(update.clone())),
        };
        entries.push(HistoryEntry {
            message_hash,
            server_ns: 0,
            stored: Bytes::from(stored.encode_to_vec()),
        });
        // What was admitted replays to the same state, whether it is remembered or not.
        let newest = &entries[entries.len() - 1..];
        history
            .extend(newest, &mut memo)
            .expect("an admitted update applies");
        let mut replayed = History::default();
        replayed
            .extend(&entries, &mut StateMemo::new(0))
            .expect("an admitted log replays");
        assert_eq!(replayed.state(), Some(&*validated.state));
        assert_eq!(history.state(), replayed.state());
    }
}
