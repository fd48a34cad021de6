//! Publish while answers, calls and writes are lost, and while other publishes are in flight (contract section 3).

use conclave_grpc_web::Code;
use conclave_sql::Sql as _;
use conclave_topiclog::platform::ObjectName;

use crate::{
    client::*,
    world::{CallFate, World},
};

const SHARD_COUNTS: [u32; 2] = [1, 4];

#[test]
fn a_batch_that_was_lost_before_it_was_durable_is_as_if_it_never_was() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        world.say(&group, "kept");
        world.fail_next_sync(ObjectName::Shard(0));
        let running: Vec<_> = (0..5)
            .map(|n| world.start(publish(&world.client(), vec![message(&group, &format!("{n}"))])))
            .collect();
        world.settle();
        let outcomes: Vec<_> = running
            .iter()
            .map(|slot| slot.take().expect("answered"))
            .collect();
        for outcome in &outcomes {
            let code = outcome.as_ref().err().map(|status| status.code);
            assert!(code.is_none() || code == Some(Code::Unavailable), "{outcome:?}");
        }
        assert!(outcomes.iter().any(Result::is_err));
        let retried: Vec<u64> = (0..5).map(|n| world.say(&group, &format!("{n}"))).collect();
        for (outcome, id) in outcomes.iter().zip(&retried) {
            assert!(outcome.as_ref().map_or(true, |metas| ids(metas) == [*id]));
        }
        assert_eq!(world.read_all(&group_topic(&group)).len(), 6);
    }
}

#[test]
fn a_publish_whose_answer_was_lost_is_found_by_a_retry() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        world.on_call(|_, method| {
            if method == "store" {
                CallFate::LoseAnswer
            } else {
                CallFate::Answer
            }
        });
        let status = world.publish(vec![message(&group, "once")]).expect_err("lost");
        assert_eq!(status.code, Code::Unavailable);
        world.without_faults();
        let stored = stored_ids(&world.read_all(&group_topic(&group)));
        assert_eq!(
            ids(&world.publish(vec![message(&group, "once")]).expect("published")),
            stored
        );
        assert_eq!(stored.len(), 1);
    }
}

#[test]
fn a_store_call_that_runs_twice_stores_once() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        world.on_call(|_, _| CallFate::Repeat);
        let group = group_on(&world, 0, 1);
        let metas = world
            .publish(vec![message(&group, "a"), message(&group, "b")])
            .expect("published");
        assert_eq!(stored_ids(&world.read_all(&group_topic(&group))), ids(&metas));
    }
}

#[test]
fn a_refused_publish_does_not_take_a_shared_envelope_down_with_it() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        world.say(&group, "first");
        // All three wait behind a commit that is held, and so share the next batch.
        world.hold_syncs(ObjectName::Shard(0), true);
        let opener = world.start(publish(&world.client(), vec![message(&group, "opener")]));
        world.settle();
        let context = conclave_topiclog::CallContext {
            expected_router_instance: Some("rti_another".to_owned()),
            ..Default::default()
        };
        let request = conclave_proto::xmtp::backend::v1::PublishRequest {
            envelopes: vec![message(&group, "shared")],
        };
        let refused = world.start(
            call::<conclave_proto::xmtp::backend::v1::publish_service::Publish>(
                &world.client(),
                &request,
                context,
            ),
        );
        let accepted = world.start(publish(&world.client(), vec![message(&group, "shared")]));
        world.settle();
        world.hold_syncs(ObjectName::Shard(0), false);
        world.settle();
        assert!(opener.take().expect("answered").is_ok());
        assert_eq!(
            refused.take().expect("answered").expect_err("refused").code,
            Code::FailedPrecondition
        );
        let metas = accepted.take().expect("answered").expect("published");
        assert_eq!(
            stored_ids(&world.read_all(&group_topic(&group))).last(),
            Some(&id_of(&metas[0]))
        );
    }
}

#[test]
fn what_arrives_while_a_commit_is_in_flight_shares_the_next_one() {
    for shards in SHARD_COUNTS {
        let world = World::new(shards);
        let group = group_on(&world, 0, 1);
        world.say(&group, "warm");
        let (syncs, allocations) = (
            world.syncs(ObjectName::Shard(0)),
            world.calls(ObjectName::Sequencer, "allocate"),
        );
        world.hold_syncs(ObjectName::Shard(0), true);
        let running: Vec<_> = (0..64)
            .map(|n| world.start(publish(&world.client(), vec![message(&group, &format!("{n}"))])))
            .collect();
        world.settle();
        world.hold_syncs(ObjectName::Shard(0), false);
        world.settle();
        assert!(
            running
                .iter()
                .all(|slot| slot.take().is_some_and(|outcome| outcome.is_ok()))
        );
        assert!(
            world.syncs(ObjectName::Shard(0)) - syncs <= 4,
            "a few commits for 64 publishes"
        );
        assert!(world.calls(ObjectName::Sequencer, "allocate") - allocations <= 4);
        assert_eq!(world.read_all(&group_topic(&group)).len(), 65);
    }
}

#[test]
fn a_lost_allocation_is_asked_for_again() {
    let world = World::new(4);
    let group = group_on(&world, 2, 1);
    let mut losses = 2;
    world.on_call(move |_, method| {
        if method == "allocate" && losses > 0 {
            losses -= 1;
            return if losses == 1 {
                CallFate::LoseAnswer
            } else {
                CallFate::LoseRequest
            };
        }
        CallFate::Answer
    });
    assert!(world.publish(vec![message(&group, "x")]).is_ok());
    world.on_call(|_, method| {
        if method == "allocate" {
            CallFate::LoseAnswer
        } else {
            CallFate::Answer
        }
    });
    assert_eq!(
        world
            .publish(vec![message(&group, "y")])
            .expect_err("no ids")
            .code,
        Code::Unavailable
    );
    world.without_faults();
    assert_eq!(world.read_all(&group_topic(&group)).len(), 1);
}

#[test]
fn a_shard_whose_storage_was_restored_takes_a_later_incarnation() {
    let world = World::new(4);
    let group = group_on(&world, 0, 1);
    for n in 0..3 {
        world.say(&group, &n.to_string());
        world.crash(ObjectName::Shard(0));
    }
    let storage = &world.shared.object(ObjectName::Shard(0)).storage;
    storage
        .execute("UPDATE incarnation SET value = 0", &[])
        .expect("written");
    storage.commit();
    world.say(&group, "after");
    world.crash(ObjectName::Shard(0));
    world.say(&group, "and after the next restart");
    assert_eq!(world.read_all(&group_topic(&group)).len(), 5);
    assert!(world.status().closed_allocation_boundary.is_some());
}
