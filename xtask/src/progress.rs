//! What a person sees while a command works: plain lines with the seconds since it began, on standard error, so that
//! standard output stays for what another program may read.

use std::{fmt::Display, sync::OnceLock, time::Instant};

static BEGIN: OnceLock<Instant> = OnceLock::new();

/// Seconds since the first line was printed.
fn elapsed_seconds() -> f64 {
    BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Says what is being done now.
pub(crate) fn step(what: impl Display) {
    eprintln!("[{:6.1} s] {what}", elapsed_seconds());
}

/// Says why a command stopped, with the causes below it, nearest first.
pub(crate) fn failure(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        for (index, line) in cause.to_string().lines().enumerate() {
            eprintln!("{}{line}", if index == 0 { "  because: " } else { "           " });
        }
    }
}
