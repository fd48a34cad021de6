//! The command tree: what can be asked for, and its help. What a command does is in the module of its name.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    bench, children, dev, docs, doctor, fuzz, parts, requirements, sim, test, tools::Tools,
    workspace::Workspace,
};

/// Builds, runs and tests Conclave. Start with `cargo xtask dev`.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        cargo xtask dev                  serve the worker, the client and the site on http://127.0.0.1:8787\n  \
        cargo xtask test                 run every layer of tests, as CI does\n  \
        cargo xtask test unit            run only what needs neither a runtime nor a browser\n  \
        cargo xtask bench publish        measure what a publish costs\n  \
        cargo xtask sim backend          look for faults under faults, seed by seed; or sim conversation\n  \
        cargo xtask fuzz                 look for bytes that break a decoder\n  \
        cargo xtask doctor               say what this machine has and lacks\n\n\
        What is missing (the wasm target, Node, npm packages) is installed on the way, from package registries only, and\n\
        kept below node_modules/ and target/. Progress goes to standard error."
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve worker, client and site locally, rebuilt on change and restarted when the runtime dies.
    Dev(DevArguments),
    /// Run the tests, layer by layer.
    Test(TestArguments),
    /// Build the worker, the client package and the site.
    Build(BuildArguments),
    /// Write the pages that are made from what they speak of: sizes, error codes, the client's reference.
    Docs,
    /// Write one folder with all that a machine needs to serve the deployment without Cloudflare.
    Bundle(BundleArguments),
    /// List every requirement with the tests that hold it; fail on one without.
    Requirements(RequirementsArguments),
    /// Simulate, with everything that can go wrong, replayable from a seed.
    Sim(SimArguments),
    /// Measure, beside the floor that each figure is compared with, and write docs/benchmarks.md.
    Bench(BenchArguments),
    /// Look for bytes that break a decoder.
    Fuzz(FuzzArguments),
    /// Say what this machine has and lacks, and how a running deployment is.
    Doctor(DoctorArguments),
    /// Become another program that ends with the one that started it.
    #[command(name = children::EXEC_COMMAND, hide = true)]
    Exec(ExecArguments),
}

/// `cargo xtask dev`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask dev                            state is kept in target/state and survives restarts\n  \
    cargo xtask dev --fresh --port 0           a free port and an empty state, both gone at the end\n  \
    cargo xtask dev --shards 4 --fresh         four topic shards; the number is fixed when a state is born\n\n\
    Native gRPC, gRPC-Web and the site are served on the one port, in HTTP/1.1 and HTTP/2 without TLS.\n\
    Prints exactly one line on standard output, `ready http://127.0.0.1:PORT`, once requests are answered.\n\
    Ctrl-C ends it and all that it started.")]
pub(crate) struct DevArguments {
    /// The port on 127.0.0.1; 0 takes a free one, which the `ready` line names.
    #[arg(long, default_value_t = 8787)]
    pub(crate) port: u16,
    /// How many topic shards a new state is born with [default: what wrangler.toml says].
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u32>,
    /// Where objects keep their storage [default: target/state].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Start from an empty state in a temporary folder that is removed at the end.
    #[arg(long, conflicts_with = "state")]
    pub(crate) fresh: bool,
    /// Set a variable of the worker over wrangler.toml's; may be given again.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
    /// Serve what was built before: build nothing and watch nothing.
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Build the worker with its test-only features, such as a panic on purpose.
    #[arg(long)]
    pub(crate) test_build: bool,
    /// Build unoptimised: quicker to build, larger and slower to run.
    #[arg(long)]
    pub(crate) debug: bool,
    /// Serve the runtime itself, without the gateway in front: HTTP/1.1, and gRPC-Web but no native gRPC.
    #[arg(long)]
    pub(crate) direct: bool,
}

/// A layer of tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Layer {
    /// Formatting, lints, and the tests of every crate.
    Unit,
    /// The built worker in workerd, state on disk: tests/platform.
    Platform,
    /// gRPC-Web clients of other makers against it: tests/clients.
    Clients,
    /// Chromium against it: tests/browser.
    Browser,
}

/// `cargo xtask test`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask test                              every layer, in order\n  \
    cargo xtask test unit platform                two of them\n  \
    cargo xtask test browser --filter reload      only tests whose name holds `reload`\n\n\
    The last line is `N passed, N failed`. The browser layer needs Chromium; on Debian and as root it is installed.")]
pub(crate) struct TestArguments {
    /// The layers to run [default: all].
    #[arg(value_enum)]
    pub(crate) layers: Vec<Layer>,
    /// Run only the tests whose name holds this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
}

/// A part that is built.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Part {
    /// The Worker and its objects, for workerd and for Cloudflare.
    Worker,
    /// The npm package, packed as target/npm/*.tgz.
    Client,
    /// The site, as static files in target/site.
    Site,
    /// The client's reference, which the site then serves as /reference/.
    Reference,
    /// The browser's store with the cases every store must pass, in target/store-suite. For tests: built only when named.
    StoreSuite,
}

/// `cargo xtask build`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask build                  all of them\n  \
    cargo xtask build client           only the npm package, in target/npm/*.tgz\n\n\
    A part whose inputs did not change since it was last built is left as it is.")]
pub(crate) struct BuildArguments {
    /// The parts to build [default: all that are served].
    #[arg(value_enum)]
    pub(crate) parts: Vec<Part>,
    /// Build the worker with its test-only features.
    #[arg(long)]
    pub(crate) test_build: bool,
    /// Build unoptimised.
    #[arg(long)]
    pub(crate) debug: bool,
}

/// `cargo xtask bundle`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask bundle --var CONCLAVE_IDENTIFIER=example.org         into target/self-hosted\n  \
    cargo xtask bundle --secret CONCLAVE_REGISTRY_SEED              a variable that the runtime's environment holds\n\n\
    The folder holds workerd, the gateway, the worker, the site, their configuration and units of systemd, for machines like\n\
    this one. docs/self-hosting.md says what to do with it.")]
pub(crate) struct BundleArguments {
    /// The folder to write; what an earlier bundle left there is removed.
    #[arg(default_value = "target/self-hosted", value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Where the folder will lie on the machine that serves.
    #[arg(long, default_value = "/opt/conclave", value_name = "DIR")]
    pub(crate) installed_at: PathBuf,
    /// Where objects will keep their storage there.
    #[arg(long, default_value = "/var/lib/conclave", value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// Set a variable of the worker over wrangler.toml's; may be given again.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
    /// Let the worker find a variable in the runtime's environment, where it then must be; may be given again.
    #[arg(long = "secret", value_name = "NAME")]
    pub(crate) secrets: Vec<String>,
    /// Take what was built before: build nothing.
    #[arg(long)]
    pub(crate) no_build: bool,
}

/// `cargo xtask requirements`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask requirements                       every id, with its tests\n  \
    cargo xtask requirements CONV-D API-22         those that begin so\n  \
    cargo xtask requirements --missing             only those that nothing holds yet\n\n\
    A test claims an id by a comment directly above it: `// API-222, CONV-D01..D03`. tests/requirements.toml lists the\n\
    ids; one that a later issue covers stands there with that issue's subject.")]
pub(crate) struct RequirementsArguments {
    /// List only ids that begin so.
    #[arg(value_name = "PREFIX")]
    pub(crate) prefixes: Vec<String>,
    /// List only ids without a test that no later issue covers.
    #[arg(long)]
    pub(crate) missing: bool,
}

/// What is simulated.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Simulated {
    /// The backend: its objects, Workers and clients.
    Backend,
    /// Conversations: engines, their stores and one Router.
    Conversation,
}

/// `cargo xtask sim`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask sim backend                                 seeds that once failed, then seeds 1 to 2000\n  \
    cargo xtask sim backend --seeds 1..20000 --shards 16    more of them, on 16 shards\n  \
    cargo xtask sim backend --replay 42                     one seed again, with everything that happened\n  \
    cargo xtask sim backend --bug pages-cached              plant a bug: it must be found\n  \
    cargo xtask sim conversation                            conversations of 2, 3, 4, 7 and 10, with Byzantine members\n  \
    cargo xtask sim conversation --members 7 --byzantine 2  of seven, two of them Byzantine\n  \
    cargo xtask sim conversation --members 4 --byzantine 2  more than the protocol bears: honest members keep their word\n\n\
    Stops at the first seed that fails, with what does not hold and the command that replays it.")]
pub(crate) struct SimArguments {
    /// What to simulate.
    #[arg(value_enum)]
    pub(crate) simulated: Simulated,
    /// The seeds to run, both ends included [default: 1..2000].
    #[arg(long, value_name = "A..B", conflicts_with = "replay")]
    pub(crate) seeds: Option<String>,
    /// Run one seed and print its whole history.
    #[arg(long, value_name = "SEED")]
    pub(crate) replay: Option<u64>,
    /// Of the backend: what clients do, mixed or streams [default: mixed].
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Of the backend: the shard count [default: drawn from each seed].
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u32>,
    /// Of a conversation: how many members [default: drawn from each seed].
    #[arg(long, value_name = "N")]
    pub(crate) members: Option<usize>,
    /// Of a conversation: how many of them are Byzantine [default: drawn from each seed, most often f].
    #[arg(long, value_name = "F")]
    pub(crate) byzantine: Option<usize>,
    /// The faults that may happen: all, none, or names joined by commas [default: all].
    #[arg(long, value_name = "NAMES")]
    pub(crate) faults: Option<String>,
    /// Plant a bug, by its name; one that does not exist is answered with all that do.
    #[arg(long, value_name = "NAME")]
    pub(crate) bug: Option<String>,
    /// Run every seed, and name each that fails.
    #[arg(long, conflicts_with = "replay")]
    pub(crate) keep_going: bool,
}

/// A family of figures.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Family {
    /// Storing envelopes.
    Publish,
    /// Reading pages.
    Query,
    /// What both cost with up to a million rows. Takes several minutes.
    Growth,
    /// Delivering what is published to streams.
    Streams,
    /// Certified posts, recovery and opening, all in one native process.
    Conversation,
    /// Judging messages, key packages and identity updates, in WebAssembly.
    Verification,
    /// Endpoints in Chromium. Takes many minutes: it writes ten thousand posts.
    Browser,
}

/// `cargo xtask bench`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask bench publish query          both families, written to docs/benchmarks.md\n  \
    cargo xtask bench publish --quick        a minute instead of several, printed only\n\n\
    Figures are ratios to a floor measured in turns with them. Fails when a goal is missed.")]
pub(crate) struct BenchArguments {
    /// The families to measure.
    #[arg(value_enum, required = true)]
    pub(crate) families: Vec<Family>,
    /// Measure briefly and write nothing.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// `cargo xtask fuzz`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask fuzz                                        every decoder for a minute each\n  \
    cargo xtask fuzz publish_request --seconds 600          one of them, for longer\n  \
    cargo xtask fuzz publish_request --replay FILE          one input again\n  \
    cargo xtask fuzz --keep                                 take what was found into fuzz/corpus\n\n\
    The tests replay fuzz/corpus without any of this. A C++ compiler is needed, for libFuzzer.")]
pub(crate) struct FuzzArguments {
    /// The targets, by the names of the files in fuzz/fuzz_targets [default: all].
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// How long each target runs, in seconds.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) seconds: u32,
    /// Run one input and no other.
    #[arg(long, value_name = "FILE", conflicts_with = "keep")]
    pub(crate) replay: Option<PathBuf>,
    /// Look for nothing; add what was found earlier and reaches something new to the committed corpus.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// `cargo xtask doctor`
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    cargo xtask doctor                                  what is installed, and the local deployment if one runs\n  \
    cargo xtask doctor --url http://127.0.0.1:9000      ask another deployment\n\n\
    A deployment that asks for credentials is shown the one in the variable CONCLAVE_CREDENTIAL.")]
pub(crate) struct DoctorArguments {
    /// The deployment to ask for its instance, shards and boundary.
    #[arg(long, default_value = "http://127.0.0.1:8787")]
    pub(crate) url: String,
}

/// The hidden command behind [`children::bound_to_this_process`].
#[derive(Args, Debug)]
pub(crate) struct ExecArguments {
    /// The process to end with.
    parent: u32,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Carries out one command.
///
/// # Errors
///
/// What went wrong, in words that say what to do.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::here();
    if let Command::Exec(arguments) = &command {
        return Err(children::become_program(arguments.parent, &arguments.words));
    }
    children::end_with_signals()?;
    match command {
        Command::Dev(arguments) => dev::run(&workspace, &arguments)?,
        Command::Build(arguments) => {
            let options = parts::Options {
                test_build: arguments.test_build,
                debug: arguments.debug,
            };
            parts::build(&workspace, &Tools::ready(&workspace)?, &arguments.parts, options)?;
        }
        Command::Test(arguments) => {
            if !test::run(&workspace, &arguments)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Docs => docs::run(&workspace)?,
        Command::Bundle(arguments) => dev::self_hosted::run(&workspace, &arguments)?,
        Command::Requirements(arguments) => requirements::run(&workspace, &arguments)?,
        Command::Sim(arguments) => {
            if !sim::run(&workspace, &arguments)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Bench(arguments) => {
            if !bench::run(&workspace, &arguments)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Fuzz(arguments) => {
            if !fuzz::run(&workspace, &arguments)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Doctor(arguments) => doctor::run(&workspace, &arguments)?,
        // Carried out above.
        Command::Exec(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an operator reads, and copies commands from.
    const PAGES: [&str; 3] = ["docs/operations.md", "docs/configuration.md", "README.md"];

    #[test]
    fn the_commands_that_an_operator_reads_are_understood() -> anyhow::Result<()> {
        let workspace = Workspace::here();
        let mut found = 0;
        for page in PAGES {
            let text = std::fs::read_to_string(workspace.path(page))?;
            for line in text.lines() {
                // In prose a command ends at its backtick, in a block with its line or a comment.
                for rest in line.split("cargo xtask").skip(1) {
                    let command = rest.split(['`', '#', '&']).next().unwrap_or_default();
                    let words = std::iter::once("cargo xtask").chain(command.split_whitespace());
                    let parsed = Arguments::try_parse_from(words);
                    assert!(
                        parsed.is_ok(),
                        "{page}: `cargo xtask{command}`: {}",
                        parsed.unwrap_err()
                    );
                    found += 1;
                }
            }
        }
        assert!(found > 5, "the pages name commands");
        Ok(())
    }

    #[test]
    fn the_variables_that_an_operator_reads_about_are_in_the_list_of_them_all() -> anyhow::Result<()> {
        let workspace = Workspace::here();
        let list = std::fs::read_to_string(workspace.path("docs/configuration.md"))?;
        let page = std::fs::read_to_string(workspace.path("docs/operations.md"))?;
        let is_of_name =
            |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        for rest in page.split("CONCLAVE_").skip(1) {
            let name = format!(
                "CONCLAVE_{}",
                rest.split(|letter| !is_of_name(letter))
                    .next()
                    .unwrap_or_default()
            );
            let is_doctors = name == crate::doctor::CREDENTIAL_VARIABLE;
            assert!(
                is_doctors || list.contains(&name),
                "{name} is not in docs/configuration.md"
            );
        }
        Ok(())
    }
}
