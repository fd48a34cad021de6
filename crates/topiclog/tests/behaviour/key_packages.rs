//! Key packages: what is admitted, what is refused and why, and what a duplicate is spared.

use conclave_envelope::key_package::building::{Package, credential_of, lifetime};
use conclave_proto::xmtp::backend::v1::{ClientEnvelope, EnvelopeMeta, publish_error::Reason};

use crate::{
    client::{group, group_topic, message},
    identities::{key_package, package, refused},
    world::World,
};

fn topic_of(meta: &EnvelopeMeta) -> Vec<u8> {
    meta.topic.as_ref().expect("a topic").topic.to_vec()
}

// API-230, API-212, API-244
#[test]
fn a_sound_key_package_is_the_newest_of_its_installation_until_it_expires() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let (first, second) = (
            package(&world, 1),
            Package {
                init_key: vec![1; 32],
                ..package(&world, 1)
            },
        );
        let old = world.publish(vec![key_package(&first)]).expect("stored");
        let metas = world
            .publish(vec![message(&group(1), "beside"), key_package(&second)])
            .expect("stored");
        let topic = topic_of(&metas[1]);
        assert_eq!((topic[0], topic.len(), &topic), (3, 33, &topic_of(&old[0])));
        let retention = world.configuration().retention.key_package;
        assert_eq!(metas[1].expiry_ns, metas[1].server_ns + retention * 1_000_000_000);
        let newest = world.newest(&[topic], true).expect("newest");
        assert_eq!(newest.results.len(), 1);
        assert_eq!(newest.results[0].envelope, Some(key_package(&second)));
        assert_eq!(newest.results[0].meta.as_ref(), Some(&metas[1]));
    }
}

// API-230, API-223, API-220
#[test]
fn each_failure_has_its_reason_and_stores_nothing() {
    let world = World::new(4);
    let now = world.now_ns() / 1_000_000_000;
    let sound = package(&world, 1);
    let invalid = [
        Package {
            wrong_leaf_signature: true,
            ..sound.clone()
        },
        Package {
            wrong_package_signature: true,
            ..sound.clone()
        },
        Package {
            source: lifetime(now - 10, now),
            ..sound.clone()
        },
        Package {
            source: lifetime(now + 1, now + 10),
            ..sound.clone()
        },
        Package {
            credential: vec![0xff],
            ..sound.clone()
        },
        Package {
            credential_type: 2,
            ..sound.clone()
        },
        Package {
            init_key: vec![0xbb; 32],
            ..sound.clone()
        },
    ];
    for package in &invalid {
        let publish = vec![message(&group(7), "beside"), key_package(package)];
        assert_eq!(
            refused(world.publish(publish)),
            (Some(1), Reason::InvalidKeyPackage),
            "{package:?}"
        );
    }
    let malformed = Package {
        signature_key: Some(vec![4; 33]),
        ..sound.clone()
    };
    let publish = vec![message(&group(7), "beside"), key_package(&malformed)];
    assert_eq!(
        refused(world.publish(publish)),
        (Some(1), Reason::MalformedPayload)
    );
    assert!(world.read_all(&group_topic(&group(7))).is_empty());
    // Its very first and last seconds are within a lifetime.
    for source in [lifetime(now, now + 1), lifetime(0, u64::MAX)] {
        let publish = vec![key_package(&Package {
            source,
            ..sound.clone()
        })];
        assert!(world.publish(publish).is_ok());
    }
}

// API-235
#[test]
fn the_shapes_that_installations_publish_are_accepted() {
    let world = World::new(4);
    let now = world.now_ns() / 1_000_000_000;
    let sound = package(&world, 1);
    for shape in [
        Package {
            credential: credential_of("not hexadecimal"),
            ..sound.clone()
        },
        Package {
            credential: credential_of(""),
            ..sound.clone()
        },
        Package {
            cipher_suite: 1,
            ..sound.clone()
        },
        // What the package's extensions are is not among its capabilities.
        Package {
            capable_extensions: vec![],
            leaf_extensions: vec![],
            ..sound.clone()
        },
        Package {
            source: lifetime(0, u64::MAX),
            ..sound.clone()
        },
        Package {
            source: lifetime(now - 1, now + 100 * 365 * 86_400),
            ..sound.clone()
        },
    ] {
        let published = world.publish(vec![key_package(&shape)]);
        assert!(published.is_ok(), "{shape:?}: {published:?}");
    }
}

// API-222
#[test]
fn a_key_package_published_again_after_its_lifetime_is_the_stored_one() {
    for shards in [1, 4] {
        let world = World::new(shards);
        let stored = key_package(&package(&world, 1));
        let never_stored = key_package(&Package {
            init_key: vec![1; 32],
            ..package(&world, 1)
        });
        let first = world.publish(vec![stored.clone()]).expect("stored");
        world.advance_ms(2 * 3_600_000);
        assert_eq!(world.publish(vec![stored.clone()]).expect("a duplicate"), first);
        let twice = world
            .publish(vec![stored.clone(), message(&group(1), "beside"), stored.clone()])
            .expect("a duplicate");
        assert_eq!((&twice[0], &twice[2]), (&first[0], &first[0]));
        // The one that is new is judged, wherever the other stands.
        let publish = vec![stored.clone(), never_stored.clone(), never_stored.clone()];
        assert_eq!(
            refused(world.publish(publish)),
            (Some(1), Reason::InvalidKeyPackage)
        );
        assert_eq!(
            refused(world.publish(vec![never_stored, stored])),
            (Some(0), Reason::InvalidKeyPackage)
        );
    }
}

// API-223
#[test]
fn the_lowest_failing_index_is_named_whatever_it_takes_to_know() {
    let world = World::new(4);
    let stored = key_package(&package(&world, 1));
    world.publish(vec![stored.clone()]).expect("stored");
    world.advance_ms(2 * 3_600_000);
    let invalid = key_package(&Package {
        wrong_leaf_signature: true,
        ..package(&world, 2)
    });
    let malformed = ClientEnvelope { payload: None };
    let say = || message(&group(1), "beside");
    for (publish, index, reason) in [
        (
            vec![say(), invalid.clone(), malformed.clone()],
            1,
            Reason::InvalidKeyPackage,
        ),
        (
            vec![stored.clone(), malformed.clone(), invalid.clone()],
            1,
            Reason::MalformedPayload,
        ),
        (vec![stored, say(), invalid.clone()], 2, Reason::InvalidKeyPackage),
    ] {
        assert_eq!(refused(world.publish(publish)), (Some(index), reason));
    }
    assert!(world.read_all(&group_topic(&group(1))).is_empty());
}
