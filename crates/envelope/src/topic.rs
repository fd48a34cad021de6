//! Topics: one kind byte and an identifier of fixed length (TOPIC-001). Depends on nothing but the wire type.

use std::fmt;

use bytes::Bytes;
use conclave_proto::xmtp::backend::v1 as wire;

/// The length of a group id, in bytes.
pub const GROUP_ID_BYTES: usize = 16;
/// The length of an installation key and of an inbox id, in bytes.
pub const KEY_BYTES: usize = 32;

/// The longest topic: a kind byte and a key.
const MAX_TOPIC_BYTES: usize = 1 + KEY_BYTES;

/// The kind of a topic. The number is its kind byte, which is never given another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TopicKind {
    /// Messages of a group, by its group id.
    GroupMessage = 0x00,
    /// Welcomes to an installation, by its key.
    Welcome = 0x01,
    /// The association log of an inbox, by its id.
    IdentityUpdate = 0x02,
    /// Key packages of an installation, by its key.
    KeyPackage = 0x03,
    /// The commit log of a group, by its group id.
    CommitLog = 0x04,
}

impl TopicKind {
    /// Every kind, in the order of its byte.
    pub const ALL: [TopicKind; 5] = [
        TopicKind::GroupMessage,
        TopicKind::Welcome,
        TopicKind::IdentityUpdate,
        TopicKind::KeyPackage,
        TopicKind::CommitLog,
    ];

    /// The kind of a kind byte.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<TopicKind> {
        TopicKind::ALL.get(usize::from(byte)).copied()
    }

    /// How long the identifier of this kind is, in bytes.
    #[must_use]
    pub const fn identifier_bytes(self) -> usize {
        match self {
            TopicKind::GroupMessage | TopicKind::CommitLog => GROUP_ID_BYTES,
            TopicKind::Welcome | TopicKind::IdentityUpdate | TopicKind::KeyPackage => KEY_BYTES,
        }
    }

    /// What the identifier of this kind is called.
    #[must_use]
    pub const fn identifier_name(self) -> &'static str {
        match self {
            TopicKind::GroupMessage | TopicKind::CommitLog => "group id",
            TopicKind::Welcome | TopicKind::KeyPackage => "installation key",
            TopicKind::IdentityUpdate => "inbox id",
        }
    }
}

impl fmt::Display for TopicKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            TopicKind::GroupMessage => "group message",
            TopicKind::Welcome => "welcome",
            TopicKind::IdentityUpdate => "identity update",
            TopicKind::KeyPackage => "key package",
            TopicKind::CommitLog => "commit log",
        })
    }
}

/// Bytes that are no topic (TOPIC-003), or an identifier that gives none (TOPIC-002).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// There are no bytes, or no `Topic` message at all.
    #[error("the topic is empty")]
    Empty,
    /// The first byte is no kind.
    #[error("the topic has the unknown kind {0:#04x}")]
    UnknownKind(u8),
    /// The identifier is too short or too long for its kind.
    #[error("the {} of a {kind} topic has {actual} bytes, not {}", kind.identifier_name(), kind.identifier_bytes())]
    IdentifierLength {
        /// The kind of the topic.
        kind: TopicKind,
        /// How long the identifier is, in bytes.
        actual: usize,
    },
    /// An inbox id is not 64 hexadecimal characters.
    #[error("the inbox id is not 64 hexadecimal characters")]
    InboxId,
}

/// A well-formed topic. Topics order by their bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic {
    kind: TopicKind,
    /// Kind byte, identifier, and zeros after a short one: one kind has one length, so comparing all of it compares
    /// the topics.
    padded: [u8; MAX_TOPIC_BYTES],
}

impl Topic {
    /// Reads a topic that a request names.
    ///
    /// # Errors
    /// [`TopicError`] when the kind is unknown or the identifier has the wrong length (TOPIC-003).
    pub fn parse(bytes: &[u8]) -> Result<Topic, TopicError> {
        let (&kind, identifier) = bytes.split_first().ok_or(TopicError::Empty)?;
        let kind = TopicKind::from_byte(kind).ok_or(TopicError::UnknownKind(kind))?;
        Topic::from_identifier(kind, identifier)
    }

    /// Reads the topic of a request's `Topic` message; an absent one is an empty one.
    ///
    /// # Errors
    /// As [`Topic::parse`].
    pub fn from_wire(topic: Option<&wire::Topic>) -> Result<Topic, TopicError> {
        Topic::parse(topic.map_or(&[], |topic| &topic.topic))
    }

    /// The topic of an identifier (TOPIC-001).
    ///
    /// # Errors
    /// [`TopicError::IdentifierLength`] when it has the wrong length for the kind (TOPIC-002).
    pub fn from_identifier(kind: TopicKind, identifier: &[u8]) -> Result<Topic, TopicError> {
        if identifier.len() != kind.identifier_bytes() {
            return Err(TopicError::IdentifierLength {
                kind,
                actual: identifier.len(),
            });
        }
        let mut padded = [0; MAX_TOPIC_BYTES];
        padded[0] = kind as u8;
        padded[1..=identifier.len()].copy_from_slice(identifier);
        Ok(Topic { kind, padded })
    }

    /// The identity topic of an inbox id in hexadecimal, of either letter case.
    ///
    /// # Errors
    /// [`TopicError::InboxId`] when it is not 64 hexadecimal characters (TOPIC-002).
    pub fn from_inbox_id(inbox_id: &str) -> Result<Topic, TopicError> {
        let (pairs, rest) = inbox_id.as_bytes().as_chunks::<2>();
        if pairs.len() != KEY_BYTES || !rest.is_empty() {
            return Err(TopicError::InboxId);
        }
        let mut identifier = [0; KEY_BYTES];
        for (byte, [high, low]) in identifier.iter_mut().zip(pairs) {
            *byte = hex_value(*high)? << 4 | hex_value(*low)?;
        }
        Topic::from_identifier(TopicKind::IdentityUpdate, &identifier)
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> TopicKind {
        self.kind
    }

    /// The identifier, without the kind byte.
    #[must_use]
    pub fn identifier(&self) -> &[u8] {
        &self.as_bytes()[1..]
    }

    /// Kind byte and identifier, as the wire carries them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.padded[..=self.kind.identifier_bytes()]
    }

    /// The wire message.
    #[must_use]
    pub fn to_wire(&self) -> wire::Topic {
        wire::Topic {
            topic: Bytes::copy_from_slice(self.as_bytes()),
        }
    }
}

/// The value of a hexadecimal digit of either case.
fn hex_value(digit: u8) -> Result<u8, TopicError> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(TopicError::InboxId)
}

/// In hexadecimal.
impl fmt::Display for Topic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Topic({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_byte_and_length() {
        let expected = [
            (TopicKind::GroupMessage, 0x00, 17),
            (TopicKind::Welcome, 0x01, 33),
            (TopicKind::IdentityUpdate, 0x02, 33),
            (TopicKind::KeyPackage, 0x03, 33),
            (TopicKind::CommitLog, 0x04, 17),
        ];
        for (kind, byte, length) in expected {
            let identifier = vec![0xab; kind.identifier_bytes()];
            let topic = Topic::from_identifier(kind, &identifier).expect("well formed");
            assert_eq!((topic.as_bytes()[0], topic.as_bytes().len()), (byte, length));
            assert_eq!((topic.kind(), topic.identifier()), (kind, &identifier[..]));
            assert_eq!(Topic::parse(topic.as_bytes()), Ok(topic));
            assert_eq!(Topic::from_wire(Some(&topic.to_wire())), Ok(topic));
        }
    }

    #[test]
    fn a_named_topic_has_a_known_kind_and_the_length_of_that_kind() {
        assert_eq!(Topic::parse(&[]), Err(TopicError::Empty));
        assert_eq!(Topic::from_wire(None), Err(TopicError::Empty));
        assert_eq!(Topic::parse(&[5; 33]), Err(TopicError::UnknownKind(5)));
        for kind in TopicKind::ALL {
            for length in (0..40).filter(|length| *length != kind.identifier_bytes()) {
                let bytes = [&[kind as u8][..], &vec![1; length]].concat();
                assert_eq!(
                    Topic::parse(&bytes),
                    Err(TopicError::IdentifierLength { kind, actual: length })
                );
            }
        }
    }

    #[test]
    fn an_inbox_id_is_read_in_either_case() {
        let lower = Topic::from_inbox_id(&"0f".repeat(32)).expect("hexadecimal");
        assert_eq!(Topic::from_inbox_id(&"0F".repeat(32)), Ok(lower));
        assert_eq!(lower.identifier(), [0x0f; 32]);
        for bad in [
            "",
            "0f",
            &"0f".repeat(31),
            &"0f".repeat(33),
            &"0f".repeat(32)[1..],
            &format!("{}0", "0f".repeat(32)),
            &format!("0x{}", "0f".repeat(31)),
            &"0g".repeat(32),
            &"é".repeat(32),
            &"+1".repeat(32),
        ] {
            assert_eq!(Topic::from_inbox_id(bad), Err(TopicError::InboxId), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn topics_order_by_their_bytes(a in topic_bytes(), b in topic_bytes()) {
            let (Ok(left), Ok(right)) = (Topic::parse(&a), Topic::parse(&b)) else { panic!("well formed") };
            proptest::prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }

        #[test]
        fn any_bytes_are_a_topic_or_refused(bytes in proptest::collection::vec(0u8..7, 0..40)) {
            if let Ok(topic) = Topic::parse(&bytes) {
                proptest::prop_assert_eq!(topic.as_bytes(), &bytes[..]);
            }
        }
    }

    fn topic_bytes() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
        use proptest::strategy::Strategy as _;
        (0usize..5, proptest::collection::vec(0u8..3, KEY_BYTES)).prop_map(|(kind, identifier)| {
            let kind = TopicKind::ALL[kind];
            [&[kind as u8][..], &identifier[..kind.identifier_bytes()]].concat()
        })
    }
}
