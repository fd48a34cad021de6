//! From a seed to a verdict.

use std::collections::BTreeSet;

use conclave_conversation::{
    certificates::faults as faults_of, membership::Membership, planted, test_support,
};
use conclave_harness::memo;

use super::{
    adversary::Adversary,
    agents::agents,
    bugs::{Breach, Bug},
    checkers,
    faults::{FaultSet, Rates},
    history::{History, Known},
    member::Member,
    report::Report,
    router::{Dialect, Router},
    world::{Future, SECOND, World},
};
use crate::random::Random;

/// What to simulate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How many members; drawn from the seed if none.
    pub members: Option<usize>,
    /// How many of them are Byzantine; drawn from the seed, most often `f` and never more, if none.
    pub byzantine: Option<usize>,
    /// The faults that may happen.
    pub faults: FaultSet,
    /// A planted bug.
    pub bug: Option<Bug>,
}

impl Options {
    /// The command that runs a seed again, and shows its whole history.
    #[must_use]
    pub fn replay_command(&self, seed: u64) -> String {
        let mut command = format!("cargo xtask sim conversation --replay {seed}");
        let numbers = [("members", self.members), ("byzantine", self.byzantine)];
        for (name, number) in numbers {
            if let Some(number) = number {
                command += &format!(" --{name} {number}");
            }
        }
        if self.faults != FaultSet::default() {
            command += &format!(" --faults {}", self.faults);
        }
        if let Some(bug) = self.bug {
            command += &format!(" --bug {bug}");
        }
        command
    }
}

/// The sizes that seeds draw, and how many seeds of a hundred draw each. A message costs its receivers, so large
/// conversations are fewer; of 20,000 seeds each size has at least 1,500.
const SIZES: [(usize, usize); 5] = [(2, 34), (3, 26), (4, 24), (7, 8), (10, 8)];

/// Members up to which a seed is as long as it can be. Every recovery of a larger conversation costs the cube of its
/// members, so what happens in it is half as long and has half the posts; each kind of fault and of mischief still has its
/// occasions, only fewer of them in one seed.
const SMALL: usize = 4;

/// Seeds with as many Byzantine members as the protocol bears, in thousandths. The others draw any lower number.
const FULLY_BYZANTINE: u64 = 850;

/// Inputs while faults happen, for each member, beyond which a run counts as one that never comes to rest. Whole seeds take
/// a tenth of it.
const INPUTS_MAX: u64 = 4_000;

/// Kinds of fault that a seed has, in thousandths, when all may happen.
const FAULT_LIKELY: u64 = 350;
/// The same when they are named: they were asked for.
const NAMED_FAULT_LIKELY: u64 = 1_000;
/// Seeds without any fault, in thousandths: in them counts of messages are exact.
const QUIET: u64 = 80;

/// Runs a seed.
#[must_use]
pub fn simulate(seed: u64, options: &Options) -> Report {
    memo::forget();
    let (breach, step) = match options.bug {
        Some(Bug::Breach(breach)) => (Some(breach), None),
        Some(Bug::Step(step)) => (None, Some(step)),
        None => (None, None),
    };
    planted::plant(step);
    let report = run(seed, options, breach);
    planted::plant(None);
    report
}

fn run(seed: u64, options: &Options, breach: Option<Breach>) -> Report {
    let random = Random::new(seed);
    let drawn = draw_size(random.below(100));
    let members = options.members.unwrap_or(drawn);
    let (most, fewer) = (faults_of(members), random.below(faults_of(members)));
    let drawn = if random.chance(FULLY_BYZANTINE) {
        most
    } else {
        fewer
    };
    let byzantine = options.byzantine.unwrap_or(drawn).min(members);
    let mut world = build(seed, random, members, byzantine, options);
    world.breach = breach;
    if byzantine > 0 {
        world.adversary = Some(Adversary::draw(&world.random));
    }
    begin(&mut world);
    let longest_s = if members > SMALL { 60 } else { 150 };
    let chaos_us = world.random.between(20, longest_s) * SECOND;
    if world.run(chaos_us, INPUTS_MAX * members as u64) {
        world.end();
    } else {
        world.read_stores();
    }
    let violations = checkers::check(&world.history);
    Report {
        seed,
        options: options.clone(),
        members,
        byzantine,
        inputs: world.inputs,
        virtual_ms: world.now_us / 1_000,
        violations,
        history: world.history,
    }
}

/// The size of a seed that drew a number below a hundred.
fn draw_size(drawn: usize) -> usize {
    let mut seeds = 0;
    let found = SIZES.iter().find(|(_, share)| {
        seeds += share;
        drawn < seeds
    });
    found.map_or(SIZES[0].0, |(size, _)| *size)
}

fn build(seed: u64, random: Random, members: usize, byzantine: usize, options: &Options) -> World {
    let agents = agents(members);
    let is_quiet = random.chance(QUIET) || options.faults == FaultSet::none();
    let likely = if options.faults == FaultSet::default() {
        FAULT_LIKELY
    } else {
        NAMED_FAULT_LIKELY
    };
    let rates = if is_quiet {
        Rates::none()
    } else {
        Rates::draw(&options.faults, likely, &random)
    };
    let dialect = if random.chance(700) {
        Dialect::Backend
    } else {
        Dialect::Chapter
    };
    let mut honest = vec![true; members];
    while honest.iter().filter(|is_honest| !**is_honest).count() < byzantine {
        honest[random.below(members)] = false;
    }
    let mut groups: Vec<Vec<usize>> = vec![(0..members).collect()];
    if members > 2 && random.chance(250) {
        // A second conversation among some of the honest ones: neither may hold the other.
        let able: Vec<usize> = (0..members).filter(|member| honest[*member]).collect();
        let size = usize::try_from(random.between(2, 3)).unwrap_or(2).min(able.len());
        let mut chosen = BTreeSet::new();
        while chosen.len() < size {
            chosen.insert(*random.pick(&able));
        }
        if size >= 2 && size < members {
            groups.push(chosen.into_iter().collect());
        }
    }
    let conversations: Vec<Membership> = groups
        .iter()
        .map(|group| {
            let cards = group.iter().map(|member| agents[*member].card.clone()).collect();
            Membership::from_cards(cards, &test_support::history()).expect("agents form a membership")
        })
        .collect();
    let history = History {
        agents: agents.iter().map(|agent| agent.id()).collect(),
        honest,
        conversations: conversations
            .iter()
            .zip(&groups)
            .map(|(membership, group)| Known {
                id: *membership.conversation_id(),
                members: group.clone(),
            })
            .collect(),
        is_exact: is_quiet,
        ..History::default()
    };
    let members = agents
        .into_iter()
        .enumerate()
        .map(|(number, agent)| Member::new(agent, seed.wrapping_mul(1_000).wrapping_add(number as u64)))
        .collect();
    World::new(
        random,
        rates,
        Router::new(dialect),
        members,
        conversations,
        history,
    )
}

/// Everyone opens, somebody posts, and faults begin.
fn begin(world: &mut World) {
    for member in 0..world.members.len() {
        let delay = world.random.between(0, SECOND);
        world.schedule(delay, Future::Open { member });
    }
    let groups: Vec<Vec<usize>> = world
        .history
        .conversations
        .iter()
        .map(|known| known.members.clone())
        .collect();
    for (conversation, group) in groups.into_iter().enumerate() {
        let (most, longest) = if group.len() > SMALL {
            (4, 30 * SECOND)
        } else {
            (7, 60 * SECOND)
        };
        let posts = world.random.between(2, most);
        for post in 0..posts {
            let member = *world.random.pick(&group);
            // Some at once, some at the same time as others, some after long silence.
            let delay = if post == 0 {
                SECOND
            } else {
                world.random.between(SECOND, longest)
            };
            world.schedule(delay, Future::Post { member, conversation });
        }
    }
    world.schedule(2 * SECOND, Future::Chaos);
    for member in (0..world.members.len())
        .filter(|member| !world.history.honest[*member])
        .collect::<Vec<_>>()
    {
        world.schedule(2 * SECOND, Future::Mischief { member });
    }
}
