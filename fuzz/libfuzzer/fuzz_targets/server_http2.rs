//! Runs `brunt_fuzz::server_http2` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::server_http2(data));
