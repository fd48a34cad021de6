//! A whole request, from questions to verdicts. Depends on every other module.
//!
//! First the headers of the blocks that the questions name are read, each once; then every signature is judged at its
//! block's hash. A node that does not take a hash for a block is asked by number instead, and what it says is believed
//! but not remembered. Nothing is tried again: the caller has a deadline, and whoever asked may ask again.

use std::{cell::RefCell, collections::HashMap, fmt, future::Future, pin::pin};

use conclave_identity::{AccountId, WalletQuestion, WalletVerdict};
use conclave_topiclog::{
    chain_routes::{ChainRoutes, RpcUrl},
    chains::{BlockChoice, ChainQuestion, ChainVerdict, Chains, Unavailable},
};
use futures_util::{
    StreamExt as _, TryStreamExt as _,
    future::{Either, LocalBoxFuture, select},
    stream,
};

use crate::{
    header::{Header, freshness},
    memo::{VerdictKey, VerdictMemo},
    rpc::{
        BLOCK_ANSWER_BYTES_MAX, CALL_ANSWER_BYTES_MAX, NodeFault, State, block_request, read_block,
        read_verdict, run_request,
    },
    validator::with_arguments,
};

/// How many requests to nodes one caller has under way at once. A Worker may wait for the headers of six.
pub const CONCURRENT_REQUESTS: usize = 6;

/// Why a node's answer did not arrive. Says nothing of where the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Not in time.
    #[error("no answer in time")]
    DeadlineExceeded,
    /// With another HTTP status than 200.
    #[error("HTTP status {0}")]
    HttpStatus(u16),
    /// It is longer than is read.
    #[error("its answer is too long")]
    TooLong,
    /// The connection failed.
    #[error("the connection failed")]
    Failed,
}

/// How bytes get to a node and back, and what time it is.
#[allow(async_fn_in_trait, reason = "everything here runs on one thread")]
pub trait Transport: fmt::Debug + 'static {
    /// Posts a JSON document and returns the answer's body, at most `answer_bytes_max` long. Redirects are not followed.
    ///
    /// # Errors
    /// [`TransportError`].
    async fn post(
        &self,
        url: &RpcUrl,
        body: Vec<u8>,
        answer_bytes_max: usize,
        deadline_ms: u32,
    ) -> Result<Vec<u8>, TransportError>;

    /// Resolves after `milliseconds`.
    async fn delay(&self, milliseconds: u32);

    /// Seconds since the Unix epoch.
    fn now_seconds(&self) -> u64;

    /// Tells the operator.
    fn log(&self, line: &str);
}

/// The EVM chains of a deployment, each behind a node.
#[derive(Debug)]
pub struct EvmChains<T> {
    routes: ChainRoutes,
    transport: T,
    verdicts: RefCell<VerdictMemo>,
}

/// A signature to be judged at a block whose header is known.
#[derive(Clone, Copy, Debug)]
struct Ask<'a> {
    account: AccountId,
    hash: &'a [u8; 32],
    signature: &'a [u8],
}

/// A block of a chain.
type Place = (u64, BlockChoice);

/// What nodes said of blocks.
type Headers = HashMap<Place, Result<Header, NodeFault>>;

impl<T: Transport> EvmChains<T> {
    /// Chains that are reached by these routes.
    #[must_use]
    pub fn new(routes: ChainRoutes, transport: T) -> Self {
        Self {
            routes,
            transport,
            verdicts: RefCell::default(),
        }
    }

    async fn verify_all(
        &self,
        questions: &[ChainQuestion],
        deadline_ms: u32,
    ) -> Result<Vec<ChainVerdict>, Unavailable> {
        let place = |question: &ChainQuestion| (question.account.chain_id, question.block);
        for question in questions {
            self.route(question.account.chain_id)?;
        }
        let headers = self.read_headers(questions.iter().map(place), deadline_ms).await;
        for ((chain_id, _), header) in &headers {
            header.map_err(|fault| unavailable(*chain_id, fault))?;
        }
        stream::iter(questions)
            .map(async |question| {
                let (chain_id, _) = place(question);
                let header = find(&headers, place(question)).map_err(|fault| unavailable(chain_id, fault))?;
                let ask = Ask {
                    account: question.account,
                    hash: &question.hash,
                    signature: &question.signature,
                };
                let is_valid = self
                    .ask(self.route(chain_id)?, ask, header, deadline_ms)
                    .await
                    .map_err(|fault| unavailable(chain_id, fault))?;
                Ok(ChainVerdict {
                    is_valid,
                    block_number: header.block.number,
                })
            })
            .buffered(CONCURRENT_REQUESTS)
            .try_collect()
            .await
    }

    async fn admit_all(&self, questions: &[&WalletQuestion], deadline_ms: u32) -> Vec<WalletVerdict> {
        let head_place = |question: &WalletQuestion| (question.account.chain_id, BlockChoice::Latest);
        let block_place = |question: &WalletQuestion| {
            (
                question.account.chain_id,
                BlockChoice::Number(question.block_number),
            )
        };
        // Heads first: a block that is named may be newer than the head that was read, never the other way round.
        let heads = self
            .read_headers(questions.iter().map(|question| head_place(question)), deadline_ms)
            .await;
        let blocks = self
            .read_headers(
                questions.iter().map(|question| block_place(question)),
                deadline_ms,
            )
            .await;
        stream::iter(questions)
            .map(async |question| {
                let judged = async {
                    let head = find(&heads, head_place(question))?;
                    let block = find(&blocks, block_place(question));
                    if !freshness(head, question.block_number, block, self.transport.now_seconds())? {
                        return Ok(WalletVerdict::BlockNotFresh);
                    }
                    let ask = Ask {
                        account: question.account,
                        hash: &question.hash,
                        signature: &question.signature,
                    };
                    let Ok(url) = self.route(question.account.chain_id) else {
                        return Ok(WalletVerdict::Unavailable);
                    };
                    Ok(match self.ask(url, ask, block?, deadline_ms).await? {
                        true => WalletVerdict::Valid,
                        false => WalletVerdict::Invalid,
                    })
                };
                judged.await.unwrap_or_else(|fault: NodeFault| {
                    self.transport
                        .log(&unavailable(question.account.chain_id, fault).to_string());
                    WalletVerdict::Unavailable
                })
            })
            .buffered(CONCURRENT_REQUESTS)
            .collect()
            .await
    }

    /// Reads each block once. Chains without a route are left out.
    async fn read_headers(&self, places: impl Iterator<Item = Place>, deadline_ms: u32) -> Headers {
        let mut wanted: Vec<Place> = Vec::new();
        for place in places {
            if !wanted.contains(&place) {
                wanted.push(place);
            }
        }
        stream::iter(wanted)
            .map(async |(chain_id, block)| {
                let url = self.routes.get(chain_id)?;
                let read = async {
                    let request = block_request(block);
                    let answer = self
                        .transport
                        .post(url, request, BLOCK_ANSWER_BYTES_MAX, deadline_ms)
                        .await?;
                    read_block(&answer, block)
                };
                Some(((chain_id, block), read.await))
            })
            .buffer_unordered(CONCURRENT_REQUESTS)
            .filter_map(std::future::ready)
            .collect()
            .await
    }

    /// Whether the account accepts the signature in the state of the block.
    async fn ask(
        &self,
        url: &RpcUrl,
        ask: Ask<'_>,
        header: Header,
        deadline_ms: u32,
    ) -> Result<bool, NodeFault> {
        let key = VerdictKey::new(ask.account, &header.hash, ask.hash, ask.signature);
        if let Some(known) = self.verdicts.borrow_mut().get(key) {
            return Ok(known);
        }
        let program = with_arguments(ask.account.address.as_bytes(), ask.hash, ask.signature);
        let run = async |state| {
            let request = run_request(&program, state);
            let answer = self
                .transport
                .post(url, request, CALL_ANSWER_BYTES_MAX, deadline_ms)
                .await?;
            read_verdict(&answer, ask.account.chain_id)
        };
        match run(State::OfBlock(header.hash)).await {
            Ok(verdict) => {
                self.verdicts.borrow_mut().put(key, verdict);
                Ok(verdict)
            }
            Err(NodeFault::Refused { .. }) => run(State::AtHeight(header.block.number)).await,
            Err(fault) => Err(fault),
        }
    }

    fn route(&self, chain_id: u64) -> Result<&RpcUrl, Unavailable> {
        self.routes
            .get(chain_id)
            .ok_or_else(|| Unavailable::no_route(chain_id))
    }

    /// What `work` comes to, or nothing at the deadline.
    async fn within<R>(&self, deadline_ms: u32, work: impl Future<Output = R>) -> Option<R> {
        match select(pin!(work), pin!(self.transport.delay(deadline_ms))).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(((), _)) => None,
        }
    }
}

fn find(headers: &Headers, place: Place) -> Result<Header, NodeFault> {
    headers
        .get(&place)
        .copied()
        .unwrap_or(Err(NodeFault::Transport(TransportError::Failed)))
}

fn unavailable(chain_id: u64, fault: NodeFault) -> Unavailable {
    Unavailable {
        chain_id,
        reason: fault.to_string(),
    }
}

impl<T: Transport> Chains for EvmChains<T> {
    fn verify<'a>(
        &'a self,
        questions: &'a [ChainQuestion],
        deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<Vec<ChainVerdict>, Unavailable>> {
        Box::pin(async move {
            let verdicts = match self
                .within(deadline_ms, self.verify_all(questions, deadline_ms))
                .await
            {
                Some(verdicts) => verdicts,
                None => Err(unavailable(
                    questions.first().map_or(0, |question| question.account.chain_id),
                    TransportError::DeadlineExceeded.into(),
                )),
            };
            if let Err(outage) = &verdicts {
                self.transport.log(&outage.to_string());
            }
            verdicts
        })
    }

    fn admit<'a>(
        &'a self,
        questions: &'a [&'a WalletQuestion],
        deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Vec<WalletVerdict>> {
        Box::pin(async move {
            match self
                .within(deadline_ms, self.admit_all(questions, deadline_ms))
                .await
            {
                Some(verdicts) => verdicts,
                None => {
                    self.transport
                        .log("no verdicts on the wallet signatures of an update in time");
                    vec![WalletVerdict::Unavailable; questions.len()]
                }
            }
        })
    }
}
