//! Target: command lines of zrk.

use std::num::NonZeroU32;

use brunt_dropin::zrk::{self, Options};

/// Takes each line of the input as one word of a command line. What is refused is refused with the
/// usage text; what is accepted gives a plan with as many connections as it says, or a message, and
/// a command line of brunt's own.
pub fn zrk_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match Options::parse(&words) {
        Ok(options) => options,
        Err(ending) => {
            let is_told = ending.stderr.contains("\n\nzrk - ") && ending.code == 2;
            let is_asked = ending.stdout.starts_with("zrk ") && ending.code == 0;
            assert!(is_told || is_asked, "{words:?}: {ending:?}");
            return;
        }
    };
    let own = zrk::explanation(&options, b"body", NonZeroU32::MIN);
    match zrk::plan(&options, b"body") {
        Ok(plan) => {
            let is_own = own.is_ok_and(|own| own.line.starts_with("brunt -c "));
            assert!(is_own, "{options:?}");
            assert_eq!(plan.connections, options.connections, "{options:?}");
            assert!(plan.workers <= plan.connections, "{options:?}");
            assert_eq!(plan.model.schedule().is_none(), options.is_closed);
        }
        Err(ending) => assert!(ending.code == 2 && !ending.stderr.is_empty(), "{ending:?}"),
    }
}
