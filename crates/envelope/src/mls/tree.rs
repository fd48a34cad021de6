//! The structures inside a PublicMessage (RFC 9420, sections 7, 10 and 12), walked to find where they end. Depends on
//! the reader.
//!
//! A PublicMessage has no outer length, so that it is cut short shows only when it is read to its end. No structure
//! contains itself, so the depth is constant. Values inside are not judged.

use super::reader::{Malformed, Reader};

type Walk = Result<(), Malformed>;

/// A Commit.
pub(super) fn commit(reader: &mut Reader<'_>) -> Walk {
    reader.vec_of(proposal_or_reference)?;
    reader.optional(update_path)
}

fn proposal_or_reference(reader: &mut Reader<'_>) -> Walk {
    let here = reader.clone();
    match reader.u8()? {
        1 => proposal(reader),
        2 => reader.vec().map(drop),
        _ => Err(here.malformed("neither a proposal nor a reference to one")),
    }
}

/// A Proposal. One of an unknown type is a vector, as MLS libraries frame their own; RFC 9420 frames none.
pub(super) fn proposal(reader: &mut Reader<'_>) -> Walk {
    match reader.u16()? {
        0x0001 => key_package(reader),
        0x0002 => leaf_node(reader),
        0x0003 => reader.u32().map(drop),
        0x0004 => pre_shared_key(reader),
        0x0005 => reinit(reader),
        0x0006 => reader.vec().map(drop),
        0x0007 => reader.vec_of(extension),
        0x0008 => app_data_update(reader),
        0x0009 => {
            let _component_id = reader.u16()?;
            reader.vec().map(drop)
        }
        // self_remove
        0x000a => Ok(()),
        _ => reader.vec().map(drop),
    }
}

fn pre_shared_key(reader: &mut Reader<'_>) -> Walk {
    let here = reader.clone();
    match reader.u8()? {
        1 => {
            let _psk_id = reader.vec()?;
        }
        2 => {
            let _usage = reader.u8()?;
            let _psk_group_id = reader.vec()?;
            let _psk_epoch = reader.u64()?;
        }
        _ => return Err(here.malformed("an unknown type of pre-shared key")),
    }
    let _psk_nonce = reader.vec()?;
    Ok(())
}

fn reinit(reader: &mut Reader<'_>) -> Walk {
    let _group_id = reader.vec()?;
    let _version = reader.u16()?;
    let _cipher_suite = reader.u16()?;
    reader.vec_of(extension)
}

fn app_data_update(reader: &mut Reader<'_>) -> Walk {
    let _component_id = reader.u16()?;
    let here = reader.clone();
    match reader.u8()? {
        1 => reader.vec().map(drop),
        2 => Ok(()),
        _ => Err(here.malformed("an unknown operation on application data")),
    }
}

fn update_path(reader: &mut Reader<'_>) -> Walk {
    leaf_node(reader)?;
    reader.vec_of(|node| {
        let _encryption_key = node.vec()?;
        node.vec_of(|ciphertext| {
            let _kem_output = ciphertext.vec()?;
            let _ciphertext = ciphertext.vec()?;
            Ok(())
        })
    })
}

fn key_package(reader: &mut Reader<'_>) -> Walk {
    let _version = reader.u16()?;
    let _cipher_suite = reader.u16()?;
    let _init_key = reader.vec()?;
    leaf_node(reader)?;
    reader.vec_of(extension)?;
    let _signature = reader.vec()?;
    Ok(())
}

fn leaf_node(reader: &mut Reader<'_>) -> Walk {
    let _encryption_key = reader.vec()?;
    let _signature_key = reader.vec()?;
    let _credential_type = reader.u16()?;
    let _credential = reader.vec()?;
    // The capabilities: versions, cipher suites, extensions, proposals, credentials.
    for _ in 0..5 {
        reader.vec_of(|item| item.u16().map(drop))?;
    }
    let here = reader.clone();
    match reader.u8()? {
        1 => {
            let _not_before = reader.u64()?;
            let _not_after = reader.u64()?;
        }
        2 => {}
        3 => {
            let _parent_hash = reader.vec()?;
        }
        _ => return Err(here.malformed("an unknown source of a leaf node")),
    }
    reader.vec_of(extension)?;
    let _signature = reader.vec()?;
    Ok(())
}

fn extension(reader: &mut Reader<'_>) -> Walk {
    let _extension_type = reader.u16()?;
    let _extension_data = reader.vec()?;
    Ok(())
}
