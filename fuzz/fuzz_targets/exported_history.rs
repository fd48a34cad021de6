#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| conclave_fuzz::targets::exported_history::run(data));
