//! Target: command lines of wrk and wrk2.

use std::num::NonZeroU32;

use brunt_dropin::wrk::{self, Options, Program};

/// Takes each line of the input as one word of a command line. What is refused is refused as wrk
/// does it; what is accepted gives a plan with as many threads and connections as it says, or a
/// message, and a command line of brunt's own.
pub fn wrk_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    for program in [Program::Wrk, Program::Wrk2] {
        let options = match Options::parse(program, "wrk", &words) {
            Ok(options) => options,
            Err(ending) => {
                assert_eq!(ending.code, 1, "{words:?}");
                let is_told = ending.stdout.contains("Usage: wrk ") || !ending.stderr.is_empty();
                assert!(is_told, "{words:?}: {ending:?}");
                continue;
            }
        };
        assert!(options.threads <= options.connections, "{options:?}");
        assert_eq!(options.arguments.first(), Some(&options.url.typed));
        assert!(
            wrk::heading(&options).starts_with("Running "),
            "{options:?}"
        );
        let own = wrk::explanation(&options, NonZeroU32::MIN);
        match wrk::plan(&options) {
            Ok(plan) => {
                let is_own = own.is_ok_and(|own| own.line.starts_with("brunt -c "));
                assert!(is_own, "{options:?}");
                let asked = (options.threads, options.connections);
                assert_eq!((plan.workers, plan.connections), asked, "{options:?}");
                assert!(plan.stop.duration_ns > Some(0), "{options:?}");
                let is_open = plan.model.schedule().is_some();
                assert_eq!(is_open, options.rate_per_s.is_some(), "{options:?}");
            }
            Err(ending) => assert!(ending.code == 1 && !ending.stderr.is_empty(), "{ending:?}"),
        }
    }
}
