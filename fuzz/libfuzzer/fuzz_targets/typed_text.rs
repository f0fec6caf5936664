//! Runs `brunt_fuzz::typed_text` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::typed_text(data));
