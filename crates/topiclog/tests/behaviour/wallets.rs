//! Identity updates of smart contract wallets, whose verdicts come from chains.

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;
use conclave_envelope::Limits;
use conclave_grpc_web::Code;
use conclave_identity::{
    WalletQuestion, WalletVerdict,
    building::{Account, Installation, Step, Wallet},
};
use conclave_proto::{
    Rpc as _,
    xmtp::backend::v1::{
        ClientEnvelope, identity_service::VerifySmartContractWalletSignatures, publish_error::Reason,
    },
};
use conclave_topiclog::{
    CallContext, Configuration,
    chains::{ChainQuestion, ChainVerdict, Chains, Unavailable},
};
use futures_channel::oneshot;
use futures_util::future::{LocalBoxFuture, ready};

use crate::{
    client::{group, message, publish},
    identities::{Inbox, code, log_of, refused},
    world::World,
};

/// Chains that answer what they are told, and write down what they are asked.
#[derive(Debug)]
struct Oracle {
    verdict: WalletVerdict,
    asked: RefCell<Vec<WalletQuestion>>,
}

impl Chains for Oracle {
    fn verify<'a>(
        &'a self,
        _questions: &'a [ChainQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<Vec<ChainVerdict>, Unavailable>> {
        Box::pin(ready(Err(Unavailable::no_route(0))))
    }

    fn admit<'a>(
        &'a self,
        questions: &'a [&'a WalletQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Vec<WalletVerdict>> {
        let questions = questions.iter().map(|question| (*question).clone());
        let before = self.asked.borrow().len();
        self.asked.borrow_mut().extend(questions);
        let count = self.asked.borrow().len() - before;
        Box::pin(ready(vec![self.verdict; count]))
    }
}

// API-231, API-230
#[test]
fn a_wallet_is_judged_by_its_chain_and_an_outage_is_no_verdict() {
    let world = World::new(4);
    let wallet = Wallet::new(1, 0x11);
    let inbox = Inbox::of(&wallet, 0);
    let opened = inbox.update(
        1,
        &[
            Step::Create(&wallet, 0),
            Step::Add(&Installation::new(2), &wallet),
        ],
    );
    let published = |verdict, envelopes: Vec<ClientEnvelope>| {
        let oracle = Rc::new(Oracle {
            verdict,
            asked: RefCell::default(),
        });
        let client = world.client_with(Rc::clone(&oracle) as Rc<dyn Chains>);
        let outcome = world.run(publish(&client, envelopes));
        let asked = oracle.asked.take().len();
        (outcome, asked)
    };
    // No chains at all, and one that is out of reach.
    assert_eq!(code(world.publish(vec![opened.clone()])), Code::Unavailable);
    let (outcome, asked) = published(WalletVerdict::Unavailable, vec![opened.clone()]);
    assert_eq!(
        (code(outcome), asked),
        (Code::Unavailable, 1),
        "one signature, used twice, is asked once"
    );
    // What fails for certain is named; the wallet's signature is not called invalid.
    let malformed = vec![opened.clone(), ClientEnvelope { payload: None }];
    let (outcome, _) = published(WalletVerdict::Unavailable, malformed);
    assert_eq!(refused(outcome), (Some(1), Reason::MalformedPayload));
    let (outcome, _) = published(WalletVerdict::Invalid, vec![opened.clone()]);
    assert_eq!(refused(outcome), (Some(0), Reason::InvalidSignature));
    let (outcome, _) = published(WalletVerdict::BlockNotFresh, vec![opened.clone()]);
    assert_eq!(refused(outcome), (Some(0), Reason::InvalidIdentityUpdate));
    assert!(log_of(&world, &inbox).is_empty());
    let (outcome, _) = published(WalletVerdict::Valid, vec![opened.clone()]);
    let first = outcome.expect("stored");
    assert_eq!(log_of(&world, &inbox)[0], opened);
    // Once it is stored no chain is asked again: neither for a copy nor for what follows.
    let (outcome, asked) = published(WalletVerdict::Invalid, vec![opened.clone()]);
    assert_eq!((outcome, asked), (Ok(first), 0));
    let by_installation = inbox.update(3, &[Step::Add(&Account::new(3), &Installation::new(2))]);
    assert!(world.publish(vec![by_installation]).is_ok());
}

/// A chain that answers when it is told to.
#[derive(Debug)]
struct Slow {
    answer: RefCell<Option<oneshot::Receiver<WalletVerdict>>>,
}

impl Chains for Slow {
    fn verify<'a>(
        &'a self,
        _questions: &'a [ChainQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Result<Vec<ChainVerdict>, Unavailable>> {
        Box::pin(ready(Err(Unavailable::no_route(0))))
    }

    fn admit<'a>(
        &'a self,
        questions: &'a [&'a WalletQuestion],
        _deadline_ms: u32,
    ) -> LocalBoxFuture<'a, Vec<WalletVerdict>> {
        let answer = self.answer.take().expect("asked once");
        Box::pin(async move { vec![answer.await.expect("an answer"); questions.len()] })
    }
}

// API-222
#[test]
fn an_update_whose_copy_was_stored_while_its_block_grew_old_is_a_duplicate() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let wallet = Wallet::new(1, 0x11);
        let inbox = Inbox::of(&wallet, 0);
        let opened = vec![
            message(&group(1), "beside"),
            inbox.update(1, &[Step::Create(&wallet, 0)]),
        ];
        let (answer, receiver) = oneshot::channel();
        let slow = world.client_with(Rc::new(Slow {
            answer: RefCell::new(Some(receiver)),
        }));
        let running = world.start(publish(&slow, opened.clone()));
        world.settle();
        let quick = world.client_with(Rc::new(Oracle {
            verdict: WalletVerdict::Valid,
            asked: RefCell::default(),
        }));
        let stored = world.run(publish(&quick, opened)).expect("stored");
        answer.send(WalletVerdict::BlockNotFresh).expect("awaited");
        world.settle();
        assert_eq!(running.take().expect("answered"), Ok(stored));
        assert_eq!(log_of(&world, &inbox).len(), 1);
    }
}

// API-271, API-281
#[test]
fn signatures_to_verify_are_counted_before_they_are_decoded() {
    let world = World::new(1);
    // Entries of one byte, which is no message.
    for (entries, why) in [(101, "max_scw_signatures"), (100, "does not decode")] {
        let request = Bytes::from([0x0a, 1, 0xff].repeat(entries));
        let client = world.client();
        let reply = world.run(async move {
            let context = CallContext::default();
            client
                .unary(
                    VerifySmartContractWalletSignatures::PATH,
                    request.clone(),
                    request.len(),
                    &context,
                )
                .await
        });
        let status = reply.result.expect_err("refused");
        assert_eq!(status.code, Code::InvalidArgument);
        assert!(status.message.contains(why), "{status:?}");
    }
}

// API-223
#[test]
fn more_wallet_signatures_than_allowed_are_too_large_and_no_chain_is_asked() {
    let limits = Limits {
        max_scw_signatures: 2,
        ..Limits::default()
    };
    let world = World::with(Configuration {
        shard_count: 4,
        limits,
        ..Configuration::default()
    });
    let wallet = Wallet::new(1, 0x11);
    let inbox = Inbox::of(&wallet, 0);
    let many = [
        Step::Create(&wallet, 0),
        Step::Add(&Installation::new(2), &wallet),
        Step::Add(&Installation::new(3), &wallet),
    ];
    let oracle = Rc::new(Oracle {
        verdict: WalletVerdict::Valid,
        asked: RefCell::default(),
    });
    let client = world.client_with(Rc::clone(&oracle) as Rc<dyn Chains>);
    let outcome = world.run(publish(
        &client,
        vec![message(&group(1), "x"), inbox.update(1, &many)],
    ));
    assert_eq!(refused(outcome), (Some(1), Reason::TooLarge));
    assert!(oracle.asked.borrow().is_empty());
    assert!(
        world
            .run(publish(&client, vec![inbox.update(1, &many[..2])]))
            .is_ok()
    );
}
