//! Runs `brunt_fuzz::stored_run` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::stored_run(data));
