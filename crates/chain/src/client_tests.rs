//! The client against nodes that behave and nodes that do not.

use std::{cell::RefCell, future::pending, rc::Rc};

use bytes::Bytes;
use conclave_identity::{AccountId, WalletQuestion, WalletVerdict};
use conclave_topiclog::{
    chain_routes::{ChainRoutes, RpcUrl},
    chains::{BlockChoice, ChainQuestion, ChainVerdict, Chains, Unavailable},
};
use futures_util::FutureExt as _;
use serde_json::{Value, json};

use crate::{EvmChains, Transport, TransportError};

const NOW_SECONDS: u64 = 1_800_000_000;
const CHAIN: u64 = 10;
const HEAD: u64 = 100;

/// How a node behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Honest,
    /// Takes no hash for a block.
    ByNumberOnly,
    Hangs,
    Fails(TransportError),
    Garbage,
    AnswersForOtherBlock,
    IsOnOtherChain,
    /// Its newest block is this old, in seconds.
    Lags(u64),
}

#[derive(Debug)]
struct Node {
    manner: Manner,
    asked: Rc<RefCell<Vec<String>>>,
}

/// A valid signature, in this world, is one that begins with 1.
fn judge(parameters: &Value) -> u8 {
    let program = parameters[0]["data"].as_str().expect("a program");
    let signature = crate::validator::VALIDATOR.len() + 64;
    u8::from(
        program
            .get(2 + 2 * signature..)
            .is_some_and(|rest| rest.starts_with("01")),
    )
}

impl Node {
    fn answer(&self, method: &str, parameters: &Value) -> Value {
        let head_age = match self.manner {
            Manner::Lags(seconds) => seconds,
            _ => 5,
        };
        let header = |number: u64| {
            json!({
                "number": format!("{number:#x}"),
                "timestamp": format!("{:#x}", NOW_SECONDS - head_age - (HEAD - number) * 100),
                "hash": format!("0x{number:064x}"),
            })
        };
        match method {
            "eth_getBlockByNumber" => {
                let tag = parameters[0].as_str().expect("a tag");
                let number = tag
                    .strip_prefix("0x")
                    .map_or(HEAD, |digits| u64::from_str_radix(digits, 16).expect("a number"));
                match self.manner {
                    _ if number > HEAD => json!({"id": 1, "result": null}),
                    Manner::AnswersForOtherBlock if number != HEAD => {
                        json!({"id": 1, "result": header(HEAD)})
                    }
                    _ => json!({"id": 1, "result": header(number)}),
                }
            }
            _ if self.manner == Manner::ByNumberOnly && parameters[1].is_object() => {
                json!({"id": 1, "error": {"code": -32602, "message": "invalid block"}})
            }
            _ => {
                let chain = if self.manner == Manner::IsOnOtherChain {
                    1
                } else {
                    CHAIN
                };
                json!({"id": 1, "result": format!("0x{:02x}{chain:064x}", judge(parameters))})
            }
        }
    }
}

impl Transport for Node {
    async fn post(
        &self,
        _url: &RpcUrl,
        body: Vec<u8>,
        _answer_bytes_max: usize,
        _deadline_ms: u32,
    ) -> Result<Vec<u8>, TransportError> {
        let request: Value = serde_json::from_slice(&body).expect("JSON");
        let method = request["method"].as_str().expect("a method");
        self.asked.borrow_mut().push(method.to_owned());
        match self.manner {
            Manner::Hangs => pending().await,
            Manner::Fails(error) => Err(error),
            Manner::Garbage => Ok(b"<html>".to_vec()),
            _ => Ok(self.answer(method, &request["params"]).to_string().into_bytes()),
        }
    }

    /// The deadline passes as soon as nothing else goes on.
    async fn delay(&self, _milliseconds: u32) {}

    fn now_seconds(&self) -> u64 {
        NOW_SECONDS
    }

    fn log(&self, _line: &str) {}
}

struct World {
    chains: EvmChains<Node>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl World {
    fn new(manner: Manner) -> World {
        let asked = Rc::default();
        let mut routes = ChainRoutes::default();
        routes.set(CHAIN, "https://node.example/key").expect("a URL");
        let node = Node {
            manner,
            asked: Rc::clone(&asked),
        };
        World {
            chains: EvmChains::new(routes, node),
            asked,
        }
    }

    fn verify(&self, questions: &[ChainQuestion]) -> Result<Vec<ChainVerdict>, Unavailable> {
        self.chains
            .verify(questions, 1_000)
            .now_or_never()
            .expect("it ends at its deadline")
    }

    fn admit(&self, questions: &[(u64, u64, u8)]) -> Vec<WalletVerdict> {
        let questions: Vec<WalletQuestion> = questions
            .iter()
            .map(|(chain_id, block_number, signature)| WalletQuestion {
                account: account(*chain_id),
                block_number: *block_number,
                hash: [7; 32],
                signature: Bytes::copy_from_slice(&[*signature]),
            })
            .collect();
        let questions: Vec<&WalletQuestion> = questions.iter().collect();
        self.chains
            .admit(&questions, 1_000)
            .now_or_never()
            .expect("it ends at its deadline")
    }

    fn take_asked(&self) -> Vec<String> {
        self.asked.take()
    }
}

fn account(chain_id: u64) -> AccountId {
    AccountId::parse(&format!(
        "eip155:{chain_id}:0x1111111111111111111111111111111111111111"
    ))
    .expect("an account")
}

fn question(block: BlockChoice, signature: u8) -> ChainQuestion {
    ChainQuestion {
        account: account(CHAIN),
        block,
        hash: [7; 32],
        signature: Bytes::copy_from_slice(&[signature]),
    }
}

fn verdict(is_valid: bool, block_number: u64) -> ChainVerdict {
    ChainVerdict {
        is_valid,
        block_number,
    }
}

const BLOCK: &str = "eth_getBlockByNumber";
const CALL: &str = "eth_call";

// API-271
#[test]
fn every_signature_gets_the_verdict_at_its_block_in_order() {
    let world = World::new(Manner::Honest);
    let questions = [
        question(BlockChoice::Number(90), 1),
        question(BlockChoice::Latest, 0),
        question(BlockChoice::Latest, 1),
        question(BlockChoice::Number(90), 2),
    ];
    assert_eq!(
        world.verify(&questions),
        Ok(vec![
            verdict(true, 90),
            verdict(false, HEAD),
            verdict(true, HEAD),
            verdict(false, 90)
        ])
    );
    let asked = world.take_asked();
    assert_eq!(asked.iter().filter(|method| *method == BLOCK).count(), 2);
    assert_eq!(world.verify(&[]), Ok(Vec::new()));
}

// API-271
#[test]
fn a_verdict_of_a_block_is_remembered_by_the_blocks_hash() {
    let world = World::new(Manner::Honest);
    let asked = [question(BlockChoice::Number(90), 1)];
    assert_eq!(world.verify(&asked), Ok(vec![verdict(true, 90)]));
    assert_eq!(world.take_asked(), [BLOCK, CALL]);
    assert_eq!(world.verify(&asked), Ok(vec![verdict(true, 90)]));
    assert_eq!(world.take_asked(), [BLOCK]);
}

// API-271
#[test]
fn a_node_that_takes_no_hash_is_asked_by_number_and_nothing_is_remembered() {
    let world = World::new(Manner::ByNumberOnly);
    let asked = [question(BlockChoice::Number(90), 1)];
    for _ in 0..2 {
        assert_eq!(world.verify(&asked), Ok(vec![verdict(true, 90)]));
        assert_eq!(world.take_asked(), [BLOCK, CALL, CALL]);
    }
}

// API-231
#[test]
fn a_node_that_fails_in_any_way_is_an_outage_and_no_verdict() {
    for manner in [
        Manner::Hangs,
        Manner::Fails(TransportError::Failed),
        Manner::Fails(TransportError::HttpStatus(500)),
        Manner::Fails(TransportError::TooLong),
        Manner::Garbage,
        Manner::AnswersForOtherBlock,
        Manner::IsOnOtherChain,
    ] {
        let world = World::new(manner);
        for signature in [0, 1] {
            assert!(
                world
                    .verify(&[question(BlockChoice::Number(90), signature)])
                    .is_err(),
                "{manner:?}"
            );
            assert_eq!(
                world.admit(&[(CHAIN, 90, signature)]),
                [WalletVerdict::Unavailable],
                "{manner:?}"
            );
        }
    }
}

// API-231
#[test]
fn a_block_the_node_does_not_have_is_an_outage() {
    let world = World::new(Manner::Honest);
    let questions = [
        question(BlockChoice::Latest, 1),
        question(BlockChoice::Number(HEAD + 1), 1),
    ];
    assert!(world.verify(&questions).is_err());
}

// API-231
#[test]
fn a_chain_without_a_node_is_an_outage_before_any_other_is_asked() {
    let world = World::new(Manner::Honest);
    let elsewhere = ChainQuestion {
        account: account(11),
        ..question(BlockChoice::Latest, 1)
    };
    let outage = world
        .verify(&[question(BlockChoice::Latest, 1), elsewhere])
        .expect_err("no route");
    assert_eq!(outage, Unavailable::no_route(11));
    assert!(world.take_asked().is_empty());
    assert_eq!(
        world.admit(&[(11, 90, 1), (CHAIN, 90, 1), (CHAIN, 90, 0)]),
        [
            WalletVerdict::Unavailable,
            WalletVerdict::Valid,
            WalletVerdict::Invalid
        ]
    );
}

// API-230
#[test]
fn an_update_may_name_a_block_of_the_last_half_hour() {
    let world = World::new(Manner::Honest);
    assert_eq!(
        world.admit(&[
            (CHAIN, HEAD, 1),
            (CHAIN, 82, 1),
            (CHAIN, 81, 1),
            (CHAIN, HEAD + 1, 1)
        ]),
        [
            WalletVerdict::Valid,
            WalletVerdict::Valid,
            WalletVerdict::BlockNotFresh,
            WalletVerdict::BlockNotFresh
        ]
    );
}

// API-231
#[test]
fn a_node_that_lags_calls_no_block_too_new_and_one_that_stopped_calls_none_fresh() {
    let world = World::new(Manner::Lags(90));
    assert_eq!(
        world.admit(&[(CHAIN, HEAD + 1, 1), (CHAIN, HEAD, 1)]),
        [WalletVerdict::Unavailable, WalletVerdict::Valid]
    );
    let world = World::new(Manner::Lags(1_801));
    assert_eq!(
        world.admit(&[(CHAIN, HEAD, 1), (CHAIN, HEAD, 0)]),
        [WalletVerdict::Unavailable; 2]
    );
}

#[test]
fn an_outage_says_nothing_of_where_the_node_is() {
    for manner in [
        Manner::Fails(TransportError::Failed),
        Manner::Garbage,
        Manner::Hangs,
    ] {
        let outage = World::new(manner)
            .verify(&[question(BlockChoice::Latest, 1)])
            .expect_err("an outage");
        assert!(!outage.to_string().contains("example"), "{outage}");
    }
}
