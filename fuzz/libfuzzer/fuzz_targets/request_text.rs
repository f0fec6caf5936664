//! Runs `brunt_fuzz::request_text` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::request_text(data));
