//! Runs `brunt_fuzz::session_log` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::session_log(data));
