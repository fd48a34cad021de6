//! Signatures of smart contract wallets (IDENT-060 to 062): the form is read here, the verdict is a chain's. Depends on
//! identifiers.
//!
//! The code here lists what has to be asked ([`WalletQuestion`]) and takes answers ([`WalletVerdicts`]). How a chain is
//! asked, by ERC-6492 validation at the block, is the caller's.

use bytes::Bytes;
use conclave_proto::xmtp::identity::associations::SmartContractWalletSignature;

use super::{CheckedSignature, ReplayKey, SignatureError, VerifiedSignature};
use crate::identifier::{EthereumAddress, MemberIdentifier};

/// How much older than the head a block may be when an update is admitted, in seconds (IDENT-062).
pub const MAX_BLOCK_AGE_SECONDS: u64 = 1800;

/// A CAIP-10 account on an EIP-155 chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountId {
    /// The EIP-155 number of the chain.
    pub chain_id: u64,
    /// The account.
    pub address: EthereumAddress,
}

impl AccountId {
    /// Reads `eip155:<number>:<address>`. The number is canonical decimal; the address may have letters of either case.
    /// `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<AccountId> {
        let (number, address) = text.strip_prefix("eip155:")?.split_once(':')?;
        let digits = number.bytes().all(|digit| digit.is_ascii_digit());
        let canonical = digits && (number == "0" || !number.starts_with('0'));
        Some(AccountId {
            chain_id: canonical.then(|| number.parse().ok()).flatten()?,
            address: EthereumAddress::parse_any_case(address)?,
        })
    }
}

/// What a chain has to say about one signature. Equal questions have equal answers for ever, outages aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WalletQuestion {
    /// Whose signature it should be.
    pub account: AccountId,
    /// The block whose state judges it.
    pub block_number: u64,
    /// What is signed.
    pub hash: [u8; 32],
    /// The signature, in whatever form the wallet defines.
    pub signature: Bytes,
}

/// What came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WalletVerdict {
    /// The wallet accepts the signature at a block that is fresh.
    Valid,
    /// The wallet refuses it.
    Invalid,
    /// The block is ahead of the head or too old ([`is_fresh`]).
    BlockNotFresh,
    /// No verdict: no route to the chain, or the call failed. Not a rejection (API-231).
    Unavailable,
}

/// Answers to the questions of an update.
pub trait WalletVerdicts {
    /// The verdict on a question. [`WalletVerdict::Unavailable`] when there is none.
    fn verdict(&self, question: &WalletQuestion) -> WalletVerdict;
}

impl<F: Fn(&WalletQuestion) -> WalletVerdict> WalletVerdicts for F {
    fn verdict(&self, question: &WalletQuestion) -> WalletVerdict {
        self(question)
    }
}

/// The number and time of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its height.
    pub number: u64,
    /// When it was made, in seconds since the Unix epoch.
    pub timestamp_seconds: u64,
}

/// Whether an update may name a block while the chain has this head (IDENT-062). Asked at admission only.
#[must_use]
pub const fn is_fresh(head: Block, block: Block) -> bool {
    block.number <= head.number
        && head.timestamp_seconds.saturating_sub(block.timestamp_seconds) <= MAX_BLOCK_AGE_SECONDS
}

/// Reads a wallet's signature of a hash.
///
/// # Errors
/// [`SignatureError::Unreadable`] when the account id is not one; it never will be, so no chain is asked.
pub(super) fn check(
    hash: [u8; 32],
    signature: &SmartContractWalletSignature,
) -> Result<CheckedSignature, SignatureError> {
    let account = AccountId::parse(&signature.account_id).ok_or(SignatureError::Unreadable(
        "a wallet's account id is not eip155:<number>:<address>",
    ))?;
    Ok(CheckedSignature {
        verified: VerifiedSignature {
            signer: MemberIdentifier::Ethereum(account.address),
            replay_key: ReplayKey::of(&signature.signature),
            chain_id: Some(account.chain_id),
        },
        question: Some(WalletQuestion {
            account,
            block_number: signature.block_number,
            hash,
            signature: signature.signature.clone(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "0x1111111111111111111111111111111111111111";

    // API-230
    #[test]
    fn an_account_id_has_a_chain_and_an_address() {
        let upper = "0xABCDEFabcdef1111111111111111111111111111";
        for (text, chain_id, address) in [
            (format!("eip155:1:{ADDRESS}"), 1, ADDRESS.to_owned()),
            (format!("eip155:0:{ADDRESS}"), 0, ADDRESS.to_owned()),
            (
                format!("eip155:{}:{upper}", u64::MAX),
                u64::MAX,
                upper.to_lowercase(),
            ),
        ] {
            let account = AccountId::parse(&text).expect("an account id");
            assert_eq!(
                (account.chain_id, account.address.to_string()),
                (chain_id, address)
            );
        }
        for text in [
            String::new(),
            "eip155".to_owned(),
            "eip155:".to_owned(),
            "eip155:1".to_owned(),
            "eip155:1:".to_owned(),
            format!("cosmos:1:{ADDRESS}"),
            format!("EIP155:1:{ADDRESS}"),
            format!("eip155:01:{ADDRESS}"),
            format!("eip155:+1:{ADDRESS}"),
            format!("eip155:-1:{ADDRESS}"),
            format!("eip155:0x1:{ADDRESS}"),
            format!("eip155::{ADDRESS}"),
            format!("eip155:18446744073709551616:{ADDRESS}"),
            format!("eip155:1:{}", &ADDRESS[2..]),
            format!("eip155:1:{}", &ADDRESS[..41]),
            format!("eip155:1:{ADDRESS}1"),
            format!("eip155:1:{ADDRESS}:"),
            format!("eip155:1:{}", ADDRESS.replacen('1', "g", 1)),
            format!(" eip155:1:{ADDRESS}"),
        ] {
            assert_eq!(AccountId::parse(&text), None, "{text}");
        }
    }

    // API-230
    #[test]
    fn a_block_is_fresh_for_half_an_hour() {
        let block = |number, timestamp_seconds| Block {
            number,
            timestamp_seconds,
        };
        let head = block(100, 10_000);
        assert!(is_fresh(head, head));
        assert!(is_fresh(head, block(50, 10_000 - 1800)));
        assert!(!is_fresh(head, block(50, 10_000 - 1801)));
        assert!(!is_fresh(head, block(101, 10_000)));
        assert!(is_fresh(head, block(99, 10_001)));
        assert!(!is_fresh(block(0, u64::MAX), block(0, 0)));
    }
}
