//! Runs `brunt_fuzz::qpack` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::qpack(data));
