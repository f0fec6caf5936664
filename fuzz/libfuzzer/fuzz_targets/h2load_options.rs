//! Runs `brunt_fuzz::h2load_options` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::h2load_options(data));
