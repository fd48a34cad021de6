//! What a deployment is born with, and what it refuses to become.

use conclave_grpc_web::Code;
use conclave_topiclog::{Configuration, platform::ObjectName};

use crate::{
    client::*,
    world::{CallFate, World},
};

fn with_shards(shard_count: u32) -> Configuration {
    Configuration {
        shard_count,
        ..Configuration::default()
    }
}

#[test]
fn the_router_instance_is_minted_once_and_outlives_every_restart() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let instance = world.status().router_instance_id;
        assert!(
            instance.starts_with("rti_") && instance.len() == 4 + 22,
            "{instance}"
        );
        for shard in 0..shards {
            world.say(&group_on(&world, shard, 1), "x");
            world.crash(ObjectName::Shard(shard));
        }
        world.crash(ObjectName::Sequencer);
        assert_eq!(world.status().router_instance_id, instance);
        let backend = world.client();
        let reply = world.run(async move {
            let query = bytes::Bytes::new();
            let path = "/xmtp.backend.v1.QueryService/Query";
            let first = backend.unary(path, query.clone(), 0, &Default::default()).await;
            drop(first);
            backend
                .unary(
                    "/conclave.router.v1.RouterService/GetInstance",
                    query,
                    0,
                    &Default::default(),
                )
                .await
        });
        assert_eq!(reply.router_instance.as_deref(), Some(&instance[..]));
    }
}

#[test]
fn different_deployments_have_different_router_instances() {
    let instance = |seed| World::seeded(with_shards(4), seed).status().router_instance_id;
    assert_ne!(instance(1), instance(2));
}

#[test]
fn another_shard_count_is_refused_in_both_directions_with_both_values() {
    for (before, after) in [(1, 4), (4, 1), (4, 8), (16, 4)] {
        let world = World::new(before);
        let text_group = group(1);
        world.say(&text_group, "x");
        // Whatever is asked first after the change, and whichever shard it meets.
        world.redeploy(with_shards(after));
        for n in 0..20 {
            let topic = group_topic(&group(n));
            let refused = [
                world.publish(vec![message(&group(n), "y")]).expect_err("refused"),
                world.query(vec![query_of(&topic, 0)], 1).expect_err("refused"),
                world
                    .newest(std::slice::from_ref(&topic), false)
                    .expect_err("refused"),
                world.subscribe(vec![query_of(&topic, 0)]).expect_err("refused"),
            ];
            for status in refused {
                assert_eq!(status.code, Code::Unavailable);
                let (was, is) = (format!("{before} shards"), format!("now {after}"));
                assert!(
                    status.message.contains(&was) && status.message.contains(&is),
                    "{status}"
                );
            }
        }
        world.redeploy(with_shards(before));
        assert_eq!(world.read_all(&group_topic(&text_group)).len(), 1);
        world.say(&text_group, "y");
    }
}

#[test]
fn another_identifier_is_refused_with_both_values() {
    for shards in [1, 4] {
        let world = World::new(shards);
        world.say(&group(1), "x");
        world.redeploy(Configuration {
            identifier: "another".to_owned(),
            ..with_shards(shards)
        });
        let status = world.publish(vec![message(&group(1), "y")]).expect_err("refused");
        assert_eq!(status.code, Code::Unavailable);
        assert!(
            status.message.contains("another") && status.message.contains("conclave-local"),
            "{status}"
        );
    }
}

#[test]
fn a_birth_interrupted_anywhere_ends_with_one_router_instance() {
    for interrupted in 0..12 {
        let world = World::new(4);
        let mut left = interrupted;
        world.on_call(move |_, _| {
            left -= 1;
            match left {
                -1 => CallFate::LoseAnswer,
                -2 => CallFate::LoseRequest,
                -3 => CallFate::Repeat,
                _ => CallFate::Answer,
            }
        });
        let running: Vec<_> = (0..4)
            .map(|shard| {
                let group = group_on(&world, shard, 1);
                world.start(publish(&world.client(), vec![message(&group, "x")]))
            })
            .collect();
        world.settle();
        drop(running);
        world.without_faults();
        let instance = world.status().router_instance_id;
        for shard in 0..4 {
            let group = group_on(&world, shard, 1);
            assert!(
                world
                    .publish_expecting(vec![message(&group, "x")], &instance)
                    .is_ok()
            );
        }
    }
}
