//! The reference of the client, written from its sources by TypeDoc: `target/reference`, served as `/reference/`.

use anyhow::Context as _;

use crate::{children, progress, stamp::Stamp, tools::Tools, workspace::Workspace};

/// The reference's folder below the target folder.
pub(crate) const REFERENCE_FOLDER: &str = "reference";

/// TypeDoc's own project: it needs an older TypeScript than everything else.
const PROJECT: &str = "www/reference";

/// What the reference is made from.
const INPUTS: &[&str] = &[
    "web-client/ts",
    "web-client/README.md",
    "web-client/tsconfig.json",
    "www/reference",
    "package-lock.json",
];

/// Writes the reference, or leaves it as it is if nothing it is made from changed.
///
/// # Errors
///
/// TypeDoc is missing, or finds something undocumented or a link that leads nowhere; it has printed which.
pub(crate) fn reference(workspace: &Workspace, tools: &Tools) -> anyhow::Result<()> {
    let folder = workspace.target().join(REFERENCE_FOLDER);
    let stamp = Stamp::new(workspace, "reference", INPUTS, &[])?;
    if stamp.holds(&[&folder]) {
        return Ok(());
    }
    stamp.forget()?;
    progress::step("writing the client's reference");
    let project = workspace.path(PROJECT);
    let program = project.join("node_modules/typedoc/bin/typedoc");
    anyhow::ensure!(
        program.exists(),
        "{} is missing: run `npm install` at the root",
        program.display()
    );
    children::run(
        "TypeDoc",
        tools
            .node()
            .command()
            .arg(program)
            .arg("--options")
            .arg(project.join("typedoc.json"))
            .args(["--logLevel", "Warn", "--out"])
            .arg(&folder)
            .current_dir(workspace.root()),
    )
    .context("the client's reference cannot be written")?;
    stamp.keep()
}
