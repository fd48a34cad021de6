//! An MLSMessage (RFC 9420, section 6) as a group message carries it. Depends on the reader.

use super::{
    reader::{Malformed, Reader},
    tree,
};

/// The protocol version there is.
const VERSION_MLS_10: u16 = 1;
const WIRE_FORMAT_PUBLIC_MESSAGE: u16 = 1;
const WIRE_FORMAT_PRIVATE_MESSAGE: u16 = 2;

/// What a group message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// Application data.
    Application,
    /// A proposal to change the group.
    Proposal,
    /// A change of the group.
    Commit,
}

/// Who sent a PublicMessage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SenderType {
    Member,
    External,
    NewMemberProposal,
    NewMemberCommit,
}

/// What the framing of a group message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing<'a> {
    /// The group id, of any length.
    pub group_id: &'a [u8],
    /// What the message carries.
    pub content_type: ContentType,
    /// How long the MLSMessage is, in bytes. What follows it is not part of it.
    pub length: usize,
}

impl<'a> Framing<'a> {
    /// Reads a whole MLSMessage whose body is a PublicMessage or a PrivateMessage. Bytes after it are left unread.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are not such a message, or end within it.
    pub fn parse(bytes: &'a [u8]) -> Result<Framing<'a>, Malformed> {
        let mut reader = Reader::new(bytes);
        let here = reader.clone();
        if reader.u16()? != VERSION_MLS_10 {
            return Err(here.malformed("a version other than MLS 1.0"));
        }
        let here = reader.clone();
        let (group_id, content_type) = match reader.u16()? {
            WIRE_FORMAT_PUBLIC_MESSAGE => public_message(&mut reader)?,
            WIRE_FORMAT_PRIVATE_MESSAGE => private_message(&mut reader)?,
            _ => return Err(here.malformed("a wire format that is no group message")),
        };
        Ok(Framing {
            group_id,
            content_type,
            length: reader.offset(),
        })
    }
}

fn private_message<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], ContentType), Malformed> {
    let group_id = reader.vec()?;
    let _epoch = reader.u64()?;
    let content_type = content_type(reader)?;
    let _authenticated_data = reader.vec()?;
    let _encrypted_sender_data = reader.vec()?;
    let _ciphertext = reader.vec()?;
    Ok((group_id, content_type))
}

fn public_message<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], ContentType), Malformed> {
    let group_id = reader.vec()?;
    let _epoch = reader.u64()?;
    let sender_type = sender_type(reader)?;
    if matches!(sender_type, SenderType::Member | SenderType::External) {
        let _sender_index = reader.u32()?;
    }
    let _authenticated_data = reader.vec()?;
    let content_type = content_type(reader)?;
    match content_type {
        ContentType::Application => drop(reader.vec()?),
        ContentType::Proposal => tree::proposal(reader)?,
        ContentType::Commit => tree::commit(reader)?,
    }
    let _signature = reader.vec()?;
    if content_type == ContentType::Commit {
        let _confirmation_tag = reader.vec()?;
    }
    if sender_type == SenderType::Member {
        let _membership_tag = reader.vec()?;
    }
    Ok((group_id, content_type))
}

fn content_type(reader: &mut Reader<'_>) -> Result<ContentType, Malformed> {
    let here = reader.clone();
    match reader.u8()? {
        1 => Ok(ContentType::Application),
        2 => Ok(ContentType::Proposal),
        3 => Ok(ContentType::Commit),
        _ => Err(here.malformed("an unknown content type")),
    }
}

fn sender_type(reader: &mut Reader<'_>) -> Result<SenderType, Malformed> {
    let here = reader.clone();
    match reader.u8()? {
        1 => Ok(SenderType::Member),
        2 => Ok(SenderType::External),
        3 => Ok(SenderType::NewMemberProposal),
        4 => Ok(SenderType::NewMemberCommit),
        _ => Err(here.malformed("an unknown sender type")),
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
