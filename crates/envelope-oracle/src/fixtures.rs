//! Messages and key packages made by openmls, in every shape that it makes. Depends on openmls.
//!
//! Keys are drawn anew in each run, so a failure carries its input.

use conclave_proto::xmtp::identity::MlsCredential;
use openmls::prelude::{
    BasicCredential, Capabilities, Ciphersuite, CredentialWithKey, Extension, ExtensionType, Extensions,
    GroupId, KeyPackage, LeafNodeParameters, Lifetime, MlsGroup, MlsGroupCreateConfig, MlsMessageOut,
    PURE_CIPHERTEXT_WIRE_FORMAT_POLICY, PURE_PLAINTEXT_WIRE_FORMAT_POLICY, ProposalType, UnknownExtension,
    WireFormatPolicy,
};
use openmls_basic_credential::SignatureKeyPair;
use openmls_rust_crypto::OpenMlsRustCrypto;
use prost::Message as _;
use tls_codec::Serialize as _;

const SUITE: Ciphersuite = Ciphersuite::MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519;
/// The first second of 2100.
const NOT_AFTER: u64 = 4_102_444_800;

fn signer(suite: Ciphersuite) -> (SignatureKeyPair, CredentialWithKey) {
    let signer = SignatureKeyPair::new(suite.signature_algorithm()).expect("keys can be drawn");
    let credential = MlsCredential {
        inbox_id: "ab".repeat(32),
    };
    let credential = CredentialWithKey {
        credential: BasicCredential::new(credential.encode_to_vec()).into(),
        signature_key: signer.public().into(),
    };
    (signer, credential)
}

fn key_package(suite: Ciphersuite, in_full: bool) -> KeyPackage {
    let (signer, credential) = signer(suite);
    let mut builder = KeyPackage::builder().key_package_lifetime(Lifetime::init(1, NOT_AFTER));
    if in_full {
        let listed = [0x000a, 0x0001, 0xf000, 0x0006, 0xff00, 0xff03, 0xff04].map(ExtensionType::from);
        let proposals = [ProposalType::GroupContextExtensions];
        builder = builder
            .leaf_node_capabilities(Capabilities::new(
                None,
                Some(&[suite]),
                Some(&listed),
                Some(&proposals),
                None,
            ))
            .key_package_extensions(
                Extensions::from_vec(vec![
                    Extension::Unknown(0xff04, UnknownExtension(vec![0x0a, 1, 3])),
                    Extension::Unknown(0xff03, UnknownExtension(vec![7; 1218])),
                ])
                .expect("two types"),
            )
            .mark_as_last_resort();
    }
    let bundle = builder
        .build(suite, &OpenMlsRustCrypto::default(), &signer, credential)
        .expect("it builds");
    bundle.key_package().clone()
}

/// Key packages: plain ones of each suite, and one in the shape that installations publish.
#[must_use]
pub fn key_packages() -> Vec<Vec<u8>> {
    [
        (SUITE, false),
        (SUITE, true),
        (Ciphersuite::MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519, false),
        (Ciphersuite::MLS_128_DHKEMP256_AES128GCM_SHA256_P256, false),
    ]
    .into_iter()
    .map(|(suite, in_full)| {
        key_package(suite, in_full)
            .tls_serialize_detached()
            .expect("it encodes")
    })
    .collect()
}

/// Group messages: private and public proposals and commits, an application message, and a Welcome, which is none.
#[must_use]
pub fn group_messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for policy in [
        PURE_CIPHERTEXT_WIRE_FORMAT_POLICY,
        PURE_PLAINTEXT_WIRE_FORMAT_POLICY,
    ] {
        messages.extend(group_messages_under(policy));
    }
    messages
}

fn group_messages_under(policy: WireFormatPolicy) -> Vec<Vec<u8>> {
    let provider = OpenMlsRustCrypto::default();
    let (signer, credential) = signer(SUITE);
    let config = MlsGroupCreateConfig::builder()
        .ciphersuite(SUITE)
        .wire_format_policy(policy)
        .build();
    let id = GroupId::from_slice(&[0x11; 16]);
    let mut group =
        MlsGroup::new_with_group_id(&provider, &signer, &config, id, credential).expect("it opens");
    let added = [key_package(SUITE, true), key_package(SUITE, false)];
    let mut messages = Vec::new();
    let (commit, welcome, _) = group.add_members(&provider, &signer, &added).expect("it adds");
    group.merge_pending_commit(&provider).expect("it merges");
    messages.extend([commit, welcome]);
    messages.push(
        group
            .create_message(&provider, &signer, b"some text")
            .expect("it sends"),
    );
    let (update, _) = group
        .propose_self_update(&provider, &signer, LeafNodeParameters::default())
        .expect("it proposes");
    messages.push(update);
    let (add, _) = group
        .propose_add_member(&provider, &signer, &key_package(SUITE, true))
        .expect("it proposes");
    messages.push(add);
    let leaving = group.members().last().expect("three members").index;
    let (remove, _) = group
        .propose_remove_member(&provider, &signer, leaving)
        .expect("it proposes");
    messages.push(remove);
    let (commit, _, _) = group
        .commit_to_pending_proposals(&provider, &signer)
        .expect("it commits");
    messages.push(commit);
    messages.iter().map(encode).collect()
}

fn encode(message: &MlsMessageOut) -> Vec<u8> {
    message.tls_serialize_detached().expect("it encodes")
}
