//! Runs the target of `brunt_fuzz` that `BRUNT_FUZZ_TARGET` names under libFuzzer.
#![no_main]

use std::sync::LazyLock;

use brunt_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("BRUNT_FUZZ_TARGET").expect("BRUNT_FUZZ_TARGET names the target");
    let found = brunt_fuzz::TARGETS.iter().find(|(known, _)| *known == name);
    found.expect("brunt_fuzz has the target").1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
