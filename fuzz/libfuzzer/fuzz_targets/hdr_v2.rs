//! Runs `brunt_fuzz::hdr_v2` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::hdr_v2(data));
