//! VerifySmartContractWalletSignatures (contract section 6, API-271, API-231). Depends on the chains of the deployment.

use bytes::Bytes;
use conclave_envelope::request::decode_verification;
use conclave_grpc_web::Status;
use conclave_identity::AccountId;
use conclave_proto::xmtp::backend::v1::{
    VerifySmartContractWalletSignaturesRequest, VerifySmartContractWalletSignaturesResponse,
    verify_smart_contract_wallet_signatures_request::Signature,
    verify_smart_contract_wallet_signatures_response::Response,
};
use prost::Message as _;

use super::{Backend, CallContext, query::invalid};
use crate::{
    chains::{BlockChoice, ChainQuestion},
    platform::Platform,
};

/// The length of a hash that a wallet signs, in bytes.
const HASH_BYTES: usize = 32;

/// The one namespace of CAIP-10 whose accounts can be asked.
const EVM_NAMESPACE: &str = "eip155";

impl<P: Platform> Backend<P> {
    pub(super) async fn verify_wallet_signatures(
        &self,
        message: Bytes,
        context: &CallContext,
    ) -> Result<Vec<u8>, Status> {
        let limits = &self.configuration.limits;
        let request = decode_verification(message, limits).map_err(|error| invalid(&error))?;
        let questions = read(request)?;
        let verdicts = self
            .isolate
            .chains()
            .verify(&questions, self.call_deadline_ms(context))
            .await
            .map_err(|outage| Status::unavailable(outage.to_string()))?;
        let responses = verdicts.into_iter().map(|verdict| Response {
            is_valid: verdict.is_valid,
            block_number: Some(verdict.block_number),
            error: None,
        });
        Ok(VerifySmartContractWalletSignaturesResponse {
            responses: responses.collect(),
        }
        .encode_to_vec())
    }
}

/// The questions of a request.
///
/// # Errors
/// INVALID_ARGUMENT for a malformed entry, whatever the other entries are; UNAVAILABLE for an account on a chain that is
/// none of Ethereum's kind.
fn read(request: VerifySmartContractWalletSignaturesRequest) -> Result<Vec<ChainQuestion>, Status> {
    let read: Vec<Option<ChainQuestion>> = (0..)
        .zip(request.signatures)
        .map(|(index, signature)| read_one(index, signature))
        .collect::<Result<_, _>>()?;
    read.into_iter()
        .map(|question| {
            question.ok_or_else(|| Status::unavailable("a signature is of a chain that cannot be asked"))
        })
        .collect()
}

/// The question of one entry, or nothing for an account of another kind of chain.
fn read_one(index: usize, signature: Signature) -> Result<Option<ChainQuestion>, Status> {
    let malformed = |what: &str| Status::invalid_argument(format!("signature {index}: {what}"));
    let hash: [u8; HASH_BYTES] = signature
        .hash
        .as_ref()
        .try_into()
        .map_err(|_| malformed("the hash does not have 32 bytes"))?;
    let (namespace, _) = split_caip10(&signature.account_id)
        .ok_or_else(|| malformed("the account id is not a CAIP-10 account id"))?;
    if namespace != EVM_NAMESPACE {
        return Ok(None);
    }
    let account = AccountId::parse(&signature.account_id)
        .ok_or_else(|| malformed("the account id is not eip155:<number>:<address>"))?;
    Ok(Some(ChainQuestion {
        account,
        block: signature
            .block_number
            .map_or(BlockChoice::Latest, BlockChoice::Number),
        hash,
        signature: signature.signature,
    }))
}

/// The namespace of a CAIP-10 account id, and the rest. `None` for what is none.
fn split_caip10(text: &str) -> Option<(&str, &str)> {
    let is = |part: &str, longest: usize, allowed: fn(u8) -> bool| {
        (1..=longest).contains(&part.len()) && part.bytes().all(allowed)
    };
    let (namespace, rest) = text.split_once(':')?;
    let (reference, address) = rest.split_once(':')?;
    let is_namespace = namespace.len() >= 3
        && is(namespace, 8, |byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
        });
    let is_reference = is(reference, 32, |byte| {
        byte.is_ascii_alphanumeric() || b"-_".contains(&byte)
    });
    let is_address = is(address, 128, |byte| {
        byte.is_ascii_alphanumeric() || b"-.%".contains(&byte)
    });
    (is_namespace && is_reference && is_address).then_some((namespace, rest))
}

#[cfg(test)]
mod tests {
    use conclave_grpc_web::Code;

    use super::*;

    const ADDRESS: &str = "0x1111111111111111111111111111111111111111";

    fn entry(account_id: &str, hash_bytes: usize) -> Signature {
        Signature {
            account_id: account_id.to_owned(),
            block_number: None,
            hash: vec![1; hash_bytes].into(),
            signature: Bytes::new(),
        }
    }

    fn read_all(signatures: Vec<Signature>) -> Result<Vec<ChainQuestion>, Code> {
        read(VerifySmartContractWalletSignaturesRequest { signatures }).map_err(|status| status.code)
    }

    // API-271
    #[test]
    fn a_malformed_account_or_hash_fails_the_whole_request() {
        let good = || entry(&format!("eip155:1:{ADDRESS}"), 32);
        assert_eq!(
            read_all(vec![good(), good()]).map(|questions| questions.len()),
            Ok(2)
        );
        assert_eq!(read_all(Vec::new()).map(|questions| questions.len()), Ok(0));
        for bad in [
            entry(&format!("eip155:1:{ADDRESS}"), 31),
            entry(&format!("eip155:1:{ADDRESS}"), 33),
            entry(&format!("eip155:1:{ADDRESS}"), 0),
            entry("", 32),
            entry("eip155:1", 32),
            entry("eip155:1:0x11", 32),
            entry(&format!("eip155:01:{ADDRESS}"), 32),
            entry(&format!("EIP155:1:{ADDRESS}"), 32),
            entry(&format!("eip155:1:{ADDRESS}:"), 32),
            entry("ab:1:x", 32),
            entry("cosmos::x", 32),
        ] {
            let text = format!("{bad:?}");
            let other = entry("cosmos:hub-3:cosmos1abc", 32);
            assert_eq!(
                read_all(vec![good(), other, bad]),
                Err(Code::InvalidArgument),
                "{text}"
            );
        }
    }

    // API-231, API-271
    #[test]
    fn an_account_of_another_kind_of_chain_gets_no_verdict() {
        assert_eq!(
            read_all(vec![entry("cosmos:hub-3:cosmos1abc", 32)]),
            Err(Code::Unavailable)
        );
    }

    #[test]
    fn a_stated_block_is_asked_for_and_none_means_the_newest() {
        let stated = Signature {
            block_number: Some(0),
            ..entry(&format!("eip155:1:{ADDRESS}"), 32)
        };
        let questions = read_all(vec![stated, entry(&format!("eip155:1:{ADDRESS}"), 32)]).expect("readable");
        assert_eq!(questions[0].block, BlockChoice::Number(0));
        assert_eq!(questions[1].block, BlockChoice::Latest);
    }
}
