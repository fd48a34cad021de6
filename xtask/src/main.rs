//! `cargo xtask`: the one entrance.

fn main() {}
