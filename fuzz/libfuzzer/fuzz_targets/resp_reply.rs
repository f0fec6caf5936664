//! Runs `brunt_fuzz::resp_reply` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::resp_reply(data));
