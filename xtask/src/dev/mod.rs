//! `cargo xtask dev`: the worker, the client and the site on a bare workerd behind the gateway, kept alive and kept
//! current.
//!
//! - [`deployment`]: what wrangler.toml says; [`runtime_config`]: the same for workerd;
//! - [`bundle`]: the built worker, as a runtime takes it;
//! - [`state`]: where objects keep their storage;
//! - [`port`]: the port that is served, and the gateway on it;
//! - [`runtime`]: one workerd behind a socket that this process owns;
//! - [`self_hosted`]: the same in one folder, for machines that serve it without this checkout;
//! - [`watch`]: noticing that sources changed.

mod bundle;
mod deployment;
mod port;
mod runtime;
mod runtime_config;
pub(crate) mod self_hosted;
mod state;
mod watch;

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::Write as _,
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use anyhow::Context as _;

use self::{
    deployment::{Deployment, Variable},
    runtime::Runtime,
    runtime_config::{ASSETS_WORKER, Module, RuntimeConfig},
    state::State,
};
use crate::{
    children,
    cli::DevArguments,
    parts::{self, Options},
    progress,
    tools::Tools,
    workspace::Workspace,
};

/// What the worker, the client and the site are made of.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "proto",
    "crates",
    "edge",
    "web-client",
    "www",
    "package-lock.json",
    "wrangler.toml",
];

/// The file that describes the deployment.
const DEPLOYMENT_FILE: &str = "wrangler.toml";

/// The variable that says how many topic shards a state is born with.
const SHARDS_VARIABLE: &str = "CONCLAVE_SHARDS";

/// The variable that says whether requests are logged.
const REQUEST_LOGGER_VARIABLE: &str = "CONCLAVE_REQUEST_LOGGER";

/// Local variables and secrets, one `NAME=VALUE` a line, as `wrangler dev` reads them too.
const LOCAL_VARIABLES_FILE: &str = ".dev.vars";

/// How often the runtime is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Serves until it is told to end.
///
/// # Errors
///
/// The first build fails, the port or the state is in use, or the runtime does not start.
pub(crate) fn run(workspace: &Workspace, arguments: &DevArguments) -> anyhow::Result<()> {
    let port = port::listen(arguments.port)?;
    let state = match (&arguments.state, arguments.fresh) {
        (_, true) => State::fresh()?,
        (Some(folder), false) => State::open(folder)?,
        (None, false) => State::open(&workspace.target().join("state"))?,
    };
    let tools = Tools::ready(workspace)?;
    let options = Options {
        test_build: arguments.test_build,
        debug: arguments.debug,
    };
    let sources_seen = watch::look(workspace, SOURCES);
    if !arguments.no_build {
        parts::build(workspace, &tools, &[], options)?;
    }

    let setting = Setting {
        workspace: workspace.clone(),
        state,
        variables: local_variables(workspace, arguments)?,
        options,
    };
    let folder = workspace
        .target()
        .join("dev")
        .join(std::process::id().to_string());
    children::remove_at_end(&folder);
    let mut served = setting.write_config(&folder)?;

    let origin = port::origin_of(&port)?;
    // What holds the runtime's own socket is here as well, so that neither port refuses anybody while it starts again.
    let (inner, outer) = if arguments.direct {
        (port, None)
    } else {
        (port::listen(0)?, Some(port))
    };
    let mut runtime = Runtime::new(tools.workerd()?, &folder.join(CONFIG_FILE), inner)?;
    if let Some(outer) = outer {
        port::serve(outer, runtime.origin())?;
    }
    progress::step("starting the runtime");
    runtime.start()?;
    runtime.wait_until_ready()?;
    progress::step(format_args!(
        "objects keep their storage in {}",
        setting.state.folder().display()
    ));
    let mut output = std::io::stdout();
    writeln!(output, "ready {origin}")?;
    output.flush()?;

    let (changed, changes) = mpsc::channel();
    if !arguments.no_build {
        let (workspace, options) = (workspace.clone(), options);
        thread::Builder::new()
            .name("rebuild".to_owned())
            .spawn(move || rebuild_for_ever(&workspace, &tools, options, sources_seen, &changed))?;
        progress::step("watching the sources; Ctrl-C ends");
    }
    loop {
        match changes.recv_timeout(LOOK_EVERY) {
            Ok(()) => match setting.write_config(&folder) {
                // Files of the site are read when they are asked for.
                Ok(built) if built == served => {
                    progress::step("the site is served anew; the worker is the same")
                }
                Ok(built) => {
                    served = built;
                    runtime.start()?;
                    progress::step("serving the new build");
                }
                Err(error) => progress::failure(&error.context("the old build is still served")),
            },
            Err(RecvTimeoutError::Timeout) => {}
            // Nothing watches: only the runtime is to be looked after.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
        runtime.keep_alive()?;
    }
}

/// Builds whenever the sources change, and tells of each build that succeeded.
fn rebuild_for_ever(workspace: &Workspace, tools: &Tools, options: Options, seen: u64, changed: &Sender<()>) {
    let mut seen = seen;
    loop {
        seen = watch::wait_for_change(workspace, SOURCES, seen);
        progress::step("the sources changed");
        match parts::build(workspace, tools, &[], options) {
            Ok(()) => {
                if changed.send(()).is_err() {
                    return;
                }
            }
            Err(error) => progress::failure(&error.context("the old build is still served")),
        }
    }
}

/// The name of the configuration in its folder.
const CONFIG_FILE: &str = "config.capnp";

/// What a configuration is written from, again after each build.
struct Setting {
    workspace: Workspace,
    state: State,
    variables: Vec<(String, String)>,
    options: Options,
}

impl Setting {
    /// Writes the configuration into `folder`, and gives a number that changes when a runtime has to start anew.
    fn write_config(&self, folder: &Path) -> anyhow::Result<u64> {
        let file = self.workspace.path(DEPLOYMENT_FILE);
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let mut deployment =
            Deployment::read(&text).with_context(|| format!("reading {}", file.display()))?;
        for (name, value) in &self.variables {
            deployment.set(name, Variable::Text(value.clone()));
        }
        let modules = bundle::copy(&self.workspace, &self.main(&deployment)?, folder)?;
        let site = deployment
            .assets
            .as_ref()
            .map_or_else(PathBuf::new, |assets| self.workspace.path(&assets.directory));
        let places = Places {
            site: &site,
            state: self.state.folder(),
        };
        let text = write_config(&deployment, &modules, &places, folder)?;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Ok(hasher.finish())
    }

    /// The entry of the worker. The test build lies in a folder of its own.
    fn main(&self, deployment: &Deployment) -> anyhow::Result<PathBuf> {
        let main = self.workspace.path(&deployment.main);
        if !self.options.test_build {
            return Ok(main);
        }
        let name = main.file_name().context("`main` names no file")?;
        let mut folder = main
            .parent()
            .context("`main` names no file")?
            .as_os_str()
            .to_owned();
        folder.push("-test");
        Ok(Path::new(&folder).join(name))
    }
}

/// Where a runtime finds what is not part of its configuration.
struct Places<'a> {
    /// The static files.
    site: &'a Path,
    /// The objects' storage.
    state: &'a Path,
}

/// Writes a configuration into `folder`, which holds `modules`, and gives its text.
fn write_config(
    deployment: &Deployment,
    modules: &[Module],
    places: &Places<'_>,
    folder: &Path,
) -> anyhow::Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let config = RuntimeConfig {
        deployment,
        modules,
        site: places.site,
        state: places.state,
        folder,
    };
    let text = config.render();
    fs::write(folder.join("assets.js"), ASSETS_WORKER)?;
    fs::write(folder.join(CONFIG_FILE), &text)
        .with_context(|| format!("writing into {}", folder.display()))?;
    Ok(text)
}

/// Variables that stand over those of the deployment: the local file's, then the command line's. A line a request is for
/// those who operate a deployment, and would hide what those who develop look for: here it has to be asked for.
fn local_variables(workspace: &Workspace, arguments: &DevArguments) -> anyhow::Result<Vec<(String, String)>> {
    let mut variables = vec![(REQUEST_LOGGER_VARIABLE.to_owned(), "false".to_owned())];
    variables.extend(local_file(workspace)?);
    for line in &arguments.variables {
        variables.push(assignment(line)?);
    }
    if let Some(shards) = arguments.shards {
        variables.push((SHARDS_VARIABLE.to_owned(), shards.to_string()));
    }
    Ok(variables)
}

/// The variables of the local file, if there is one.
///
/// # Errors
///
/// A line that sets none. It is not shown, because secrets stand in that file.
fn local_file(workspace: &Workspace) -> anyhow::Result<Vec<(String, String)>> {
    let text = fs::read_to_string(workspace.path(LOCAL_VARIABLES_FILE)).unwrap_or_default();
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            assignment(line).with_context(|| format!("line {number} of {LOCAL_VARIABLES_FILE}"))
        })
        .collect()
}

fn assignment(line: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = line.split_once('=').context("it is not of the form NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
}

/// The variables of the deployment's file, and over them those of the local file: what `wrangler dev` would set.
///
/// # Errors
///
/// One of the files cannot be read.
pub(crate) fn variables(workspace: &Workspace) -> anyhow::Result<Vec<(String, Variable)>> {
    let file = workspace.path(DEPLOYMENT_FILE);
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let mut deployment = Deployment::read(&text).with_context(|| format!("reading {}", file.display()))?;
    for (name, value) in local_file(workspace)? {
        deployment.set(&name, Variable::Text(value));
    }
    Ok(deployment.variables)
}
