//! What only the system's packages bring: installed where this machine is a Debian and this process its administrator.

use std::{path::Path, process::Command};

use crate::{children, progress};

/// Whether packages can be installed here.
pub(crate) fn can_install() -> bool {
    Path::new("/usr/bin/apt-get").exists() && rustix::process::geteuid().is_root()
}

/// Installs packages. `what` is what they bring, in words.
///
/// # Errors
///
/// They cannot be installed.
pub(crate) fn install(what: &str, packages: &[&str]) -> anyhow::Result<()> {
    progress::step(format_args!("installing {what} from Debian's packages"));
    children::run("apt-get update", apt_get().arg("update"))?;
    children::run(
        &format!("apt-get install {}", packages.join(" ")),
        apt_get()
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages),
    )
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet=2").env("DEBIAN_FRONTEND", "noninteractive");
    command
}
