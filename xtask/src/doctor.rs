//! `cargo xtask doctor`: what this machine has and lacks, whether the configuration can be used, and how a running
//! deployment is.

use std::{
    env,
    io::Write as _,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use conclave_proto::{
    conclave::operator::v1::{GetStatusRequest, GetStatusResponse, operator_service},
    grpc::health::v1::{HealthCheckRequest, HealthCheckResponse, health},
    xmtp::backend::v1::{GetConfigurationRequest, GetConfigurationResponse, configuration_service},
};

use crate::{
    call::{self, Origin},
    children,
    cli::DoctorArguments,
    dev,
    test::chromium,
    tools::{self, Found},
    workspace::Workspace,
};

/// How long a deployment may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Holds the API key or token that is presented to a deployment that asks for one. Not an argument: those are seen by
/// everybody on the machine.
pub(crate) const CREDENTIAL_VARIABLE: &str = "CONCLAVE_CREDENTIAL";

/// The version of this checkout.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints what is known.
///
/// # Errors
///
/// The URL is not one that can be asked.
pub(crate) fn run(workspace: &Workspace, arguments: &DoctorArguments) -> anyhow::Result<()> {
    let mut origin = Origin::parse(&arguments.url)?;
    if let Ok(credential) = env::var(CREDENTIAL_VARIABLE) {
        origin = origin.with_credential(credential).context(CREDENTIAL_VARIABLE)?;
    }
    println!("tools");
    for found in survey(workspace) {
        println!("  {}", line(&found));
    }
    println!("\nconfiguration of wrangler.toml and .dev.vars (secrets kept on Cloudflare are not seen here)");
    match configuration(workspace) {
        Ok(said) => said.lines().for_each(|line| println!("  {line}")),
        Err(error) => println!("  cannot be looked at: {error:#}"),
    }
    println!("\ndeployment at {origin}");
    print!("{}", deployment(&origin));
    Ok(())
}

/// What the crate that reads variables says of those of the files. It is built for this alone, so that the tools need not
/// wait for it.
fn configuration(workspace: &Workspace) -> anyhow::Result<String> {
    let variables = dev::variables(workspace)?;
    let input: String = variables
        .iter()
        .map(|(name, variable)| match variable.as_text() {
            Some(text) => format!("{name}\0={text}\0"),
            None => format!("{name}\0\0"),
        })
        .collect();
    let mut check = Command::new("cargo")
        .current_dir(workspace.root())
        .args([
            "run",
            "--quiet",
            "--package",
            "conclave-configuration",
            "--example",
            "check",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    check
        .stdin
        .take()
        .context("the check takes no input")?
        .write_all(input.as_bytes())?;
    Ok(String::from_utf8(check.wait_with_output()?.stdout)?)
}

/// What a deployment says of itself, as far as it says anything.
fn deployment(origin: &Origin) -> String {
    let health = call::unary::<health::Check>(origin, &HealthCheckRequest::default(), ANSWER_WITHIN);
    let health = match health {
        Ok(health) => health,
        Err(error) => return format!("  no answer: {error:#}\n"),
    };
    let mut said = described_health(&health);
    let configuration = call::unary::<configuration_service::GetConfiguration>(
        origin,
        &GetConfigurationRequest {},
        ANSWER_WITHIN,
    );
    said += &configuration.map_or_else(failure, |configuration| described_configuration(&configuration));
    let status = call::unary::<operator_service::GetStatus>(origin, &GetStatusRequest {}, ANSWER_WITHIN);
    said += &status.map_or_else(
        |error| {
            format!(
                "{}  -> {CREDENTIAL_VARIABLE} holds what is presented\n",
                failure(error)
            )
        },
        |status| described(&status),
    );
    said
}

fn failure(error: anyhow::Error) -> String {
    format!("  refused           {error:#}\n")
}

fn described_health(health: &HealthCheckResponse) -> String {
    format!("  health            {}\n", health.status().as_str_name())
}

fn described_configuration(configuration: &GetConfigurationResponse) -> String {
    let same = if configuration.server_version == VERSION {
        "as this checkout".to_owned()
    } else {
        format!("this checkout is {VERSION}")
    };
    let auth = configuration.auth.clone().unwrap_or_default();
    let credentials = if auth.enabled {
        format!("asked for; {} signing key(s)", auth.keys.len())
    } else {
        "none asked for".to_owned()
    };
    format!(
        "  server version    {} ({same})\n  credentials       {credentials}\n",
        configuration.server_version
    )
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
         last id           {}\n  sequencer epoch   {}\n\n\
         A deployment's router instance changes when CONCLAVE_RESTORED does, which a restore needs (docs/operations.md), \
         and when\nits storage is replaced: locally, end `cargo xtask dev` and remove its state folder; on Cloudflare, \
         deploy under a new\nname. Both begin empty.\n",
        status.identifier,
        status.router_instance_id,
        status.shard_count,
        status.last_allocated_sequence_id,
        status.sequencer_epoch,
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
