//! Runs simulations from the command line; `cargo xtask sim` is the entrance.

use std::{
    ops::RangeInclusive,
    panic::catch_unwind,
    process::ExitCode,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use conclave_sim::{backend, conversation};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// Conversations: engines, their stores and one Router, with faults and Byzantine members.
    Conversation(ConversationArguments),
}

#[derive(Args)]
struct BackendArguments {
    /// The seeds to run.
    #[arg(long, value_name = "A..B", default_value = "1..2000")]
    seeds: Seeds,
    /// Run one seed and show everything that happened.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    replay: Option<u64>,
    /// What clients do: mixed, or streams.
    #[arg(long, default_value = "mixed")]
    workload: backend::simulation::Workload,
    /// The shard count [default: drawn from each seed].
    #[arg(long, value_name = "N")]
    shards: Option<u32>,
    /// The faults that may happen: all, none, or names joined by commas.
    #[arg(long, default_value = "all")]
    faults: backend::faults::FaultSet,
    /// Plant a bug, which the checkers must find.
    #[arg(long, value_name = "NAME", value_parser = bug_names())]
    bug: Option<backend::bugs::Bug>,
    /// Run every seed, and name each that fails.
    #[arg(long)]
    keep_going: bool,
}

/// Bugs by their names, which the help and a refusal list.
fn bug_names() -> impl TypedValueParser<Value = backend::bugs::Bug> {
    let names = backend::bugs::Bug::all().map(|bug| bug.to_string());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<backend::bugs::Bug>())
}

#[derive(Args)]
struct ConversationArguments {
    /// The seeds to run.
    #[arg(long, value_name = "A..B", default_value = "1..2000")]
    seeds: Seeds,
    /// Run one seed and show everything that happened.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    replay: Option<u64>,
    /// How many members [default: drawn from each seed].
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// How many of them are Byzantine [default: drawn from each seed, most often f].
    #[arg(long, value_name = "F")]
    byzantine: Option<usize>,
    /// The faults that may happen: all, none, or names joined by commas.
    #[arg(long, default_value = "all")]
    faults: conversation::faults::FaultSet,
    /// Plant a bug, which the checkers must find.
    #[arg(long, value_name = "NAME")]
    bug: Option<conversation::bugs::Bug>,
    /// Go on after a seed that fails.
    #[arg(long)]
    keep_going: bool,
    /// How many seeds run side by side [default: one for each core].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
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

fn main() -> ExitCode {
    match Arguments::parse().what {
        What::Backend(arguments) => run_backend(arguments),
        What::Conversation(arguments) => run_conversation(arguments),
    }
}

fn run_backend(arguments: BackendArguments) -> ExitCode {
    use backend::{
        seeds,
        simulation::{Options, simulate},
    };
    let options = Options {
        workload: arguments.workload,
        shards: arguments.shards,
        faults: arguments.faults,
        bug: arguments.bug,
    };
    if let Some(seed) = arguments.replay {
        let report = simulate(seed, &options);
        println!("{}", report.whole_history());
        let summary = format!("seed {seed}, {} shards: everything holds", report.shard_count);
        return verdict(
            (!report.violations.is_empty()).then(|| report.to_string()),
            &summary,
        );
    }
    let kept = if options.bug.is_none() {
        seeds::kept()
    } else {
        Vec::new()
    };
    let jobs = jobs(kept, &arguments.seeds, &options);
    let (requests, successes) = (AtomicU64::new(0), AtomicU64::new(0));
    let ran = run(&jobs, None, arguments.keep_going, |(seed, options)| {
        let report = simulate(*seed, options);
        let (all, answered) = report.requests();
        requests.fetch_add(all as u64, Ordering::Relaxed);
        successes.fetch_add(answered as u64, Ordering::Relaxed);
        (!report.violations.is_empty()).then(|| report.to_string())
    });
    let (requests, successes) = (requests.into_inner(), successes.into_inner());
    ran.tell(&format!(
        "{requests} requests, {successes} of them answered with success"
    ))
}

fn run_conversation(arguments: ConversationArguments) -> ExitCode {
    use conversation::{
        seeds,
        simulation::{Options, simulate},
    };
    let options = Options {
        members: arguments.members,
        byzantine: arguments.byzantine,
        faults: arguments.faults,
        bug: arguments.bug,
    };
    if let Some(seed) = arguments.replay {
        let report = simulate(seed, &options);
        println!("{}", report.whole_history());
        let summary = format!("seed {seed}: everything holds; {}", report.summary());
        return verdict(
            (!report.violations.is_empty()).then(|| report.to_string()),
            &summary,
        );
    }
    let kept = if options.bug.is_none() {
        seeds::kept()
    } else {
        Vec::new()
    };
    let jobs = jobs(kept, &arguments.seeds, &options);
    let tally = Mutex::new(conversation::report::Tally::default());
    let ran = run(
        &jobs,
        arguments.threads,
        arguments.keep_going,
        |(seed, options)| {
            let Ok(report) = catch_unwind(|| simulate(*seed, options)) else {
                let command = options.replay_command(*seed);
                return Some(format!("seed {seed}: panics\nreplay: {command}\n"));
            };
            if let Ok(mut tally) = tally.lock() {
                tally.add(&report);
            }
            (!report.violations.is_empty()).then(|| report.to_string())
        },
    );
    let tally = tally.into_inner().map(|tally| tally.to_string());
    ran.tell(&tally.unwrap_or_default())
}

fn verdict(failure: Option<String>, summary: &str) -> ExitCode {
    match failure {
        None => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Some(report) => {
            print!("{report}");
            ExitCode::FAILURE
        }
    }
}

/// Kept seeds, then the range.
fn jobs<O: Clone>(kept: Vec<(u64, O)>, seeds: &Seeds, options: &O) -> Vec<(u64, O)> {
    let range = seeds.0.clone().map(|seed| (seed, options.clone()));
    kept.into_iter().chain(range).collect()
}

/// What running many seeds came to.
struct Ran {
    seeds: u64,
    seconds: f64,
    failures: u64,
    first: Option<String>,
}

impl Ran {
    fn tell(self, figures: &str) -> ExitCode {
        println!(
            "{} seeds in {:.1} s, {} do not hold\n{figures}",
            self.seeds, self.seconds, self.failures
        );
        match self.first {
            None => ExitCode::SUCCESS,
            Some(report) => {
                print!("\n{report}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Seeds after which a run says how far it is.
const PROGRESS_EVERY: u64 = 250;

/// Runs jobs side by side; stops at the first that fails, unless it is to go on.
fn run<J: Sync>(
    jobs: &[J],
    threads: Option<usize>,
    goes_on: bool,
    simulate: impl Fn(&J) -> Option<String> + Sync,
) -> Ran {
    let (next, seeds, failures) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let first = Mutex::new(None);
    let started = Instant::now();
    let work = || {
        while goes_on || failures.load(Ordering::Relaxed) == 0 {
            let place = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
            let Some(job) = jobs.get(place) else { break };
            let failure = simulate(job);
            let done = seeds.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(report) = failure {
                failures.fetch_add(1, Ordering::Relaxed);
                if goes_on {
                    println!("{report}");
                }
                if let Ok(mut first) = first.lock() {
                    first.get_or_insert(report);
                }
            }
            if done.is_multiple_of(PROGRESS_EVERY) && done < jobs.len() as u64 {
                eprintln!(
                    "{done} of {} seeds in {:.0} s, {} do not hold",
                    jobs.len(),
                    started.elapsed().as_secs_f64(),
                    failures.load(Ordering::Relaxed)
                );
            }
        }
    };
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    Ran {
        seeds: seeds.into_inner(),
        seconds: started.elapsed().as_secs_f64(),
        failures: failures.into_inner(),
        first: first.into_inner().ok().flatten(),
    }
}
