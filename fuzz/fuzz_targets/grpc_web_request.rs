#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| conclave_fuzz::targets::grpc_web_request::run(data));
