//! Accounts, installations, passkeys and wallets that sign updates, for tests. Depends on the crate itself.
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "for tests: what is not sound panics"
)]

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use conclave_proto::xmtp::identity::associations::{
    self as wire, identity_action::Kind, signature::Signature,
};
use p256::ecdsa::signature::Signer as _;
use sha2::{Digest as _, Sha256, Sha512};

use crate::{
    EthereumAddress, MemberIdentifier,
    signature::{SignedText, ethereum::personal_message_hash, installation::CONTEXT},
    update::Update,
};

/// Someone who can be a member or the recovery identifier.
pub trait Signer {
    fn identifier(&self) -> MemberIdentifier;
    fn sign(&self, text: &str) -> Signature;
}

/// An Ethereum account.
pub struct Account(k256::ecdsa::SigningKey);

impl Account {
    pub fn new(seed: u8) -> Account {
        Account(k256::ecdsa::SigningKey::from_slice(&[seed; 32]).expect("a scalar"))
    }
}

impl Signer for Account {
    fn identifier(&self) -> MemberIdentifier {
        let text = SignedText::new(String::new());
        text.check(&self.sign("")).expect("sound").verified.signer
    }

    fn sign(&self, text: &str) -> Signature {
        let hash = personal_message_hash(text.as_bytes());
        let (signature, recovery) = self.0.sign_prehash_recoverable(&hash).expect("a hash");
        Signature::Erc191(wire::RecoverableEcdsaSignature {
            bytes: [&signature.to_bytes()[..], &[27 + recovery.to_byte()]]
                .concat()
                .into(),
        })
    }
}

/// An installation.
pub struct Installation(ed25519_dalek::SigningKey);

impl Installation {
    pub fn new(seed: u8) -> Installation {
        Installation(ed25519_dalek::SigningKey::from_bytes(&[seed; 32]))
    }
}

impl Signer for Installation {
    fn identifier(&self) -> MemberIdentifier {
        MemberIdentifier::Installation(self.0.verifying_key().to_bytes().to_vec().into())
    }

    fn sign(&self, text: &str) -> Signature {
        let prehash = Sha512::new_with_prefix(text);
        let signature = self
            .0
            .sign_prehashed(prehash, Some(CONTEXT))
            .expect("a short context");
        Signature::InstallationKey(wire::RecoverableEd25519Signature {
            bytes: signature.to_bytes().to_vec().into(),
            public_key: self.0.verifying_key().to_bytes().to_vec().into(),
        })
    }
}

/// A passkey.
pub struct Passkey(p256::ecdsa::SigningKey);

impl Passkey {
    pub fn new(seed: u8) -> Passkey {
        Passkey(p256::ecdsa::SigningKey::from_slice(&[seed; 32]).expect("a scalar"))
    }

    fn key(&self) -> Vec<u8> {
        self.0.verifying_key().to_encoded_point(true).as_bytes().to_vec()
    }
}

impl Signer for Passkey {
    fn identifier(&self) -> MemberIdentifier {
        MemberIdentifier::Passkey(self.key().into())
    }

    fn sign(&self, text: &str) -> Signature {
        let challenge = URL_SAFE_NO_PAD.encode(text);
        let client_data =
            format!(r#"{{"type":"webauthn.get","challenge":"{challenge}","origin":"https://example.org"}}"#);
        let authenticator_data = vec![5; 37];
        let signed = [&authenticator_data[..], &Sha256::digest(&client_data)].concat();
        let signature: p256::ecdsa::DerSignature = self.0.sign(&signed);
        Signature::Passkey(wire::RecoverablePasskeySignature {
            public_key: self.key().into(),
            signature: signature.as_bytes().to_vec().into(),
            authenticator_data: authenticator_data.into(),
            client_data_json: client_data.into(),
        })
    }
}

/// A smart contract wallet. What it signs is what the verdicts say it is.
#[derive(Clone)]
pub struct Wallet {
    pub chain_id: u64,
    pub address: EthereumAddress,
}

impl Wallet {
    pub fn new(chain_id: u64, seed: u8) -> Wallet {
        Wallet {
            chain_id,
            address: EthereumAddress::from_bytes([seed; 20]),
        }
    }
}

impl Signer for Wallet {
    fn identifier(&self) -> MemberIdentifier {
        MemberIdentifier::Ethereum(self.address)
    }

    fn sign(&self, text: &str) -> Signature {
        Signature::Erc6492(wire::SmartContractWalletSignature {
            account_id: format!("eip155:{}:{}", self.chain_id, self.address),
            block_number: 7,
            signature: Sha256::digest(format!("{} {text}", self.chain_id))
                .to_vec()
                .into(),
        })
    }
}

/// An action and who signs it.
pub enum Step<'a> {
    Create(&'a dyn Signer, u64),
    /// The new member, added by an existing one.
    Add(&'a dyn Signer, &'a dyn Signer),
    /// The member, revoked by a signer.
    Revoke(MemberIdentifier, &'a dyn Signer),
    /// The new recovery identifier, named by a signer.
    Recovery(MemberIdentifier, &'a dyn Signer),
    Claim(&'static str, &'a dyn Signer),
}

/// An update of an inbox, signed. Its time is in whole seconds, which is what the signed text tells apart.
pub fn update(inbox_id: &str, seconds: u64, steps: &[Step<'_>]) -> wire::IdentityUpdate {
    let client_timestamp_ns = seconds * 1_000_000_000;
    let placeholder = |_: &dyn Signer| Signature::Erc191(wire::RecoverableEcdsaSignature::default());
    let unsigned = write(inbox_id, client_timestamp_ns, steps, &placeholder);
    let text = Update::parse(&unsigned)
        .expect("a sound structure")
        .signature_text();
    write(inbox_id, client_timestamp_ns, steps, &|signer| signer.sign(&text))
}

fn write(
    inbox_id: &str,
    client_timestamp_ns: u64,
    steps: &[Step<'_>],
    sign: &dyn Fn(&dyn Signer) -> Signature,
) -> wire::IdentityUpdate {
    let actions = steps.iter().map(|step| wire::IdentityAction {
        kind: Some(write_step(step, &|signer| {
            Some(wire::Signature {
                signature: Some(sign(signer)),
            })
        })),
    });
    wire::IdentityUpdate {
        actions: actions.collect(),
        client_timestamp_ns,
        inbox_id: inbox_id.to_owned(),
    }
}

fn write_step(step: &Step<'_>, sign: &dyn Fn(&dyn Signer) -> Option<wire::Signature>) -> Kind {
    match step {
        Step::Create(initial, nonce) => Kind::CreateInbox(wire::CreateInbox {
            initial_identifier: initial.identifier().to_string(),
            nonce: *nonce,
            initial_identifier_signature: sign(*initial),
            initial_identifier_kind: kind_of(&initial.identifier()),
            relying_party: None,
        }),
        Step::Add(new, existing) => Kind::Add(wire::AddAssociation {
            new_member_identifier: Some(named(&new.identifier())),
            existing_member_signature: sign(*existing),
            new_member_signature: sign(*new),
            relying_party: None,
        }),
        Step::Revoke(member, signer) => Kind::Revoke(wire::RevokeAssociation {
            member_to_revoke: Some(named(member)),
            recovery_identifier_signature: sign(*signer),
        }),
        Step::Recovery(recovery, signer) => Kind::ChangeRecoveryAddress(wire::ChangeRecoveryAddress {
            new_recovery_identifier: recovery.to_string(),
            existing_recovery_identifier_signature: sign(*signer),
            new_recovery_identifier_kind: kind_of(recovery),
            relying_party: None,
        }),
        Step::Claim(handle, signer) => Kind::ClaimHandle(wire::ClaimHandle {
            handle: (*handle).to_owned(),
            existing_member_signature: sign(*signer),
        }),
    }
}

fn kind_of(identifier: &MemberIdentifier) -> i32 {
    match identifier {
        MemberIdentifier::Ethereum(_) => 1,
        MemberIdentifier::Passkey(_) => 2,
        MemberIdentifier::Installation(_) => panic!("an installation is not named by text"),
    }
}

fn named(identifier: &MemberIdentifier) -> wire::MemberIdentifier {
    use wire::member_identifier::Kind;
    wire::MemberIdentifier {
        kind: Some(match identifier {
            MemberIdentifier::Ethereum(address) => Kind::EthereumAddress(address.to_string()),
            MemberIdentifier::Installation(key) => Kind::InstallationPublicKey(key.clone()),
            MemberIdentifier::Passkey(key) => Kind::Passkey(wire::Passkey {
                key: key.clone(),
                relying_party: None,
            }),
        }),
    }
}
