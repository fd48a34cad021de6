//! What several identity updates of one request mean for each other (API-233, API-296). Depends on handles and the
//! wire type.

use conclave_proto::xmtp::identity::associations::{IdentityUpdate, identity_action::Kind};

use crate::handle::Handle;

/// An identity update of a request, in the order of the request. Entries of other kinds are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestUpdate {
    /// Its index in the request.
    pub index: usize,
    /// The 32 bytes of its inbox id, which tell inboxes apart whatever the letter case of the id.
    pub inbox: [u8; 32],
    /// The hash of its stored bytes.
    pub message_hash: [u8; 32],
    /// The handle it claims.
    pub handle: Option<Handle>,
}

impl RequestUpdate {
    /// What matters of an update. A handle that is none is no claim here; its update fails for its structure.
    #[must_use]
    pub fn new(
        index: usize,
        inbox: [u8; 32],
        message_hash: [u8; 32],
        update: &IdentityUpdate,
    ) -> RequestUpdate {
        let claim = update.actions.iter().find_map(|action| match &action.kind {
            Some(Kind::ClaimHandle(claim)) => Some(claim),
            _ => None,
        });
        RequestUpdate {
            index,
            inbox,
            message_hash,
            handle: claim.and_then(|claim| Handle::parse(&claim.handle)),
        }
    }
}

/// The lowest index of an update whose inbox has another one, not its duplicate, at a lower index (API-233). Updates that
/// duplicate stored ones count ([`crate::choices::STORED_DUPLICATES_COUNT`]).
#[must_use]
pub fn second_of_an_inbox(updates: &[RequestUpdate]) -> Option<usize> {
    let mut first: std::collections::HashMap<&[u8; 32], &[u8; 32]> = std::collections::HashMap::new();
    updates
        .iter()
        .find(|update| *first.entry(&update.inbox).or_insert(&update.message_hash) != &update.message_hash)
        .map(|update| update.index)
}

/// Whether an update at a lower index claims the handle for another inbox (API-296).
#[must_use]
pub fn is_claimed_below(updates: &[RequestUpdate], index: usize) -> bool {
    let Some(update) = updates.iter().find(|update| update.index == index) else {
        return false;
    };
    update.handle.is_some()
        && updates
            .iter()
            .any(|other| other.index < index && other.inbox != update.inbox && other.handle == update.handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(index: usize, inbox: u8, hash: u8, handle: Option<&str>) -> RequestUpdate {
        RequestUpdate {
            index,
            inbox: [inbox; 32],
            message_hash: [hash; 32],
            handle: handle.and_then(Handle::parse),
        }
    }

    // API-233
    #[test]
    fn the_second_update_of_an_inbox_fails_and_a_duplicate_does_not() {
        let list = |parts: &[(u8, u8)]| {
            let updates: Vec<_> = (0..)
                .zip(parts)
                .map(|(index, (inbox, hash))| update(index * 2, *inbox, *hash, None))
                .collect();
            second_of_an_inbox(&updates)
        };
        assert_eq!(list(&[]), None);
        assert_eq!(list(&[(1, 1), (2, 2), (3, 3)]), None);
        assert_eq!(list(&[(1, 1), (1, 1), (2, 2), (1, 1)]), None);
        assert_eq!(list(&[(1, 1), (2, 2), (1, 3), (2, 4)]), Some(4));
        assert_eq!(list(&[(1, 1), (1, 1), (1, 2)]), Some(4));
        assert_eq!(list(&[(1, 1), (1, 2), (1, 1)]), Some(2));
    }

    // API-296
    #[test]
    fn a_handle_claimed_at_a_lower_index_for_another_inbox_is_taken() {
        let updates = [
            update(0, 1, 1, Some("alice")),
            update(1, 2, 2, None),
            update(3, 3, 3, Some("alice")),
            update(4, 1, 1, Some("alice")),
            update(5, 4, 5, Some("bob")),
        ];
        let claimed: Vec<usize> = (0..6)
            .filter(|index| is_claimed_below(&updates, *index))
            .collect();
        assert_eq!(claimed, [3, 4]);
        assert!(!is_claimed_below(&updates[1..], 1));
    }
}
