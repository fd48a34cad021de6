//! What blocks say of each other and of the time (IDENT-062). Depends on `identity` for the rule of freshness.

use conclave_identity::signature::wallet::{Block, is_fresh};

use crate::rpc::NodeFault;

/// How old a node's newest block may be, in seconds, for the node to judge what is fresh: as old as a fresh block may be.
/// A node that has seen nothing for longer would call fresh what is not.
pub const HEAD_AGE_SECONDS_MAX: u64 = conclave_identity::signature::wallet::MAX_BLOCK_AGE_SECONDS;
/// How old a node's newest block may be, in seconds, for the node to say that a later one does not exist. Five blocks of
/// the slowest chain in use.
pub const HEAD_CURRENT_SECONDS: u64 = 60;

/// A block as a node describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number and time.
    pub block: Block,
    /// The block's hash, which names its state for ever.
    pub hash: [u8; 32],
}

/// Whether an update may name the block `number`, by a node whose newest block is `head`, read before `block` was.
///
/// # Errors
/// [`NodeFault`] when the node lags behind, so that it cannot say, or when its blocks contradict each other.
pub fn freshness(
    head: Header,
    number: u64,
    block: Result<Header, NodeFault>,
    now_seconds: u64,
) -> Result<bool, NodeFault> {
    let age_seconds = now_seconds.saturating_sub(head.block.timestamp_seconds);
    if age_seconds > HEAD_AGE_SECONDS_MAX {
        return Err(NodeFault::StaleHead { age_seconds });
    }
    match block {
        Err(NodeFault::NoSuchBlock { .. }) if number > head.block.number => {
            if age_seconds > HEAD_CURRENT_SECONDS {
                return Err(NodeFault::StaleHead { age_seconds });
            }
            Ok(false)
        }
        Err(fault) => Err(fault),
        // Made between the two reads.
        Ok(block) if block.block.number > head.block.number => Ok(true),
        Ok(block) => {
            let is_later = block.block.timestamp_seconds > head.block.timestamp_seconds;
            let is_other = block.block.number == head.block.number && block.hash != head.hash;
            if is_later || is_other {
                return Err(NodeFault::Contradiction);
            }
            Ok(is_fresh(head.block, block.block))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn header(number: u64, age_seconds: u64) -> Header {
        Header {
            block: Block {
                number,
                timestamp_seconds: NOW - age_seconds,
            },
            hash: [u8::try_from(number).expect("a small number"); 32],
        }
    }

    fn missing(number: u64) -> Result<Header, NodeFault> {
        Err(NodeFault::NoSuchBlock { number })
    }

    // API-230
    #[test]
    fn a_block_is_fresh_for_half_an_hour_before_the_head() {
        let judge = |head, block: Header| freshness(head, block.block.number, Ok(block), NOW);
        assert_eq!(judge(header(9, 5), header(9, 5)), Ok(true));
        assert_eq!(judge(header(9, 5), header(2, 1_805)), Ok(true));
        assert_eq!(judge(header(9, 5), header(2, 1_806)), Ok(false));
        assert_eq!(judge(header(9, 5), header(10, 3)), Ok(true));
    }

    // API-231
    #[test]
    fn a_future_block_is_refused_only_by_a_node_that_is_current() {
        assert_eq!(freshness(header(9, 60), 10, missing(10), NOW), Ok(false));
        assert_eq!(
            freshness(header(9, 61), 10, missing(10), NOW),
            Err(NodeFault::StaleHead { age_seconds: 61 })
        );
    }

    // API-231
    #[test]
    fn a_node_that_lags_or_forgot_or_contradicts_itself_says_nothing() {
        let head = header(9, 1_801);
        assert_eq!(
            freshness(head, 9, Ok(head), NOW),
            Err(NodeFault::StaleHead { age_seconds: 1_801 })
        );
        assert_eq!(
            freshness(header(9, 5), 8, missing(8), NOW),
            missing(8).map(|_| true)
        );
        assert_eq!(
            freshness(header(9, 5), 8, Ok(header(8, 4)), NOW),
            Err(NodeFault::Contradiction)
        );
        let other = Header {
            hash: [0; 32],
            ..header(9, 5)
        };
        assert_eq!(
            freshness(header(9, 5), 9, Ok(other), NOW),
            Err(NodeFault::Contradiction)
        );
    }
}
