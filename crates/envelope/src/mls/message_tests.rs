//! The framing of group messages: minimal inputs, every structure of a PublicMessage, truncation at every byte.

use proptest::prelude::*;

use super::*;

const HEAD_PRIVATE: &str = "00010002 10 11111111111111111111111111111111 0000000000000000";
const HEAD_MEMBER: &str = "00010001 10 11111111111111111111111111111111 0000000000000000 0100000000 00";
/// A leaf node from a key package, with one capability of each kind and one extension.
const LEAF: &str = "01aa 01bb 0001 02cccc 020001 020003 02000a 020007 020001 \
     01 0000000000000001 00000000000000ff 05f00002dddd 01ee";

fn bytes_of(parts: &[&str]) -> Vec<u8> {
    let text: String = parts.concat().split_whitespace().collect();
    hex::decode(text).expect("hexadecimal")
}

/// A PublicMessage of member 0 with a proposal.
fn with_proposal(proposal: &str) -> Vec<u8> {
    bytes_of(&[HEAD_MEMBER, "02", proposal, "00 00"])
}

/// A PublicMessage of member 0 with a commit.
fn with_commit(commit: &str) -> Vec<u8> {
    bytes_of(&[HEAD_MEMBER, "03", commit, "00 00 00"])
}

/// Holds that exactly these bytes are a message, however they are cut or continued.
fn assert_is_whole(bytes: &[u8], content_type: ContentType) {
    let framing = Framing::parse(bytes).unwrap_or_else(|error| panic!("{error}: {}", hex::encode(bytes)));
    assert_eq!(
        framing,
        Framing {
            group_id: &[0x11; 16],
            content_type,
            length: bytes.len()
        }
    );
    for length in 0..bytes.len() {
        assert!(
            Framing::parse(&bytes[..length]).is_err(),
            "cut at {length}: {}",
            hex::encode(bytes)
        );
    }
    let continued = [bytes, b"\xff after the message"].concat();
    assert_eq!(
        Framing::parse(&continued),
        Ok(framing),
        "what follows is left unread"
    );
}

/// A length as a vector header.
fn vector(content: &str) -> String {
    let length = bytes_of(&[content]).len();
    match length {
        0..64 => format!("{length:02x}{content}"),
        64..16384 => format!("{:04x}{content}", 0x4000 | length),
        _ => format!(
            "{:08x}{content}",
            0x8000_0000_u32 | u32::try_from(length).expect("short")
        ),
    }
}

// API-230
#[test]
fn the_minimal_messages_are_accepted() {
    let private = |content_type: &str| bytes_of(&[HEAD_PRIVATE, content_type, "00 00 00"]);
    assert_eq!(private("01").len(), 33);
    assert_is_whole(&private("01"), ContentType::Application);
    assert_is_whole(&private("02"), ContentType::Proposal);
    assert_is_whole(&private("03"), ContentType::Commit);
    let public = bytes_of(&[HEAD_MEMBER, "01 00 00 00"]);
    assert_eq!(public.len(), 39);
    assert_is_whole(&public, ContentType::Application);
    let remove = with_proposal("0003 00000001");
    assert_eq!(remove.len(), 44);
    assert_is_whole(&remove, ContentType::Proposal);
    let commit = with_commit("00 00");
    assert_eq!(commit.len(), 41);
    assert_is_whole(&commit, ContentType::Commit);
}

// API-230
#[test]
fn every_sender_type_has_its_own_shape() {
    let group = "00010001 10 11111111111111111111111111111111 0000000000000000";
    // An index for members and external senders, a membership tag for members only.
    for (sender, tags) in [("01 00000007", "00"), ("02 00000007", ""), ("03", ""), ("04", "")] {
        let message = bytes_of(&[group, sender, "00 01 02aabb 01cc", tags]);
        assert_is_whole(&message, ContentType::Application);
    }
    for sender in ["00", "05", "ff"] {
        let message = bytes_of(&[group, sender, "00 01 00 00 00 00 00 00"]);
        assert_eq!(
            Framing::parse(&message).expect_err("unknown").problem,
            "an unknown sender type"
        );
    }
}

// API-230
#[test]
fn every_proposal_is_walked_to_its_end() {
    let key_package = format!("0001 0003 01ff {LEAF} 05f00102aaaa 02bbbb");
    let update = LEAF.replace("01 0000000000000001 00000000000000ff", "02");
    let proposals = [
        format!("0001 {key_package}"),
        format!("0002 {update}"),
        "0003 00000001".to_owned(),
        "0004 01 02aaaa 01bb".to_owned(),
        "0004 02 01 02aaaa 0000000000000009 01bb".to_owned(),
        "0005 02aaaa 0001 0003 04f0010100".to_owned(),
        "0006 03aabbcc".to_owned(),
        "0007 00".to_owned(),
        "0007 08 f00100 f0020201ff".to_owned(),
        "0008 c000 01 02aabb".to_owned(),
        "0008 c000 02".to_owned(),
        "0009 c000 02aabb".to_owned(),
        "000a".to_owned(),
        "f0ff 03aabbcc".to_owned(),
    ];
    for proposal in &proposals {
        assert_is_whole(&with_proposal(proposal), ContentType::Proposal);
        // By value and by reference, in a commit.
        let list = vector(&format!("01 {proposal} 02 02aabb"));
        assert_is_whole(&with_commit(&format!("{list} 00")), ContentType::Commit);
    }
}

// API-230
#[test]
fn a_commit_with_a_path_is_walked_to_its_end() {
    let leaf = LEAF.replace("01 0000000000000001 00000000000000ff", "03 02abcd");
    let ciphertexts = vector("01aa 02bbbb 00 00");
    let nodes = vector(&format!("01cc {ciphertexts} 00 00"));
    assert_is_whole(
        &with_commit(&format!("00 01 {leaf} {nodes}")),
        ContentType::Commit,
    );
}

// API-230
#[test]
fn what_no_structure_allows_is_refused() {
    let problem = |bytes: &[u8]| Framing::parse(bytes).expect_err("malformed").problem;
    assert_eq!(
        problem(&with_proposal("0004 03 00 00")),
        "an unknown type of pre-shared key"
    );
    assert_eq!(
        problem(&with_proposal("0008 c000 03")),
        "an unknown operation on application data"
    );
    assert_eq!(
        problem(&with_proposal("0007 03 f00101")),
        "a vector longer than what encloses it"
    );
    assert_eq!(
        problem(&with_commit("01 03 00")),
        "neither a proposal nor a reference to one"
    );
    assert_eq!(
        problem(&with_commit("00 02")),
        "a presence byte that is neither 0 nor 1"
    );
    let bad_source = LEAF.replace("01 0000000000000001 00000000000000ff", "04");
    assert_eq!(
        problem(&with_proposal(&format!("0002 {bad_source}"))),
        "an unknown source of a leaf node"
    );
    for content_type in ["00", "04", "ff"] {
        let message = bytes_of(&[HEAD_PRIVATE, content_type, "00 00 00"]);
        assert_eq!(problem(&message), "an unknown content type");
    }
}

// API-230
#[test]
fn only_public_and_private_messages_of_mls_1_0_are_group_messages() {
    let message = bytes_of(&[HEAD_PRIVATE, "01 00 00 00"]);
    for wire_format in [0u8, 3, 4, 5, 6, 0xff] {
        let mut other = message.clone();
        other[3] = wire_format;
        assert_eq!(
            Framing::parse(&other).expect_err("other").problem,
            "a wire format that is no group message"
        );
    }
    for version in [0u8, 2, 0xff] {
        let mut other = message.clone();
        other[1] = version;
        assert_eq!(
            Framing::parse(&other).expect_err("other").problem,
            "a version other than MLS 1.0"
        );
    }
    assert!(Framing::parse(&[]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0u8.., 0..200)) {
        let _ = Framing::parse(&bytes);
    }

    #[test]
    fn any_damage_is_read_or_refused(
        edits in proptest::collection::vec((0usize..200, 0u8..), 1..4),
        which in 0usize..3,
    ) {
        let leaf = LEAF.replace("01 0000000000000001 00000000000000ff", "03 02abcd");
        let mut bytes = match which {
            0 => with_proposal(&format!("0001 0001 0003 01ff {LEAF} 05f00102aaaa 02bbbb")),
            1 => with_commit(&format!("00 01 {leaf} 00")),
            _ => bytes_of(&[HEAD_PRIVATE, "01 02aabb 01cc 03ddeeff"]),
        };
        for (at, value) in edits {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(framing) = Framing::parse(&bytes) {
            prop_assert!(framing.length <= bytes.len());
        }
    }
}
