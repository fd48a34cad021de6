//! What is measured, each with its floor.

use std::hint::black_box;

use bytes::Bytes;
use conclave_envelope::{
    Limits,
    key_package::{
        ParsedKeyPackage,
        building::{NOW, Package},
    },
    request::AdmittedPublish,
};
use conclave_identity::{
    Candidate, HandleOwner, HandlePolicy, History, HistoryEntry, StateMemo, Surroundings, WalletQuestion,
    WalletVerdict,
    building::{Account, Installation, Signer, Step, update},
    inbox_id,
    signature::SignedText,
    update::{Action, Update},
};
use conclave_proto::xmtp::{
    backend::v1::{ClientEnvelope, GroupMessage, PublishRequest, client_envelope::Payload},
    identity::associations::{IdentityUpdate, signature::Signature},
};
use ed25519_dalek::{Signature as Ed25519Signature, Signer as _, SigningKey, VerifyingKey};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

/// One thing to measure.
pub(crate) trait Case {
    /// The cryptography alone.
    fn floor(&mut self);
    /// All of it.
    fn act(&mut self);
}

/// The case of this number: 0 a group message of 1 KiB; 1 a key package; 2 and 3 an identity update after 1 predecessor,
/// with nothing remembered and with the log remembered; 4 and 5 the same after 255.
pub(crate) fn of(number: u32) -> Option<Box<dyn Case>> {
    Some(match number {
        0 => Box::new(Message::new()),
        1 => Box::new(KeyPackage::new()),
        2 => Box::new(Log::new(1, false)),
        3 => Box::new(Log::new(1, true)),
        4 => Box::new(Log::new(255, false)),
        5 => Box::new(Log::new(255, true)),
        _ => return None,
    })
}

/// A message of 1 KiB to a group. The floor hashes its bytes twice, as the backend must once and a client must once.
struct Message {
    request: Bytes,
    limits: Limits,
}

/// What stands before the ciphertext of a PrivateMessage: version, wire format, a group id of 16 bytes, epoch, content type,
/// and two empty vectors.
const FRAMING: [u8; 32] = [
    0, 1, 0, 2, 16, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
];

impl Message {
    fn new() -> Message {
        let ciphertext = [&[0x44, 0x00][..], &[9; 1024]].concat();
        let message = GroupMessage {
            data: [&FRAMING[..], &ciphertext].concat().into(),
            ..GroupMessage::default()
        };
        let envelope = ClientEnvelope {
            payload: Some(Payload::GroupMessage(message)),
        };
        let request = PublishRequest {
            envelopes: vec![envelope],
        };
        Message {
            request: request.encode_to_vec().into(),
            limits: Limits::default(),
        }
    }
}

impl Case for Message {
    fn floor(&mut self) {
        for _ in 0..2 {
            black_box(Sha256::digest(black_box(&self.request)));
        }
    }

    fn act(&mut self) {
        let publish = AdmittedPublish::decode(self.request.clone(), &self.limits);
        black_box(publish.expect("a sound message"));
    }
}

/// A key package as installations publish it. The floor verifies two signatures over as many bytes.
struct KeyPackage {
    bytes: Vec<u8>,
    signed: Vec<u8>,
    signature: Ed25519Signature,
    key: VerifyingKey,
}

impl KeyPackage {
    fn new() -> KeyPackage {
        let signer = SigningKey::from_bytes(&[1; 32]);
        let bytes = Package::sound().write();
        let signed = bytes.clone();
        KeyPackage {
            signature: signer.sign(&signed),
            key: signer.verifying_key(),
            bytes,
            signed,
        }
    }
}

impl Case for KeyPackage {
    fn floor(&mut self) {
        for _ in 0..2 {
            self.key
                .verify_strict(black_box(&self.signed), &self.signature)
                .expect("a sound signature");
        }
    }

    fn act(&mut self) {
        let parsed = ParsedKeyPackage::parse(black_box(&self.bytes)).expect("a key package");
        black_box(parsed.validate(NOW).expect("a sound key package"));
    }
}

/// An update and the log it follows: an account opens an inbox, then revokes and adds an installation in each. The floor
/// verifies the signatures that were not remembered, equal ones once.
struct Log {
    entries: Vec<HistoryEntry>,
    update: IdentityUpdate,
    signed: Vec<(String, Vec<Signature>)>,
    memo: StateMemo,
    remembers: bool,
}

const MEMO_BYTES: usize = 8 << 20;

impl Log {
    fn new(predecessors: usize, remembers: bool) -> Log {
        let owner = Account::new(1);
        let inbox = inbox_id::derive(&owner.identifier(), 0);
        let mut updates = vec![update(&inbox, 1, &[Step::Create(&owner, 0)])];
        for seconds in (2..).take(predecessors) {
            let added = Installation::new(u8::try_from(seconds % 250).unwrap_or_default());
            let steps = [
                Step::Revoke(added.identifier(), &owner),
                Step::Add(&added, &owner),
            ];
            updates.push(update(&inbox, seconds, &steps));
        }
        let newest = updates.split_off(predecessors).remove(0);
        let verified = if remembers { &[] } else { &updates[..] };
        let signed = verified.iter().chain([&newest]).map(signatures).collect();
        let mut log = Log {
            entries: updates.into_iter().map(stored).collect(),
            update: newest,
            signed,
            memo: StateMemo::new(MEMO_BYTES),
            remembers,
        };
        log.act();
        log
    }
}

fn stored(update: IdentityUpdate) -> HistoryEntry {
    let envelope = ClientEnvelope {
        payload: Some(Payload::IdentityUpdate(update)),
    };
    let stored = Bytes::from(envelope.encode_to_vec());
    HistoryEntry {
        message_hash: Sha256::digest(&stored).into(),
        server_ns: 0,
        stored,
    }
}

/// The distinct signatures of an update, and the text they sign.
fn signatures(update: &IdentityUpdate) -> (String, Vec<Signature>) {
    let parsed = Update::parse(update).expect("a sound structure");
    let mut distinct: Vec<Signature> = Vec::new();
    for signature in parsed.actions.iter().flat_map(Action::signatures) {
        if !distinct.contains(signature) {
            distinct.push(signature.clone());
        }
    }
    (parsed.signature_text(), distinct)
}

impl Case for Log {
    fn floor(&mut self) {
        for (text, signatures) in &self.signed {
            let text = SignedText::new(text.clone());
            for signature in signatures {
                black_box(text.check(signature).expect("a sound signature"));
            }
        }
    }

    fn act(&mut self) {
        if !self.remembers {
            self.memo = StateMemo::new(MEMO_BYTES);
        }
        let handles = HandlePolicy::default();
        let surroundings = Surroundings {
            verdicts: &|_: &WalletQuestion| WalletVerdict::Valid,
            handles: &handles,
            handle_owner: HandleOwner::Nobody,
            now_ns: 1,
        };
        let mut history = History::default();
        history
            .extend(&self.entries, &mut self.memo)
            .expect("a sound log");
        let candidate = Candidate::begin(&self.update, [0; 32], self.entries.len(), u32::MAX).expect("sound");
        let admitted = candidate.admit(&history, &surroundings, &mut self.memo);
        black_box(admitted.expect("a sound update"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_and_its_floor_can_be_done_again_and_again() {
        for number in 0..4 {
            let mut case = of(number).expect("a case");
            for _ in 0..2 {
                case.floor();
                case.act();
            }
        }
        assert!(of(6).is_none());
    }
}
