//! Runs `brunt_fuzz::server_request` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::server_request(data));
