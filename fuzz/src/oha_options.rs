//! Target: command lines of oha.

use std::num::NonZeroU32;

use brunt_dropin::oha::{self, Options};

/// Takes each line of the input as one word of a command line. What is refused is refused as oha
/// does it; what is accepted gives a plan with as many connections as it says at most, or a
/// message, and a command line of brunt's own.
pub fn oha_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match Options::parse(&words) {
        Ok(options) => options,
        Err(ending) => {
            let is_told = ending.stderr.starts_with("error: ") && ending.code == 2;
            let is_asked = !ending.stdout.is_empty() && ending.code == 0;
            assert!(is_told || is_asked, "{words:?}: {ending:?}");
            return;
        }
    };
    let own = oha::explanation(&options, b"body", NonZeroU32::MIN);
    match oha::plan(&options, b"body", NonZeroU32::MIN) {
        Ok(plan) => {
            let is_own = own.is_ok_and(|own| own.line.starts_with("brunt -c "));
            assert!(is_own, "{options:?}");
            assert!(plan.connections <= options.connections, "{options:?}");
            assert_eq!(plan.stop.duration_ns, options.duration_ns, "{options:?}");
            let is_open = plan.model.schedule().is_some();
            assert_eq!(is_open, options.rate_per_s.is_some(), "{options:?}");
        }
        Err(ending) => assert!(ending.code == 2 && !ending.stderr.is_empty(), "{ending:?}"),
    }
}
