//! Two invented adjacent versions side by side: members that run different releases, history of a version that was retired,
//! and an outbox that is too old for the release that opens it.

use conclave_conversation::engine::{Context, Engine, Ignored, OpenError};
use conclave_conversation::membership::Membership;
use conclave_conversation::outer_message::OuterMessageError;
use conclave_conversation::store::rows::OutboundRow;
use conclave_conversation::test_support::SECOND_VERSION;
use conclave_harness::randomness::SeededRandomness;
use conclave_harness::{WIRE_VERSION, WireVersions};

use crate::scenario::{anchor, recovered, rows};
use crate::world::{Release, World};

/// Before the change: writes the first version, and takes both.
fn before() -> Release {
    Release {
        emits: WIRE_VERSION,
        live: WireVersions::of(&[WIRE_VERSION, SECOND_VERSION]),
    }
}

/// After it: writes the second version, and takes both.
fn after() -> Release {
    Release {
        emits: SECOND_VERSION,
        ..before()
    }
}

/// Long after: the first version is retired, and read as history only.
fn retired() -> Release {
    Release {
        emits: SECOND_VERSION,
        live: WireVersions::of(&[SECOND_VERSION]),
    }
}

fn change(world: &mut World, member: usize, release: Release) {
    world.crash(member);
    world.members[member].release = release;
    world.open(member);
    world.attach(member);
    world.settle();
}

/// Members of both releases, alternating.
fn mixed(members: usize) -> (World, Membership) {
    let mut world = World::new(members);
    for member in 0..members {
        let release = if member % 2 == 0 { before() } else { after() };
        change(&mut world, member, release);
    }
    let everyone = world.everyone();
    (world, everyone)
}

fn versions(world: &World, member: usize, membership: &Membership) -> Vec<String> {
    let version = |entry: conclave_conversation::engine::history::HistoryEntry| {
        entry.record_core.sharness_version().to_string()
    };
    world
        .history(member, membership)
        .into_iter()
        .map(version)
        .collect()
}

// CONV-A11, CONV-J18
#[test]
fn members_of_two_releases_share_one_history_in_which_each_post_has_its_authors_version() {
    let (mut world, everyone) = mixed(4);
    // Both begin at once: one of the two GENESIS wins, and the other post follows it.
    let first = [world.send(0, &everyone, "old"), world.send(1, &everyone, "new")];
    world.run_out();
    let more = [
        world.send(2, &everyone, "old again"),
        world.send(3, &everyone, "new again"),
    ];
    world.run_out();
    for (member, request) in [(0, first[0]), (1, first[1]), (2, more[0]), (3, more[1])] {
        assert!(world.members[member].sent[&request].is_ok(), "member {member}");
    }
    let (old, new) = (WIRE_VERSION.to_string(), SECOND_VERSION.to_string());
    let mut found = versions(&world, 0, &everyone);
    found.sort();
    let mut expected = [old.clone(), old, new.clone(), new];
    expected.sort();
    assert_eq!(found, expected);
    // A re-anchor takes its version from the head, whoever builds it: all build the same one.
    world.restart_router(1);
    world.run_out();
    assert!(recovered(&world, &[0, 1, 2, 3], &everyone));
    for member in 1..4 {
        assert_eq!(anchor(&world, member), anchor(&world, 0));
    }
    world.check(&everyone);
}

// CONV-G16
#[test]
fn history_of_a_retired_version_verifies_is_shown_to_others_and_goes_on() {
    let (mut world, everyone) = mixed(4);
    world.send(0, &everyone, "of the first version");
    world.run_out();
    world.send(2, &everyone, "and another");
    world.members[3].online = false;
    world.run_out();
    for member in 0..4 {
        change(&mut world, member, retired());
    }
    let old = WIRE_VERSION.to_string();
    assert_eq!(versions(&world, 0, &everyone), [old.clone(), old.clone()]);
    // The retired post is shown to a member that missed it.
    world.members[3].online = true;
    world.lose_unread(3, &everyone);
    world.run_out();
    assert_eq!(versions(&world, 3, &everyone), [old.clone(), old.clone()]);
    let post = world.send(3, &everyone, "of the second");
    world.run_out();
    assert!(world.members[3].sent[&post].is_ok());
    assert_eq!(
        versions(&world, 1, &everyone),
        [old.clone(), old, SECOND_VERSION.to_string()]
    );
    for member in 0..4 {
        world.restart(member);
        assert_eq!(world.history(member, &everyone).len(), 3);
    }
    world.check(&everyone);
}

#[test]
fn a_message_of_a_retired_version_is_ignored_and_the_others_go_on_without_its_sender() {
    let (mut world, everyone) = mixed(4);
    world.send(0, &everyone, "together");
    world.run_out();
    for member in 1..4 {
        change(&mut world, member, retired());
    }
    let late = world.send(0, &everyone, "left behind");
    world.settle();
    assert!(!world.members[0].sent.contains_key(&late));
    let refused = |reason: &Ignored| matches!(reason, Ignored::Outer(OuterMessageError::WrongSignature));
    assert!(world.members[1].ignored.iter().any(refused));
    let post = world.send(1, &everyone, "without it");
    world.settle();
    assert!(world.members[1].sent[&post].is_ok());
    // It upgrades, and its post is made.
    world.run_out();
    let pending: Vec<OutboundRow> = rows(&world, 0);
    assert_eq!(pending, [], "all of it was ordered: nothing holds the upgrade up");
    change(&mut world, 0, retired());
    world.run_out();
    assert_eq!(world.chain(0, &everyone).len(), 3);
    assert_eq!(world.chain(1, &everyone), world.chain(0, &everyone));
    world.check(&everyone);
}

// CONV-G15
#[test]
fn an_outbox_of_a_retired_version_is_refused_until_the_earlier_release_has_drained_it() {
    let (mut world, everyone) = mixed(2);
    world.send(0, &everyone, "together");
    world.run_out();
    world.members[0].online = false;
    world.send(0, &everyone, "still here");
    world.settle();
    world.crash(0);
    let pending: Vec<OutboundRow> = rows(&world, 0);
    assert!(!pending.is_empty());
    world.members[0].release = retired();
    let mut randomness = SeededRandomness::new(7);
    let context = Context {
        now_ms: world.now_ms,
        randomness: &mut randomness,
    };
    let before_opening = world.members[0].store.snapshot();
    let refused = Engine::open(world.members[0].local(), &before_opening, context).err();
    let Some(OpenError::OutboxTooOld { outbound_id, version }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (outbound_id, version),
        (pending[0].outbound_id.clone(), WIRE_VERSION.to_string())
    );
    assert_eq!(world.members[0].store.snapshot(), before_opening);
    // The earlier release sends it, never signed again.
    world.members[0].online = true;
    change(&mut world, 0, before());
    world.run_out();
    assert_eq!(rows::<OutboundRow>(&world, 0), []);
    for row in &pending {
        let ordered =
            |ordered: &&crate::world::Ordered| ordered.message.message_id().to_string() == row.outbound_id;
        assert_eq!(world.router.log.iter().filter(ordered).count(), 1);
    }
    change(&mut world, 0, retired());
    assert_eq!(world.chain(0, &everyone).len(), 2);
}
