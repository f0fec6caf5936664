//! Runs `brunt_fuzz::socket_tables` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::socket_tables(data));
