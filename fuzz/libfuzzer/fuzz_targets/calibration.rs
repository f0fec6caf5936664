//! Runs `brunt_fuzz::calibration` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::calibration(data));
