//! `cargo xtask docs`: the pages of this repository that are written from what they speak of, and the client's reference.
//!
//! Tests run the same scripts with `--check`.

use crate::{
    children,
    cli::Part,
    parts::{self, Options},
    tools::Tools,
    workspace::Workspace,
};

/// The scripts, each of which writes one page.
const SCRIPTS: &[&str] = &["web-client/tools/sizes.mjs", "web-client/tools/errors.mjs"];

/// Builds the client and its reference, and writes the pages.
///
/// # Errors
///
/// A build or a script fails; it has printed why.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<()> {
    let tools = Tools::ready(workspace)?;
    parts::build(
        workspace,
        &tools,
        &[Part::Client, Part::Reference],
        Options::default(),
    )?;
    for script in SCRIPTS {
        children::run(
            script,
            tools
                .node()
                .command()
                .arg(workspace.path(script))
                .current_dir(workspace.root()),
        )?;
    }
    Ok(())
}
