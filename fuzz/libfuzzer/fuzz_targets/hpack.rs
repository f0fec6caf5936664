//! Runs `brunt_fuzz::hpack` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::hpack(data));
