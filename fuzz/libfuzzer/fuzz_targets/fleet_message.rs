//! Runs `brunt_fuzz::fleet_message` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::fleet_message(data));
