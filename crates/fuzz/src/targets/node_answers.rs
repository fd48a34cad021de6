//! What nodes of EVM chains answer.

use conclave_chain::rpc::{NodeFault, read_block, read_verdict};
use conclave_topiclog::chains::BlockChoice;

/// An answer about one block or chain is none about another.
pub fn run(data: &[u8]) {
    if let Ok(header) = read_block(data, BlockChoice::Latest) {
        let number = header.block.number;
        assert_eq!(read_block(data, BlockChoice::Number(number)), Ok(header));
        let other = number.wrapping_add(1);
        assert_eq!(
            read_block(data, BlockChoice::Number(other)),
            Err(NodeFault::OtherBlock {
                asked: other,
                answered: number
            })
        );
    }
    let verdicts = [1, 2].map(|chain_id| read_verdict(data, chain_id));
    assert!(verdicts.iter().any(Result::is_err));
}
