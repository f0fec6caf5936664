//! Runs `brunt_fuzz::tls` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::tls(data));
