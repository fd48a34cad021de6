//! What a post costs beside the cryptography it needs: the `conversation` family of `cargo xtask bench`.
//!
//! Writes one JSON object a line, as that program reads them. Floor and engines run in turns, in one process, over stores in
//! memory; `ratio` is the median over pairs of neighbouring turns.

mod floor;
mod room;

use std::time::{Duration, Instant};

use conclave_conversation::engine::{Context, Engine};
use conclave_conversation::store::rows::EvidenceRow;
use conclave_harness::EncodedSignedMessage;
use conclave_harness::randomness::SeededRandomness;
use serde_json::json;

use crate::floor::Floor;
use crate::room::Room;

/// Certified posts per second of engines over those of the floor, among four members.
const POSTS_RATIO_MIN: f64 = 0.6;
/// Seconds of a cold open over those of verifying the same signatures bare.
const OPEN_RATIO_MAX: f64 = 1.5;

/// How much is measured.
struct Sizes {
    turns: usize,
    /// Posts of a turn, by members.
    posts: [(usize, usize); 4],
    recovered: usize,
    opened: usize,
}

const FULL: Sizes = Sizes {
    turns: 9,
    posts: [(2, 100), (4, 40), (10, 8), (32, 1)],
    recovered: 1_000,
    opened: 10_000,
};
const QUICK: Sizes = Sizes {
    turns: 3,
    posts: [(2, 20), (4, 10), (10, 2), (32, 1)],
    recovered: 50,
    opened: 300,
};

fn main() {
    let sizes = if std::env::args().any(|argument| argument == "--quick") {
        QUICK
    } else {
        FULL
    };
    measure_recovery(sizes.recovered);
    measure_open(sizes.opened, sizes.turns);
    for (members, posts) in sizes.posts {
        measure_posts(members, posts, sizes.turns);
    }
}

fn measure_posts(members: usize, posts: usize, turns: usize) {
    let mut room = Room::new(members);
    let everyone = room.everyone();
    room.post(0, &everyone, "genesis");
    room.post(1, &everyone, "warm");
    let mut floors = Vec::new();
    let mut ours = Vec::new();
    let mut cost = String::new();
    for _ in 0..turns {
        let before = room.log.len();
        let begun = Instant::now();
        for number in 0..posts {
            room.post(
                number % members,
                &everyone,
                "a post of a few words, as people write them",
            );
        }
        ours.push(begun.elapsed());
        let floor = Floor::of(&room, before..room.log.len());
        cost = floor.per_post(posts);
        let begun = Instant::now();
        floor.run();
        floors.push(begun.elapsed());
    }
    let per_second = |elapsed: &Duration| posts as f64 / elapsed.as_secs_f64();
    let ratio = median(
        floors
            .iter()
            .zip(&ours)
            .map(|(floor, ours)| per_second(ours) / per_second(floor)),
    );
    let goal = (members == 4).then_some(("at least", POSTS_RATIO_MIN, ratio >= POSTS_RATIO_MIN));
    let what = format!("certified posts, {members} members ({cost})");
    let (floor, ours) = (
        median(floors.iter().map(per_second)),
        median(ours.iter().map(per_second)),
    );
    tell(&what, "posts/s", floor, ours, ratio, goal);
}

/// One agent recovers its conversations with as many others after the Router restarted. All engines run in this process.
fn measure_recovery(conversations: usize) {
    let mut room = Room::new(conversations + 1);
    for other in 1..=conversations {
        let pair = room.membership(&[0, other]);
        room.post(0, &pair, "genesis");
    }
    let before = room.log.len();
    let begun = Instant::now();
    room.restart_router();
    let ours = begun.elapsed();
    room.require_recovered();
    let floor = Floor::of(&room, before..room.log.len());
    let begun = Instant::now();
    floor.run();
    let floor = begun.elapsed();
    tell(
        &format!("recovery of {conversations} conversations of two after a Router restart"),
        "s",
        floor.as_secs_f64(),
        ours.as_secs_f64(),
        ours.as_secs_f64() / floor.as_secs_f64(),
        None,
    );
}

fn measure_open(records: usize, turns: usize) {
    let mut room = Room::new(2);
    let pair = room.everyone();
    for number in 0..records {
        room.post(number % 2, &pair, "one of many");
    }
    let (local, store) = room.stored(0);
    let evidence: Vec<EvidenceRow> = store.rows().expect("evidence");
    let signed: Vec<EncodedSignedMessage> = evidence
        .iter()
        .filter_map(|row| EncodedSignedMessage::from_canonical_bytes(row.canonical_evidence.as_bytes()).ok())
        .collect();
    let floor = Floor::of_signatures(&room, &signed);
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        let mut randomness = SeededRandomness::new(1);
        let context = Context {
            now_ms: 0,
            randomness: &mut randomness,
        };
        let begun = Instant::now();
        let opened = Engine::open(local.clone(), &store, context);
        ours.push(begun.elapsed());
        assert!(opened.is_ok(), "the store opens");
        let begun = Instant::now();
        floor.run();
        floors.push(begun.elapsed());
    }
    let seconds = |elapsed: &Duration| elapsed.as_secs_f64();
    let ratio = median(
        floors
            .iter()
            .zip(&ours)
            .map(|(floor, ours)| seconds(ours) / seconds(floor)),
    );
    tell(
        &format!(
            "cold open with {records} certified posts ({} signatures)",
            signed.len()
        ),
        "s",
        median(floors.iter().map(seconds)),
        median(ours.iter().map(seconds)),
        ratio,
        Some(("at most", OPEN_RATIO_MAX, ratio <= OPEN_RATIO_MAX)),
    );
}

fn tell(what: &str, unit: &str, floor: f64, ours: f64, ratio: f64, goal: Option<(&str, f64, bool)>) {
    let line = json!({
        "what": what,
        "unit": unit,
        "floor": written(floor),
        "backend": written(ours),
        "ratio": format!("{ratio:.2}"),
        "goal": goal.map(|(words, bound, _)| format!("{words} {bound}")),
        "is_met": goal.map(|(_, _, is_met)| is_met),
    });
    println!("{line}");
}

/// Three digits that mean something.
fn written(figure: f64) -> String {
    match figure {
        figure if figure >= 100.0 => format!("{figure:.0}"),
        figure if figure >= 10.0 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
