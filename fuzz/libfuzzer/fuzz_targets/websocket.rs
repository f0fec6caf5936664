//! Runs `brunt_fuzz::websocket` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::websocket(data));
