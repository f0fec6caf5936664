//! Runs `brunt_fuzz::message_scanner` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::message_scanner(data));
