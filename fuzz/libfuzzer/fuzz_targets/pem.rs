//! Runs `brunt_fuzz::pem` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::pem(data));
