//! `cargo xtask doctor`: what this machine has and lacks, and how a running deployment is.

use std::{process::Command, time::Duration};

use conclave_proto::conclave::operator::v1::{GetStatusRequest, GetStatusResponse, operator_service};

use crate::{
    call::{self, Origin},
    children,
    cli::DoctorArguments,
    test::chromium,
    tools::{self, Found},
    workspace::Workspace,
};

/// How long a deployment may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Prints what is known.
///
/// # Errors
///
/// The URL is not one that can be asked.
pub(crate) fn run(workspace: &Workspace, arguments: &DoctorArguments) -> anyhow::Result<()> {
    let origin = Origin::parse(&arguments.url)?;
    println!("tools");
    for found in survey(workspace) {
        println!("  {}", line(&found));
    }
    println!("\ndeployment at {origin}");
    match call::unary::<operator_service::GetStatus>(&origin, &GetStatusRequest {}, ANSWER_WITHIN) {
        Ok(status) => print!("{}", described(&status)),
        Err(error) => println!("  no answer: {error:#}"),
    }
    Ok(())
}

fn survey(workspace: &Workspace) -> Vec<Found> {
    let version = |program: &str, argument: &str| children::output(Command::new(program).arg(argument));
    let browser = chromium::find();
    let mut found = vec![Found {
        name: "rustc",
        wanted: concat!(">= ", env!("CARGO_PKG_RUST_VERSION")).to_owned(),
        found: version("rustc", "--version"),
        remedy: None,
    }];
    found.extend(tools::survey(workspace));
    found.push(Found {
        name: "cargo-nextest",
        wanted: "any, for quicker tests".to_owned(),
        found: version("cargo-nextest", "--version").and_then(|text| text.lines().next().map(str::to_owned)),
        remedy: None,
    });
    found.push(Found {
        name: "chromium",
        wanted: "any, for browser tests".to_owned(),
        remedy: browser
            .is_none()
            .then(|| "cargo xtask test browser installs it on Debian as root".to_owned()),
        found: browser.map(|path| path.display().to_string()),
    });
    found
}

fn line(tool: &Found) -> String {
    let found = tool.found.as_deref().unwrap_or("missing");
    let remedy = tool
        .remedy
        .as_ref()
        .map(|remedy| format!("  -> {remedy}"))
        .unwrap_or_default();
    format!("{:<16} {found} (wanted: {}){remedy}", tool.name, tool.wanted)
}

fn described(status: &GetStatusResponse) -> String {
    let boundary = status.closed_allocation_boundary.map_or_else(
        || "not known yet: a restarted Sequencer waits for its shards".to_owned(),
        |id| id.to_string(),
    );
    format!(
        "  identifier        {}\n  router instance   {}\n  shards            {}\n  closed boundary   {boundary}\n  \
         last id           {}\n  sequencer epoch   {}\n  server version    {}\n\n\
         A deployment's router instance changes only when its storage is replaced. There is no command for that yet: \
         locally,\nend `cargo xtask dev` and remove its state folder; on Cloudflare, deploy under a new name. Both begin \
         empty.\n",
        status.identifier,
        status.router_instance_id,
        status.shard_count,
        status.last_allocated_sequence_id,
        status.sequencer_epoch,
        status.server_version,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_that_is_not_known_is_not_shown_as_zero() {
        let status = GetStatusResponse {
            shard_count: 4,
            ..GetStatusResponse::default()
        };
        assert!(described(&status).contains("closed boundary   not known yet"));
        let status = GetStatusResponse {
            closed_allocation_boundary: Some(7),
            ..status
        };
        assert!(described(&status).contains("closed boundary   7\n"));
    }
}
