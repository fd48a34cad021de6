//! Runs simulations from the command line; `cargo xtask sim` is the entrance.

use std::{
    ops::RangeInclusive,
    process::ExitCode,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use conclave_sim::backend::{
    bugs::Bug,
    faults::FaultSet,
    report::Report,
    seeds,
    simulation::{Options, simulate},
};

#[derive(Parser)]
#[command(
    name = "conclave-sim",
    about = "Deterministic simulation, replayable from a seed."
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The backend: objects, Workers and clients, with faults.
    Backend(BackendArguments),
}

#[derive(Args)]
struct BackendArguments {
    /// The seeds to run.
    #[arg(long, value_name = "A..B", default_value = "1..2000")]
    seeds: Seeds,
    /// Run one seed and show everything that happened.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    replay: Option<u64>,
    /// The shard count [default: drawn from each seed].
    #[arg(long, value_name = "N")]
    shards: Option<u32>,
    /// The faults that may happen: all, none, or names joined by commas.
    #[arg(long, default_value = "all")]
    faults: FaultSet,
    /// Plant a bug, which the checkers must find.
    #[arg(long, value_name = "NAME", value_parser = bug_names())]
    bug: Option<Bug>,
    /// Run every seed, and name each that fails.
    #[arg(long)]
    keep_going: bool,
}

/// Bugs by their names, which the help and a refusal list.
fn bug_names() -> impl TypedValueParser<Value = Bug> {
    PossibleValuesParser::new(Bug::all().map(|bug| bug.to_string())).try_map(|name| name.parse::<Bug>())
}

/// Both ends included.
#[derive(Clone, Debug)]
struct Seeds(RangeInclusive<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ends = text.split_once("..").unwrap_or((text, text));
        match (ends.0.parse(), ends.1.trim_start_matches('=').parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("{text:?} is no range of seeds like 1..2000")),
        }
    }
}

/// What running many seeds came to.
#[derive(Default)]
struct Tally {
    seeds: AtomicU64,
    requests: AtomicU64,
    successes: AtomicU64,
    has_failed: AtomicBool,
    failure: Mutex<Option<Report>>,
}

fn main() -> ExitCode {
    let What::Backend(arguments) = Arguments::parse().what;
    let options = Options {
        shards: arguments.shards,
        faults: arguments.faults,
        bug: arguments.bug,
    };
    match arguments.replay {
        Some(seed) => replay(seed, &options),
        None => run(&arguments.seeds.0, &options, arguments.keep_going),
    }
}

fn replay(seed: u64, options: &Options) -> ExitCode {
    let report = simulate(seed, options);
    println!("{}", report.whole_history());
    if report.violations.is_empty() {
        println!("seed {seed}, {} shards: everything holds", report.shard_count);
        return ExitCode::SUCCESS;
    }
    print!("{report}");
    ExitCode::FAILURE
}

/// Runs kept seeds, then the range, on every core; stops at the first that fails unless it is to keep going.
fn run(seeds: &RangeInclusive<u64>, options: &Options, keep_going: bool) -> ExitCode {
    let kept = if options.bug.is_none() {
        seeds::kept()
    } else {
        Vec::new()
    };
    let jobs: Vec<(u64, Options)> = kept
        .into_iter()
        .chain(seeds.clone().map(|seed| (seed, options.clone())))
        .collect();
    let (tally, next, started) = (Tally::default(), AtomicU64::new(0), Instant::now());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&jobs, &next, &tally, keep_going));
        }
    });
    let (ran, seconds) = (
        tally.seeds.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64(),
    );
    println!(
        "{ran} seeds in {seconds:.1} s; {} requests, {} of them answered with success",
        tally.requests.load(Ordering::Relaxed),
        tally.successes.load(Ordering::Relaxed)
    );
    match tally.failure.into_inner().ok().flatten() {
        None => ExitCode::SUCCESS,
        Some(report) => {
            print!("\n{report}");
            ExitCode::FAILURE
        }
    }
}

fn work(jobs: &[(u64, Options)], next: &AtomicU64, tally: &Tally, keep_going: bool) {
    while keep_going || !tally.has_failed.load(Ordering::Relaxed) {
        let place = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
        let Some((seed, options)) = jobs.get(place) else {
            break;
        };
        let report = simulate(*seed, options);
        let (requests, successes) = report.requests();
        tally.seeds.fetch_add(1, Ordering::Relaxed);
        tally.requests.fetch_add(requests as u64, Ordering::Relaxed);
        tally.successes.fetch_add(successes as u64, Ordering::Relaxed);
        if let Some(violation) = report.violations.first() {
            if keep_going {
                println!(
                    "{} {} ({})",
                    violation.checker,
                    report.replay_command(),
                    violation.text
                );
            }
            tally.has_failed.store(true, Ordering::Relaxed);
            if let Ok(mut failure) = tally.failure.lock() {
                failure.get_or_insert(report);
            }
        }
    }
}
