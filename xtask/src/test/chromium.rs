//! The browser that tests drive: found on this machine, or installed from Debian's packages where that is possible.

use std::{env, path::PathBuf};

use anyhow::{Context as _, bail};

use crate::tools::debian;

/// Names a browser to use instead of those found, and to the tests the one that was.
pub(crate) const CHROMIUM_VARIABLE: &str = "CONCLAVE_CHROMIUM";

/// What a Chromium is called.
const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// The browser, if one is here.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = env::var_os(CHROMIUM_VARIABLE).map(PathBuf::from) {
        return named.exists().then_some(named);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    NAMES.iter().find_map(|name| {
        env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    })
}

/// The browser, installed if it is missing and this machine has Debian's package tool and its administrator's rights.
///
/// # Errors
///
/// There is none and none can be installed; the message says what to install.
pub(crate) fn find_or_install() -> anyhow::Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if !debian::can_install() {
        bail!(
            "the browser tests need Chromium: install it (on Debian `apt-get install chromium`), or name one in {CHROMIUM_VARIABLE}"
        );
    }
    debian::install("Chromium", &["chromium"])?;
    find().context("apt-get installed chromium, and no chromium is found")
}
