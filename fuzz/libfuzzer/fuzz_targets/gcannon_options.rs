//! Runs `brunt_fuzz::gcannon_options` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::gcannon_options(data));
