//! `cargo xtask`: the one entrance to building, running and testing Conclave.
//!
//! Each command is a module; what they share is below them. Nothing here is part of the product, so this crate depends
//! on as little as it can: it is the first thing a fresh machine compiles.

mod bench;
mod build;
mod call;
mod children;
mod cli;
mod client_build;
mod dev;
mod docs;
mod doctor;
mod fuzz;
mod parts;
mod progress;
mod reference_build;
mod requirements;
mod sim;
mod site_build;
mod stamp;
mod store_suite_build;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let command = cli::Arguments::parse().command;
    let code = cli::run(command).unwrap_or_else(|error| {
        progress::failure(&error);
        ExitCode::FAILURE
    });
    children::end_all();
    code
}
