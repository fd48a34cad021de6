#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| conclave_fuzz::targets::agent_artifacts::run(data));
