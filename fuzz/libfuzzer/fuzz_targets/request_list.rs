//! Runs `brunt_fuzz::request_list` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::request_list(data));
