//! `cargo xtask sim`: builds the simulations fast, every assertion on, and runs one.

use std::{env, process::Command};

use crate::{
    children,
    cli::{SimArguments, Simulated},
    progress,
    workspace::Workspace,
};

/// Whether everything held.
///
/// # Errors
///
/// The simulation cannot be built or started.
pub(crate) fn run(workspace: &Workspace, arguments: &SimArguments) -> anyhow::Result<bool> {
    progress::step("building the simulation");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target())
        .args([
            "run",
            "--quiet",
            "--profile",
            "sim",
            "--package",
            "conclave-sim",
            "--",
        ])
        .args(words(arguments));
    Ok(children::finish("the simulation", &mut command)?.success())
}

/// The arguments as the simulation itself takes them.
fn words(arguments: &SimArguments) -> Vec<String> {
    let simulated = match arguments.simulated {
        Simulated::Backend => "backend",
        Simulated::Conversation => "conversation",
    };
    let options = [
        ("--seeds", arguments.seeds.clone()),
        ("--replay", arguments.replay.map(|seed| seed.to_string())),
        ("--workload", arguments.workload.clone()),
        ("--shards", arguments.shards.map(|count| count.to_string())),
        ("--members", arguments.members.map(|count| count.to_string())),
        ("--byzantine", arguments.byzantine.map(|count| count.to_string())),
        ("--faults", arguments.faults.clone()),
        ("--bug", arguments.bug.clone()),
    ];
    let given = options
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value?]));
    [simulated.to_owned()]
        .into_iter()
        .chain(given.flatten())
        .chain(arguments.keep_going.then(|| "--keep-going".to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_passed_on_and_nothing_else() {
        let arguments = SimArguments {
            simulated: Simulated::Backend,
            seeds: None,
            replay: Some(7),
            workload: None,
            shards: Some(4),
            members: None,
            byzantine: None,
            faults: None,
            bug: None,
            keep_going: true,
        };
        assert_eq!(
            words(&arguments),
            ["backend", "--replay", "7", "--shards", "4", "--keep-going"]
        );
        let arguments = SimArguments {
            simulated: Simulated::Conversation,
            shards: None,
            members: Some(4),
            byzantine: Some(1),
            ..arguments
        };
        let expected = [
            "conversation",
            "--replay",
            "7",
            "--members",
            "4",
            "--byzantine",
            "1",
            "--keep-going",
        ];
        assert_eq!(words(&arguments), expected);
    }
}
