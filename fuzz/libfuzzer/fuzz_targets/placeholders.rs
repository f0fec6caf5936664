//! Runs `brunt_fuzz::placeholders` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::placeholders(data));
