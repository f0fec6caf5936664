//! Runs `brunt_fuzz::cgroup` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::cgroup(data));
