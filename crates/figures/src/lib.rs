//! What judging costs beside its cryptography, measured in WebAssembly as the Worker is compiled.
//!
//! `bench/verification.mjs` runs each case and its floor in turns: the floor is the same cryptography on the same bytes by
//! the same code, and nothing else. The exports take numbers alone, so the module needs no glue and has no imports.
#![allow(
    unsafe_code,
    reason = "a name that is exported as it is written is declared unsafe"
)]

mod cases;

use std::cell::RefCell;

use cases::Case;

thread_local! {
    static CASE: RefCell<Option<Box<dyn Case>>> = const { RefCell::new(None) };
}

/// Makes a case the one that is measured: 0 a group message, 1 a key package, 2 to 5 an identity update (see
/// [`cases::of`]). Whether there is one of that number.
#[unsafe(no_mangle)]
pub extern "C" fn prepare(number: u32) -> bool {
    let case = cases::of(number);
    let is_one = case.is_some();
    CASE.with(|current| *current.borrow_mut() = case);
    is_one
}

/// Does this many rounds of the floor.
#[unsafe(no_mangle)]
pub extern "C" fn floor(rounds: u32) {
    run(rounds, |case| case.floor());
}

/// Does this many rounds of what is measured.
#[unsafe(no_mangle)]
pub extern "C" fn act(rounds: u32) {
    run(rounds, |case| case.act());
}

fn run(rounds: u32, mut round: impl FnMut(&mut dyn Case)) {
    CASE.with(|current| {
        if let Some(case) = current.borrow_mut().as_mut() {
            for _ in 0..rounds {
                round(case.as_mut());
            }
        }
    });
}
