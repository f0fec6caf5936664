//! Target: command lines of ab.

use std::num::NonZeroU32;

use brunt_dropin::ab::{Options, explanation, heading};

/// Takes each line of the input as one word of a command line. What is refused is refused with an
/// exit code of ab's; what is accepted gives a plan, or a message, and a command line of brunt's
/// own.
pub fn ab_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match Options::parse("ab", &words) {
        Ok(options) => options,
        Err(ending) => {
            assert!([0, 1, 22].contains(&ending.code), "{words:?}: {ending:?}");
            let is_told = !ending.stdout.is_empty() || !ending.stderr.is_empty();
            assert!(is_told, "{words:?}: {ending:?}");
            return;
        }
    };
    assert!(
        options.concurrency.get() <= options.requests.max(1),
        "{options:?}"
    );
    let is_shown = heading(&options, b"").contains("\nBenchmarking ");
    assert_eq!(is_shown, options.html.is_none(), "{options:?}");
    let own = explanation(&options, b"body", NonZeroU32::MIN);
    match options.plan(b"body") {
        Ok(planned) => {
            let is_own = own.is_ok_and(|own| own.line.starts_with("brunt -c "));
            assert!(is_own, "{options:?}");
            assert!(planned.request.starts_with(options.method.as_bytes()));
            let requests = planned.plan.stop.requests;
            assert_eq!(requests, Some(options.requests.into()), "{options:?}");
        }
        Err(ending) => assert!(ending.code == 1 && !ending.stderr.is_empty(), "{ending:?}"),
    }
}
