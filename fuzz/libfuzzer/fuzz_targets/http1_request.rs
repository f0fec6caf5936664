//! Runs `brunt_fuzz::http1_request` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::http1_request(data));
