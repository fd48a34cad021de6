//! Members, posts, crashes, gaps and restarts of the Router in an order drawn at random; then everything works again, and
//! everyone must have one history with every post in it.

use conclave_conversation::engine::{Context, ConversationStatus, Engine};
use conclave_conversation::membership::Membership;
use conclave_conversation::values::PostId;
use conclave_harness::randomness::{SeededRandomness, random_array};
use conclave_harness::{AgentId, Randomness};

use crate::world::{CrashPoint, World};

/// Steps of trouble in one run.
const STEPS: usize = 250;

fn draw(randomness: &mut dyn Randomness, below: usize) -> usize {
    usize::from(u16::from_be_bytes(random_array::<2>(randomness))) % below
}

fn trouble(seed: u64, members: usize) -> (World, Membership) {
    let mut world = World::new(members);
    let everyone = world.everyone();
    world.send(0, &everyone, "genesis");
    if seed.is_multiple_of(4) {
        // Trouble from the very first message on.
    } else {
        world.settle();
    }
    let mut chance = SeededRandomness::new(seed);
    let mut instance = 0;
    for step in 0..STEPS {
        let member = draw(&mut chance, members);
        if world.members[member].engine.is_none() {
            if draw(&mut chance, 8) == 0 {
                world.open(member);
                world.attach(member);
            }
            continue;
        }
        match draw(&mut chance, 100) {
            0..=2 => {
                let unfinished = world.members[member].bound.len() - world.members[member].sent.len().min(2);
                if unfinished < 4 {
                    world.send(member, &everyone, &format!("post {step}"));
                }
            }
            3 => {
                world.crash_at.insert(member, CrashPoint::BeforeCommit);
            }
            4 => {
                world.crash_at.insert(member, CrashPoint::AfterCommit);
            }
            5 if instance < 3 => {
                instance += 1;
                world.router.restart(instance);
                if draw(&mut chance, 2) == 0 {
                    world.attach(member);
                }
            }
            6 => {
                world.next_timer();
            }
            7 => world.crash(member),
            8..=50 => {
                world.transmit_one(member);
            }
            _ => {
                world.deliver_one(member);
            }
        }
    }
    (world, everyone)
}

fn require_converged(seed: u64, members: usize) {
    let (mut world, everyone) = trouble(seed, members);
    world.crash_at.clear();
    for member in 0..members {
        if world.members[member].engine.is_none() {
            world.open(member);
        }
        world.attach(member);
    }
    world.run_out();
    // What ran out of retries before everyone was there begins again.
    for member in 0..members {
        world.attach(member);
    }
    world.run_out();
    world.check(&everyone);
    let chain = world.chain(0, &everyone);
    for member in 0..members {
        let this = &world.members[member];
        assert!(this.fatal.is_none(), "seed {seed}: {:?}", this.fatal);
        if let Some(status) = this.status.get(everyone.conversation_id()) {
            assert_eq!(
                *status,
                ConversationStatus::Recovered,
                "seed {seed} member {member}"
            );
        }
        assert_eq!(
            world.chain(member, &everyone),
            chain,
            "seed {seed} member {member}"
        );
        let unfinished: usize = this.engine.as_ref().map_or(0, |engine| {
            engine.unfinished_posts(everyone.conversation_id()).count()
        });
        assert_eq!(unfinished, 0, "seed {seed} member {member} has unfinished posts");
    }
    for member in 0..members {
        world.restart(member);
    }
    world.settle();
    world.check(&everyone);
}

#[test]
fn pairs_converge_whatever_restarts() {
    (0..8).for_each(|seed| require_converged(seed, 2));
}

#[test]
fn three_members_converge_whatever_restarts() {
    (100..105).for_each(|seed| require_converged(seed, 3));
}

#[test]
fn four_members_converge_whatever_restarts() {
    (200..203).for_each(|seed| require_converged(seed, 4));
}

// CONV-H18
#[test]
fn members_know_each_other_from_what_they_stored_and_ask_nobody() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    world.send(0, &everyone, "while the Registry answered");
    world.settle();
    // The engines begin anew from their stores alone; nothing they are given from here on names a card.
    for member in 0..3 {
        world.restart(member);
    }
    for author in 0..3 {
        let post = world.send(author, &everyone, "while it does not");
        world.settle();
        assert!(world.members[author].sent[&post].is_ok());
    }
    let before = world.members[0].ignored.len();
    // An agent that is no member is none here either, whoever vouches for it.
    let stranger = conclave_conversation::test_support::Agent::new(40);
    let message = conclave_harness::SignedMessage::sign(
        &stranger.card,
        &stranger.key,
        &everyone.agent_ids(),
        conclave_harness::MessageId::from_bytes([1; 16]),
        b"{}",
        conclave_harness::WIRE_VERSION,
    )
    .unwrap();
    world.inject(&everyone, message.into_encoded());
    world.settle();
    assert_eq!(world.members[0].ignored.len(), before + 1);
    assert_eq!(world.chain(2, &everyone).len(), 4);
    world.check(&everyone);
}

/// What holds the lock at the head: its post, whether it is stored, and how many signed and store it.
type Locked = Option<(PostId, bool, Vec<AgentId>, Vec<AgentId>)>;

fn locked(engine: &Engine, of: &Membership) -> Locked {
    let locked = engine.locked_post(of.conversation_id())?;
    assert!(!locked.is_genesis || engine.conversations().all(|view| view.records == 0));
    Some((
        locked.intent.post_id,
        locked.is_stored,
        locked.signed_by,
        locked.stored_by,
    ))
}

#[test]
fn the_post_that_holds_the_lock_is_known_as_it_was_after_a_restart_at_any_step() {
    let mut world = World::new(3);
    let everyone = world.everyone();
    let mut seen: Vec<Locked> = Vec::new();
    for text in ["genesis", "a post"] {
        world.send(0, &everyone, text);
        for member in (0..3).cycle().take(200) {
            world.transmit_one(member);
            world.deliver_one(member);
            let this = &world.members[member];
            let engine = this.engine.as_ref().expect("an engine");
            let mut randomness = SeededRandomness::new(0);
            let context = Context {
                now_ms: world.now_ms,
                randomness: &mut randomness,
            };
            let opened = Engine::open(this.local(), &this.store.snapshot(), context);
            let (again, _) = opened.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(locked(&again, &everyone), locked(engine, &everyone));
            seen.push(locked(engine, &everyone));
        }
        assert_eq!(
            seen.last(),
            Some(&None),
            "nothing holds the lock of a settled conversation"
        );
    }
    let has = |passes: &dyn Fn(bool, usize, usize) -> bool| {
        let mut held = seen.iter().flatten();
        held.any(|(_, is_stored, signed, stored)| passes(*is_stored, signed.len(), stored.len()))
    };
    assert!(has(&|is_stored, signed, _| !is_stored && signed > 1));
    assert!(has(&|is_stored, _, stored| is_stored && stored > 0));
}
