//! `cargo xtask`: the one entrance to building, running and testing Conclave.
//!
//! Each command is a module; what they share is below them. Nothing here is part of the product, so this crate depends
//! on as little as it can: it is the first thing a fresh machine compiles.

mod cli;
mod progress;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let command = cli::Arguments::parse().command;
    match cli::run(command) {
        Ok(code) => code,
        Err(error) => {
            progress::failure(&error);
            ExitCode::FAILURE
        }
    }
}
