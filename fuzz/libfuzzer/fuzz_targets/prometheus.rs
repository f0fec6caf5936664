//! Runs `brunt_fuzz::prometheus` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::prometheus(data));
