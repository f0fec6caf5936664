//! Runs `brunt_fuzz::http3` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::http3(data));
