//! What judging an update costs beside its cryptography: `cargo run --release -p conclave-identity --example figures`.
//!
//! Each figure is a ratio to the signatures alone, verified bare in the same run; medians of rounds in turn.

#[path = "../tests/identity/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod support;

use std::time::{Duration, Instant};

use conclave_identity::{StateMemo, inbox_id, signature::SignedText, update::Update};
use conclave_proto::xmtp::identity::associations::{IdentityUpdate, signature::Signature};
use support::{Account, Installation, Log, Signer as _, Step, update};

const ROUNDS: usize = 31;

/// An account's log of this many updates and one more: it opens the inbox, then adds an installation in each.
fn log_of(entries: usize) -> (Log, IdentityUpdate) {
    let owner = Account::new(1);
    let inbox = inbox_id::derive(&owner.identifier(), 0);
    let mut log = Log {
        max_identity_entries: u32::MAX,
        ..Log::default()
    };
    let mut updates = vec![update(&inbox, 1, &[Step::Create(&owner, 0)])];
    for seconds in 2..=u64::try_from(entries).unwrap_or(0) + 1 {
        let added = Installation::new(u8::try_from(seconds % 250).unwrap_or(0));
        let steps = [
            Step::Revoke(added.identifier(), &owner),
            Step::Add(&added, &owner),
        ];
        updates.push(update(&inbox, seconds, &steps));
    }
    let last = updates.remove(entries);
    for update in &updates {
        log.store(update);
    }
    (log, last)
}

/// The signatures of updates with their texts, equal ones once.
fn signatures(updates: &[IdentityUpdate]) -> Vec<(String, Vec<Signature>)> {
    let of = |update: &IdentityUpdate| {
        let parsed = Update::parse(update).expect("a sound structure");
        let mut distinct: Vec<Signature> = Vec::new();
        for signature in parsed
            .actions
            .iter()
            .flat_map(conclave_identity::update::Action::signatures)
        {
            if !distinct.contains(signature) {
                distinct.push(signature.clone());
            }
        }
        (parsed.signature_text(), distinct)
    };
    updates.iter().map(of).collect()
}

/// The medians of two acts, done in turn so that both meet the same noise.
fn medians(mut floor: impl FnMut(), mut act: impl FnMut()) -> (Duration, Duration) {
    fn timed(act: &mut impl FnMut()) -> Duration {
        let start = Instant::now();
        act();
        start.elapsed()
    }
    let mut floors = Vec::new();
    let mut acts = Vec::new();
    for _ in 0..ROUNDS {
        floors.push(timed(&mut floor));
        acts.push(timed(&mut act));
    }
    floors.sort();
    acts.sort();
    (floors[ROUNDS / 2], acts[ROUNDS / 2])
}

fn main() {
    for predecessors in [1, 255] {
        let (mut log, last) = log_of(predecessors);
        let stored: Vec<IdentityUpdate> = log.history.iter().map(decode).collect();
        let verify = |signed: &[(String, Vec<Signature>)]| {
            for (text, signatures) in signed {
                let text = SignedText::new(text.clone());
                for signature in signatures {
                    text.check(signature).expect("sound");
                }
            }
        };
        let all = signatures(&[&stored[..], std::slice::from_ref(&last)].concat());
        let own = signatures(std::slice::from_ref(&last));
        let (floor_all, cold) = medians(
            || verify(&all),
            || {
                log.memo = StateMemo::new(8 << 20);
                log.judge(&last).expect("sound");
            },
        );
        let (floor_own, warm) = medians(|| verify(&own), || drop(log.judge(&last).expect("sound")));
        let ratio = |time: Duration, floor: Duration| time.as_secs_f64() / floor.as_secs_f64();
        println!(
            "{predecessors} predecessors: nothing remembered {cold:?}, {:.2} of all signatures; the log remembered {warm:?}, \
             {:.2} of its own signatures",
            ratio(cold, floor_all),
            ratio(warm, floor_own)
        );
    }
}

fn decode(entry: &conclave_identity::HistoryEntry) -> IdentityUpdate {
    use conclave_proto::xmtp::backend::v1::{ClientEnvelope, client_envelope::Payload};
    use prost::Message as _;
    match ClientEnvelope::decode(entry.stored.clone())
        .expect("stored")
        .payload
    {
        Some(Payload::IdentityUpdate(update)) => update,
        _ => panic!("an identity update"),
    }
}
