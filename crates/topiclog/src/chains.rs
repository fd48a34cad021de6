//! What chains say about the signatures of smart contract wallets (contract section 6, API-231, API-271). Depends on
//! `identity` for accounts.
//!
//! Asked by the Worker alone, never by a shard. How a chain is reached is not known here: whoever serves a deployment
//! with chains implements [`Chains`]; one without them uses [`NoChains`].

use std::fmt;

use bytes::Bytes;
use conclave_identity::{AccountId, WalletQuestion, WalletVerdict};
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

impl Unavailable {
    /// The deployment has no way to reach the chain.
    #[must_use]
    pub fn no_route(chain_id: u64) -> Unavailable {
        Unavailable {
            chain_id,
            reason: "this deployment reaches no such chain".to_owned(),
        }
    }
}

/// The chains of a deployment. Questions are asked together, so that what they share is read once.
///
/// Every future ends within its deadline, in milliseconds from the call, without a verdict if need be.
pub trait Chains: fmt::Debug {
    /// Judges signatures: one verdict a question, in the order of the questions, or none at all.
    fn verify<'a>(
        &'a self,
        questions: &'a [ChainQuestion],
        deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<Vec<ChainVerdict>, Unavailable>>;

    /// Judges the wallet signatures of an identity update that is to be admitted now, freshness of their blocks included
    /// ([`conclave_identity::signature::wallet::is_fresh`], IDENT-062): one verdict a question, in the order of the
    /// questions. One that gets none does not keep the others from theirs.
    fn admit<'a>(
        &'a self,
        questions: &'a [&'a WalletQuestion],
        deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Vec<WalletVerdict>>;
}

/// A deployment without chains: it publishes none (CONF-070), and reaches no verdict about a wallet of any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoChains;

impl Chains for NoChains {
    fn verify<'a>(
        &'a self,
        questions: &'a [ChainQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<Vec<ChainVerdict>, Unavailable>> {
        let verdicts = match questions.first() {
            Some(question) => Err(Unavailable::no_route(question.account.chain_id)),
            None => Ok(Vec::new()),
        };
        Box::pin(ready(verdicts))
    }

    fn admit<'a>(
        &'a self,
        questions: &'a [&'a WalletQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Vec<WalletVerdict>> {
        Box::pin(ready(vec![WalletVerdict::Unavailable; questions.len()]))
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
        let verdicts = NoChains
            .verify(std::slice::from_ref(&question), 1_000)
            .now_or_never();
        assert!(matches!(verdicts, Some(Err(Unavailable { chain_id: 1, .. }))));
        let asked = WalletQuestion {
            account: question.account,
            block_number: 1,
            hash: question.hash,
            signature: question.signature,
        };
        let verdicts = NoChains.admit(&[&asked, &asked], 1_000).now_or_never();
        assert_eq!(verdicts, Some(vec![WalletVerdict::Unavailable; 2]));
    }
}
