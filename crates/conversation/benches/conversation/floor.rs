//! The cryptography alone of what engines sent: each outer message sealed and signed once, verified and opened once by every
//! member; each statement inside signed once and verified once by every other member. No JSON, no store, no rules.

use std::hint::black_box;
use std::ops::Range;

use conclave_harness::key::Signature;
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{
    AgentCard, AgentKey, EncodedSignedMessage, PublicKey, SignedMessage, WireVersions, sealed_body,
};

use crate::room::Room;

/// One signature over bytes of a length, made once and verified by some.
struct Signing {
    key: AgentKey,
    public: PublicKey,
    bytes: Vec<u8>,
    signature: Signature,
    is_made: bool,
    verifications: usize,
}

/// One body, sealed once and opened by all.
struct Sealing {
    message: SignedMessage,
    plaintext: Vec<u8>,
    members: Vec<AgentCard>,
    openers: Vec<(AgentCard, AgentKey)>,
}

pub(crate) struct Floor {
    signings: Vec<Signing>,
    sealings: Vec<Sealing>,
    bytes: usize,
}

impl Floor {
    /// The cryptography of some of the messages that were ordered.
    pub(crate) fn of(room: &Room, range: Range<usize>) -> Self {
        let mut floor = Floor {
            signings: Vec::new(),
            sealings: Vec::new(),
            bytes: 0,
        };
        for message in &room.log[range] {
            let sender = &room.members[room.place_of(&message.sender())].agent;
            let recipients: Vec<_> = message
                .recipients()
                .iter()
                .map(|recipient| &room.members[room.place_of(recipient)].agent)
                .collect();
            let verified = message
                .verify(&sender.card, &WireVersions::live())
                .expect("a message");
            let plaintext = sealed_body::open(&sender.card, &sender.key, &verified).expect("a plaintext");
            let bytes = message.to_canonical_bytes();
            floor.bytes += bytes.len();
            floor.sign(&sender.key, bytes, true, recipients.len());
            if let Ok(statement) = EncodedSignedMessage::from_canonical_bytes(&plaintext) {
                let signer = &room.members[room.place_of(&statement.sender())].agent;
                floor.sign(&signer.key, plaintext.clone(), true, recipients.len() - 1);
            }
            floor.sealings.push(Sealing {
                message: verified,
                plaintext,
                members: recipients.iter().map(|agent| agent.card.clone()).collect(),
                openers: recipients
                    .iter()
                    .map(|agent| (agent.card.clone(), agent.key.clone()))
                    .collect(),
            });
        }
        floor
    }

    /// One verification of each of these messages.
    pub(crate) fn of_signatures(room: &Room, messages: &[EncodedSignedMessage]) -> Self {
        let mut floor = Floor {
            signings: Vec::new(),
            sealings: Vec::new(),
            bytes: 0,
        };
        for message in messages {
            let signer = &room.members[room.place_of(&message.sender())].agent;
            floor.sign(&signer.key, message.to_canonical_bytes(), false, 1);
        }
        floor
    }

    fn sign(&mut self, key: &AgentKey, bytes: Vec<u8>, is_made: bool, verifications: usize) {
        self.signings.push(Signing {
            signature: key.sign(&bytes),
            public: key.public_key(),
            key: key.clone(),
            bytes,
            is_made,
            verifications,
        });
    }

    /// What one post takes, in words.
    pub(crate) fn per_post(&self, posts: usize) -> String {
        let verifications: usize = self.signings.iter().map(|signing| signing.verifications).sum();
        let opens: usize = self.sealings.iter().map(|sealing| sealing.openers.len()).sum();
        format!(
            "{} messages, {} signatures, {} verifications, {} seals, {} opens, {} KiB a post",
            self.sealings.len() / posts,
            self.signings.len() / posts,
            verifications / posts,
            self.sealings.len() / posts,
            opens / posts,
            self.bytes / posts / 1024
        )
    }

    /// Does it all.
    pub(crate) fn run(&self) {
        let mut randomness = SeededRandomness::new(1);
        for signing in &self.signings {
            if signing.is_made {
                black_box(signing.key.sign(&signing.bytes));
            }
            for _ in 0..signing.verifications {
                let verified = signing.public.verify(&signing.bytes, &signing.signature);
                assert!(black_box(verified).is_ok());
            }
        }
        for sealing in &self.sealings {
            let Sealing {
                message,
                plaintext,
                members,
                openers,
            } = sealing;
            let sealed = sealed_body::seal(
                plaintext,
                members,
                message.sender(),
                message.message_id(),
                &mut randomness,
            );
            assert!(black_box(sealed).is_ok());
            for (card, key) in openers {
                assert!(black_box(sealed_body::open(card, key, message)).is_ok());
            }
        }
    }
}
