//! Runs `brunt_fuzz::alt_svc` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::alt_svc(data));
