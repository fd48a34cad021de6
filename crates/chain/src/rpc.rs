//! JSON-RPC with a node: the two messages we send, and what can be read in answers. Depends on `identity` for blocks.
//!
//! Every reader is total: any bytes give a value or a [`NodeFault`]. What a node says in words is never repeated, because
//! it may name the node's own secrets.

use conclave_identity::signature::wallet::Block;
use conclave_topiclog::chains::BlockChoice;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    client::TransportError,
    header::Header,
    validator::{ANSWER_BYTES, INVALID, VALID, VALIDATOR},
};

/// The longest answer about a block that is read, in bytes. It lists the hashes of the block's transactions, 69 bytes each.
pub const BLOCK_ANSWER_BYTES_MAX: usize = 4 << 20;
/// The longest answer to a call that is read, in bytes. A verdict takes about 100; errors carry what contracts said.
pub const CALL_ANSWER_BYTES_MAX: usize = 64 << 10;
/// The longest creation code that nodes run (EIP-3860), in bytes. What is longer runs as the code of an account.
pub const CREATION_CODE_BYTES_MAX: usize = 49_152;

/// The account whose code the program takes for one call, when it is too long to be creation code. Nobody's.
const STAND_IN_ACCOUNT: &str = "0x636f6e636c6176652076616c696461746f722031";

/// The id of every request: each travels alone.
const ID: u64 = 1;

/// Why a node gave nothing that can be used. Never a verdict (API-231).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeFault {
    /// Nothing usable came back.
    #[error("the node cannot be asked: {0}")]
    Transport(#[from] TransportError),
    /// The answer is not the JSON-RPC of the method.
    #[error("the node's answer cannot be read: {0}")]
    Unreadable(&'static str),
    /// The node reports an error.
    #[error("the node answers with error {code}")]
    Refused {
        /// The JSON-RPC error code.
        code: i64,
    },
    /// The node has no such block: it lags behind, or has forgotten it, or there is none yet.
    #[error("the node has no block {number}")]
    NoSuchBlock {
        /// The block asked for.
        number: u64,
    },
    /// The node answered about another block.
    #[error("the node answers about block {answered}, not {asked}")]
    OtherBlock {
        /// The block asked for.
        asked: u64,
        /// The block of the answer.
        answered: u64,
    },
    /// The call ran on another chain.
    #[error("the node is not on this chain")]
    OtherChain,
    /// The gas the node allows does not suffice for a verdict.
    #[error("the node allows too little gas for a verdict")]
    TooLittleGas,
    /// Two of the node's blocks cannot be on one chain.
    #[error("the node's blocks contradict each other")]
    Contradiction,
    /// The node's newest block is too old for the question.
    #[error("the node's newest block is {age_seconds} s old")]
    StaleHead {
        /// The age of its newest block, in seconds.
        age_seconds: u64,
    },
}

/// Where a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At the block with this hash, and only if the chain still holds it (EIP-1898).
    OfBlock([u8; 32]),
    /// At the block of this number, whichever that is.
    AtHeight(u64),
}

/// Asks for a block's header.
#[must_use]
pub fn block_request(block: BlockChoice) -> Vec<u8> {
    let tag = match block {
        BlockChoice::Number(number) => quantity(number),
        BlockChoice::Latest => "latest".to_owned(),
    };
    request("eth_getBlockByNumber", &format!(r#""{tag}",false"#))
}

/// Runs a program ([`crate::validator::with_arguments`]) at a block.
#[must_use]
pub fn run_request(program: &[u8], state: State) -> Vec<u8> {
    let at = match state {
        State::OfBlock(hash) => {
            format!(
                r#"{{"blockHash":"0x{}","requireCanonical":true}}"#,
                hex::encode(hash)
            )
        }
        State::AtHeight(number) => format!(r#""{}""#, quantity(number)),
    };
    let program = hex::encode(program);
    let parameters = if program.len() / 2 <= CREATION_CODE_BYTES_MAX {
        format!(r#"{{"data":"0x{program}"}},{at}"#)
    } else {
        format!(
            r#"{{"to":"{STAND_IN_ACCOUNT}","data":"0x"}},{at},{{"{STAND_IN_ACCOUNT}":{{"code":"0x{program}"}}}}"#
        )
    };
    request("eth_call", &parameters)
}

fn request(method: &str, parameters: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"{method}","params":[{parameters}]}}"#).into_bytes()
}

fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// An answer to a request. Members that are not understood are left aside.
#[derive(Deserialize)]
#[serde(bound = "R: DeserializeOwned")]
struct Answer<R> {
    id: u64,
    #[serde(default = "Option::default")]
    result: Option<R>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    #[serde(default)]
    code: i64,
}

#[derive(Deserialize)]
struct WireBlock {
    number: String,
    hash: String,
    timestamp: String,
}

fn read<R: DeserializeOwned>(body: &[u8]) -> Result<Option<R>, NodeFault> {
    let answer: Answer<R> =
        serde_json::from_slice(body).map_err(|_| NodeFault::Unreadable("it is no answer to this method"))?;
    if answer.id != ID {
        return Err(NodeFault::Unreadable("it answers another request"));
    }
    match answer.error {
        Some(ErrorObject { code }) => Err(NodeFault::Refused { code }),
        None => Ok(answer.result),
    }
}

/// Reads the answer to [`block_request`].
///
/// # Errors
/// [`NodeFault`] when it cannot be read or speaks of another block than was asked for.
pub fn read_block(body: &[u8], asked: BlockChoice) -> Result<Header, NodeFault> {
    let Some(block) = read::<WireBlock>(body)? else {
        return Err(match asked {
            BlockChoice::Number(number) => NodeFault::NoSuchBlock { number },
            BlockChoice::Latest => NodeFault::Unreadable("it has no newest block"),
        });
    };
    let number = read_quantity(&block.number).ok_or(NodeFault::Unreadable("a block's number is none"))?;
    if let BlockChoice::Number(asked) = asked
        && asked != number
    {
        return Err(NodeFault::OtherBlock {
            asked,
            answered: number,
        });
    }
    Ok(Header {
        block: Block {
            number,
            timestamp_seconds: read_quantity(&block.timestamp)
                .ok_or(NodeFault::Unreadable("a block's time is none"))?,
        },
        hash: read_bytes(&block.hash).ok_or(NodeFault::Unreadable("a block's hash is none"))?,
    })
}

/// Reads the answer to [`run_request`] of the validator: whether the account accepts the signature.
///
/// # Errors
/// [`NodeFault`] when it is no verdict of the validator on this chain.
pub fn read_verdict(body: &[u8], chain_id: u64) -> Result<bool, NodeFault> {
    let result = read::<String>(body)?.ok_or(NodeFault::Unreadable("a call has no result"))?;
    let answer: [u8; ANSWER_BYTES] =
        read_bytes(&result).ok_or(NodeFault::Unreadable("a call's result is no verdict"))?;
    let (verdict, chain) = answer
        .split_first()
        .ok_or(NodeFault::Unreadable("a call's result is empty"))?;
    let (high, low) = chain.split_at(chain.len() - size_of::<u64>());
    if high.iter().any(|byte| *byte != 0) || low != chain_id.to_be_bytes() {
        return Err(NodeFault::OtherChain);
    }
    match *verdict {
        VALID => Ok(true),
        INVALID => Ok(false),
        _ => Err(NodeFault::TooLittleGas),
    }
}

/// A number as nodes write it: `0x` and up to 16 hexadecimal digits.
fn read_quantity(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    // `from_str_radix` takes a sign, which is no digit.
    is_hex.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

fn read_bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

const _: () = assert!(VALIDATOR.len() < CREATION_CODE_BYTES_MAX);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HASH: [u8; 32] = [0xab; 32];

    fn block_answer(number: &str) -> Vec<u8> {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"number":"{number}","timestamp":"0x6553f100","hash":"0x{}","transactions":["0x00"],"more":{{}}}}}}"#,
            hex::encode(HASH)
        )
        .into_bytes()
    }

    fn verdict_answer(verdict: u8, chain: u64) -> Vec<u8> {
        let chain = format!("{chain:064x}");
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":"0x{verdict:02x}{chain}"}}"#).into_bytes()
    }

    #[test]
    fn requests_are_json_that_names_method_and_block() {
        let parse = |bytes: Vec<u8>| serde_json::from_slice::<serde_json::Value>(&bytes).expect("JSON");
        let request = parse(block_request(BlockChoice::Number(4_660)));
        assert_eq!(request["method"], "eth_getBlockByNumber");
        assert_eq!(request["params"], serde_json::json!(["0x1234", false]));
        assert_eq!(parse(block_request(BlockChoice::Latest))["params"][0], "latest");
        assert_eq!(parse(block_request(BlockChoice::Number(0)))["params"][0], "0x0");
        let request = parse(run_request(&[1, 2], State::AtHeight(16)));
        assert_eq!(request["params"], serde_json::json!([{"data": "0x0102"}, "0x10"]));
        let request = parse(run_request(&[1, 2], State::OfBlock(HASH)));
        assert_eq!(
            request["params"][1]["blockHash"],
            format!("0x{}", hex::encode(HASH))
        );
        assert_eq!(request["params"][1]["requireCanonical"], true);
    }

    // API-271
    #[test]
    fn a_program_too_long_for_creation_runs_as_the_code_of_an_account() {
        let parse = |length: usize| {
            let request = run_request(&vec![7; length], State::AtHeight(1));
            serde_json::from_slice::<serde_json::Value>(&request).expect("JSON")["params"].clone()
        };
        assert_eq!(parse(CREATION_CODE_BYTES_MAX).as_array().map(Vec::len), Some(2));
        let long = parse(CREATION_CODE_BYTES_MAX + 1);
        assert_eq!(long[0]["to"], STAND_IN_ACCOUNT);
        assert_eq!(
            long[2][STAND_IN_ACCOUNT]["code"].as_str().map(str::len),
            Some(2 + 2 * (CREATION_CODE_BYTES_MAX + 1))
        );
    }

    // API-231
    #[test]
    fn a_block_of_another_number_is_a_fault_of_the_node() {
        let header = read_block(&block_answer("0x10"), BlockChoice::Number(16)).expect("a header");
        assert_eq!(header.hash, HASH);
        assert_eq!(header.block.timestamp_seconds, 0x6553_f100);
        assert_eq!(
            read_block(&block_answer("0x11"), BlockChoice::Number(16)),
            Err(NodeFault::OtherBlock {
                asked: 16,
                answered: 17
            })
        );
        assert!(read_block(&block_answer("0x11"), BlockChoice::Latest).is_ok());
        for number in ["", "0x", "16", "0x+1", "0x-1", "0x10000000000000000", "latest"] {
            assert!(
                matches!(
                    read_block(&block_answer(number), BlockChoice::Latest),
                    Err(NodeFault::Unreadable(_))
                ),
                "{number}"
            );
        }
    }

    // API-231
    #[test]
    fn only_a_verdict_of_this_chain_is_one() {
        assert_eq!(read_verdict(&verdict_answer(1, 10), 10), Ok(true));
        assert_eq!(read_verdict(&verdict_answer(0, 10), 10), Ok(false));
        assert_eq!(
            read_verdict(&verdict_answer(2, 10), 10),
            Err(NodeFault::TooLittleGas)
        );
        assert_eq!(
            read_verdict(&verdict_answer(1, 11), 10),
            Err(NodeFault::OtherChain)
        );
        let answer = |result: &str| format!(r#"{{"id":1,"result":{result}}}"#).into_bytes();
        for result in [
            "null",
            "true",
            "1",
            "\"\"",
            "\"0x\"",
            "\"0x01\"",
            "{}",
            "[\"0x01\"]",
        ] {
            assert!(
                matches!(read_verdict(&answer(result), 10), Err(NodeFault::Unreadable(_))),
                "{result}"
            );
        }
    }

    // API-231
    #[test]
    fn an_error_or_the_answer_to_another_request_is_a_fault_of_the_node() {
        for (body, fault) in [
            (
                r#"{"id":1,"error":{"code":3,"message":"execution reverted"}}"#,
                NodeFault::Refused { code: 3 },
            ),
            (
                r#"{"id":1,"result":"0x01","error":{"message":"?"}}"#,
                NodeFault::Refused { code: 0 },
            ),
            (
                r#"{"id":2,"result":"0x01"}"#,
                NodeFault::Unreadable("it answers another request"),
            ),
        ] {
            assert_eq!(read_verdict(body.as_bytes(), 1), Err(fault), "{body}");
        }
        for body in [
            "",
            "null",
            "[]",
            "<html>",
            r#"{"id":null,"result":"0x01"}"#,
            r#"{"result":"0x01"}"#,
            r#"{"id":1,"result":"0x01","result":"0x02"}"#,
        ] {
            assert!(
                matches!(read_verdict(body.as_bytes(), 1), Err(NodeFault::Unreadable(_))),
                "{body}"
            );
        }
        assert_eq!(
            read_block(br#"{"id":1,"result":null}"#, BlockChoice::Number(7)),
            Err(NodeFault::NoSuchBlock { number: 7 })
        );
    }

    proptest! {
        // API-231
        #[test]
        fn no_damage_to_an_answer_turns_one_verdict_into_the_other(at in 0_usize..100, byte: u8, valid: bool) {
            let mut body = verdict_answer(u8::from(valid), 10);
            let at = at % body.len();
            // The digit that is the verdict itself may be damaged into the other verdict.
            let verdict_digit = body.windows(2).position(|pair| pair == b"0x").expect("hexadecimal") + 3;
            prop_assume!(at != verdict_digit);
            body[at] = byte;
            if let Ok(read) = read_verdict(&body, 10) {
                prop_assert_eq!(read, valid);
            }
        }

        #[test]
        fn readers_are_total(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_verdict(&body, 1);
            let _ = read_block(&body, BlockChoice::Latest);
        }
    }
}
