//! A second, naive construction of sealed bodies in which every rule can be broken one at a time.

use aes_gcm::{AeadInPlace, Aes256Gcm, KeyInit};
use aes_kw::KekAes256;
use conclave_harness::{AgentCard, AgentId, MessageId, base64url, x25519};
use sha2::{Digest, Sha256};

/// Where the ephemeral keys go.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    InHeader,
    InEntries,
}

/// Everything a sealer decides.
pub(crate) struct HandSealed {
    pub(crate) recipients: Vec<AgentCard>,
    pub(crate) sender: AgentId,
    pub(crate) message_id: MessageId,
    pub(crate) salted: Vec<u8>,
    pub(crate) commitment: [u8; 32],
    /// One a recipient; honest sealers use one for all.
    pub(crate) content_keys: Vec<[u8; 32]>,
    pub(crate) iv: [u8; 12],
    /// One a recipient.
    pub(crate) ephemeral_secrets: Vec<[u8; 32]>,
    pub(crate) layout: Layout,
    /// Makes what is sent as the header out of the right header.
    pub(crate) spell_header: fn(&str) -> Vec<u8>,
}

impl HandSealed {
    /// What an honest sealer with the draws of `scripted_seal` decides.
    pub(crate) fn honest(
        plaintext: &[u8],
        recipients: Vec<AgentCard>,
        sender: AgentId,
        message_id: MessageId,
    ) -> Self {
        let mut salted = vec![0x5a; 32];
        salted.extend_from_slice(plaintext);
        let count = recipients.len();
        Self {
            commitment: Sha256::digest(&salted).into(),
            recipients,
            sender,
            message_id,
            salted,
            content_keys: vec![std::array::from_fn(|index| 0x10 + index as u8); count],
            iv: std::array::from_fn(|index| 0xa0 + index as u8),
            ephemeral_secrets: (0..count).map(|entry| [0x41 + entry as u8; 32]).collect(),
            layout: if count == 1 {
                Layout::InHeader
            } else {
                Layout::InEntries
            },
            spell_header: |header| header.as_bytes().to_vec(),
        }
    }

    /// The base64url of the header.
    pub(crate) fn protected(&self) -> String {
        let epk = match self.layout {
            Layout::InEntries => String::new(),
            Layout::InHeader => {
                let x = base64url::encode(&x25519::public_key(&self.ephemeral_secrets[0]));
                format!(r#","epk":{{"x":"{x}","crv":"X25519","kty":"OKP"}}"#)
            }
        };
        let header = format!(
            r#"{{"alg":"ECDH-ES+A256KW","enc":"A256GCM","xyz.moltzap/commitment":"{}","xyz.moltzap/message-id":"{}","xyz.moltzap/sender":"{}"{epk}}}"#,
            base64url::encode(&self.commitment),
            self.message_id,
            self.sender,
        );
        base64url::encode(&(self.spell_header)(&header))
    }

    /// The body, its ciphertext under the first content key.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut ciphertext = self.salted.clone();
        let tag = Aes256Gcm::new((&self.content_keys[0]).into())
            .encrypt_in_place_detached(&self.iv.into(), self.protected().as_bytes(), &mut ciphertext)
            .unwrap();
        self.around(&ciphertext, &tag.into())
    }

    /// The body around a given ciphertext and tag.
    pub(crate) fn around(&self, ciphertext: &[u8], tag: &[u8; 16]) -> Vec<u8> {
        let entries: Vec<String> = (0..self.recipients.len())
            .map(|index| self.entry(index))
            .collect();
        format!(
            r#"{{"ciphertext":"{}","iv":"{}","protected":"{}","recipients":[{}],"tag":"{}"}}"#,
            base64url::encode(ciphertext),
            base64url::encode(&self.iv),
            self.protected(),
            entries.join(","),
            base64url::encode(tag),
        )
        .into_bytes()
    }

    fn entry(&self, index: usize) -> String {
        // A shared header key is the key of all.
        let secret = match self.layout {
            Layout::InHeader => self.ephemeral_secrets[0],
            Layout::InEntries => self.ephemeral_secrets[index],
        };
        let public = self.recipients[index].public_key().x25519().unwrap();
        let shared = x25519::shared_secret(&secret, &public).unwrap();
        let encrypted_key = base64url::encode(&wrap(&shared, &self.content_keys[index]));
        match self.layout {
            Layout::InHeader => format!(r#"{{"encrypted_key":"{encrypted_key}"}}"#),
            Layout::InEntries => entry_with_key(&encrypted_key, &x25519::public_key(&secret)),
        }
    }
}

/// An entry that carries its ephemeral key.
pub(crate) fn entry_with_key(encrypted_key: &str, ephemeral_key: &[u8; 32]) -> String {
    let x = base64url::encode(ephemeral_key);
    format!(
        r#"{{"encrypted_key":"{encrypted_key}","header":{{"epk":{{"crv":"X25519","kty":"OKP","x":"{x}"}}}}}}"#
    )
}

/// `content_key` wrapped for whoever shares `shared`.
pub(crate) fn wrap(shared: &[u8; 32], content_key: &[u8; 32]) -> [u8; 40] {
    let mut input = vec![0, 0, 0, 1];
    input.extend_from_slice(shared);
    input.extend_from_slice(b"\0\0\0\x0eECDH-ES+A256KW\0\0\0\0\0\0\0\0\0\0\x01\0");
    let key: [u8; 32] = Sha256::digest(&input).into();
    let mut wrapped = [0; 40];
    KekAes256::from(key).wrap(content_key, &mut wrapped).unwrap();
    wrapped
}
