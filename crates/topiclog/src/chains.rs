//! What chains say about the signatures of smart contract wallets (contract section 6, API-231, API-271). Depends on
//! `identity` for accounts.
//!
//! Asked by the Worker alone, never by a shard. How a chain is reached is not known here: whoever serves a deployment
//! with chains implements [`Chains`]; one without them uses [`NoChains`].

use std::fmt;

use bytes::Bytes;
use conclave_identity::AccountId;
use futures_util::future::{LocalBoxFuture, ready};

/// The block whose state judges a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockChoice {
    /// The block of this number.
    Number(u64),
    /// The newest block when the chain is asked.
    Latest,
}

/// A signature of a wallet, to be judged by ERC-6492: counterfactual deployment, ERC-1271, then plain recovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChainQuestion {
    /// Whose signature it should be, and on which chain.
    pub account: AccountId,
    /// The block whose state judges it.
    pub block: BlockChoice,
    /// What is signed.
    pub hash: [u8; 32],
    /// The signature, in whatever form the wallet defines.
    pub signature: Bytes,
}

/// What a chain answered. Equal questions about one block have equal answers for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainVerdict {
    /// Whether the wallet accepts the signature.
    pub is_valid: bool,
    /// The block the verdict was reached at.
    pub block_number: u64,
}

/// No verdict could be reached: UNAVAILABLE, and never a verdict (API-231).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chain {chain_id} gives no verdict: {reason}")]
pub struct Unavailable {
    /// The EIP-155 number of the chain.
    pub chain_id: u64,
    /// Why, for people.
    pub reason: String,
}

/// The chains of a deployment.
///
/// Every future ends within its deadline, in milliseconds from the call, as [`Unavailable`] if need be.
pub trait Chains: fmt::Debug {
    /// Judges a signature.
    fn verify<'a>(
        &'a self,
        question: &'a ChainQuestion,
        deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<ChainVerdict, Unavailable>>;

    /// Whether an identity update that is admitted now may name this block
    /// ([`conclave_identity::signature::wallet::is_fresh`], IDENT-062).
    fn is_fresh(
        &self,
        chain_id: u64,
        block_number: u64,
        deadline_ms: u32,
    ) -> LocalBoxFuture<'_, Result<bool, Unavailable>>;
}

/// A deployment without chains: it publishes none (CONF-070), and reaches no verdict about a wallet of any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoChains;

impl NoChains {
    fn none(chain_id: u64) -> Unavailable {
        Unavailable {
            chain_id,
            reason: "this deployment reaches no such chain".to_owned(),
        }
    }
}

impl Chains for NoChains {
    fn verify<'a>(
        &'a self,
        question: &'a ChainQuestion,
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<ChainVerdict, Unavailable>> {
        Box::pin(ready(Err(Self::none(question.account.chain_id))))
    }

    fn is_fresh(
        &self,
        chain_id: u64,
        _block_number: u64,
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'_, Result<bool, Unavailable>> {
        Box::pin(ready(Err(Self::none(chain_id))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    // API-231
    #[test]
    fn without_chains_there_is_no_verdict_and_nothing_is_called_invalid() {
        let question = ChainQuestion {
            account: AccountId::parse("eip155:1:0x1111111111111111111111111111111111111111")
                .expect("an account"),
            block: BlockChoice::Latest,
            hash: [0; 32],
            signature: Bytes::new(),
        };
        let verdict = NoChains.verify(&question, 1_000).now_or_never();
        assert!(matches!(verdict, Some(Err(Unavailable { chain_id: 1, .. }))));
        let fresh = NoChains.is_fresh(10, 1, 1_000).now_or_never();
        assert!(matches!(fresh, Some(Err(Unavailable { chain_id: 10, .. }))));
    }
}
