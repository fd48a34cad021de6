//! The site: what lies in `www` as it is, its scripts bundled, and the client package beside them.
//!
//! - `www/src/main.ts` becomes `/main.js`; an import of `@conclave/client` stays one of `/client/index.js`;
//! - the client package's modules are served as `/client/…`, so that a plain module script can import them too;
//! - the client's reference, if it is written, is served as `/reference/`;
//! - everything else in `www`, but for its configuration, is copied.

use std::{fs, path::Path, process::Command};

use anyhow::Context as _;

use crate::{
    children,
    client_build::{PACKAGE_FOLDER, empty},
    progress,
    reference_build::REFERENCE_FOLDER,
    stamp::Stamp,
    tools::Tools,
    workspace::Workspace,
};

/// The site's folder below the target folder.
const SITE_FOLDER: &str = "site";

/// The script that is bundled.
const ENTRY: &str = "www/src/main.ts";

/// Names in `www` that are not served.
const NOT_SERVED: &[&str] = &[
    "src",
    "reference",
    "node_modules",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "README.md",
];

/// What the site is made from, beside the client package.
const INPUTS: &[&str] = &[
    "www",
    "package-lock.json",
    "target/stamps/client",
    "target/stamps/reference",
    "xtask/src/site_build.rs",
];

/// Builds the site, or leaves it as it is if nothing it is made from changed. The client is built before it.
///
/// # Errors
///
/// A step fails; the message says which.
pub(crate) fn site(workspace: &Workspace, tools: &Tools) -> anyhow::Result<()> {
    let site = workspace.target().join(SITE_FOLDER);
    let stamp = Stamp::new(workspace, "site", INPUTS, &[])?;
    if stamp.holds(&[&site]) {
        return Ok(());
    }
    stamp.forget()?;
    progress::step("building the site");
    let config = workspace.path("www/tsconfig.json");
    if config.exists() {
        children::run(
            "checking the site's types",
            tools
                .tsc()?
                .arg("--noEmit")
                .arg("--project")
                .arg(&config)
                .current_dir(workspace.root()),
        )?;
    }
    // Made beside the one that is served and put in its place at the end, so that no half a site is ever served.
    let next = workspace.target().join(format!("{SITE_FOLDER}-next"));
    empty(&next)?;
    let www = workspace.path("www");
    copy(&www, &next, NOT_SERVED).with_context(|| format!("copying {}", www.display()))?;
    let dist = workspace.target().join(PACKAGE_FOLDER).join("dist");
    copy(&dist, &next.join("client"), &[]).with_context(|| format!("copying {}", dist.display()))?;
    let reference = workspace.target().join(REFERENCE_FOLDER);
    if reference.exists() {
        copy(&reference, &next.join(REFERENCE_FOLDER), &[])
            .with_context(|| format!("copying {}", reference.display()))?;
    }
    if workspace.path(ENTRY).exists() {
        children::run(
            "bundling the site's scripts",
            Command::new(tools.esbuild()?)
                .arg(workspace.path(ENTRY))
                .args([
                    "--bundle",
                    "--format=esm",
                    "--target=es2022",
                    "--sourcemap",
                    "--log-level=warning",
                ])
                .args([
                    "--alias:@conclave/client=/client/index.js",
                    "--external:/client/*",
                ])
                .arg(format!("--outdir={}", next.display()))
                .current_dir(workspace.root()),
        )?;
    }
    if site.exists() {
        fs::remove_dir_all(&site).context("removing the last site")?;
    }
    fs::rename(&next, &site).context("putting the site in its place")?;
    stamp.keep()
}

/// Copies the content of one folder into another, but for `skipped` names at its top.
fn copy(from: &Path, to: &Path, skipped: &[&str]) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if skipped.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(&name), &[])?;
        } else {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}
