//! The closed values of a conversation, as members seal them to each other and keep them.

use conclave_conversation::values::{
    ActionCore, AnchorBody, CertifiedRecord, ClosedValue, Content, ConversationInvitation, Plaintext,
    PostIntent, RecordCore,
};

fn is_canonical<T: ClosedValue>(data: &[u8]) {
    if let Ok(value) = T::decode(data) {
        assert_eq!(value.encode(), data, "{}", T::NAME);
    }
}

/// Whatever is read is written back byte for byte.
pub fn run(data: &[u8]) {
    if let Ok(plaintext) = Plaintext::decode(data) {
        assert_eq!(plaintext.encode(), data);
    }
    if let Ok(content) = Content::decode(data) {
        assert_eq!(content.encode(), data);
    }
    is_canonical::<PostIntent>(data);
    is_canonical::<ActionCore>(data);
    is_canonical::<RecordCore>(data);
    is_canonical::<AnchorBody>(data);
    is_canonical::<CertifiedRecord>(data);
    is_canonical::<ConversationInvitation>(data);
}
