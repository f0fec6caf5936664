//! Target: command lines of gcannon.

use std::num::NonZeroU32;

use brunt_dropin::gcannon::{self, Options};

/// Takes each line of the input as one word of a command line. What is refused is refused with a
/// message; what is accepted gives a plan with as many connections as it says, or a message, and a
/// command line of brunt's own.
pub fn gcannon_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match Options::parse(&words) {
        Ok(options) => options,
        Err(ending) => {
            let begins = |text: &str| text.starts_with("Usage: ") || text.starts_with("Error: ");
            let is_told = begins(&ending.stderr) && ending.code == 1;
            let is_asked = !ending.stdout.is_empty() && ending.code == 0;
            assert!(is_told || is_asked, "{words:?}: {ending:?}");
            return;
        }
    };
    let file = b"GET /{SEQ:1} HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
    let files = vec![file; options.raw.len()];
    let own = gcannon::explanation(&options, &files, NonZeroU32::MIN);
    match gcannon::plan(&options, &files, 7) {
        Ok(plan) => {
            let is_own = own.is_ok_and(|own| own.line.starts_with("brunt -c "));
            assert!(is_own, "{options:?}");
            assert_eq!(plan.connections, options.connections, "{options:?}");
            assert!(plan.workers <= plan.connections, "{options:?}");
        }
        Err(ending) => assert!(ending.stderr.starts_with("Error: "), "{ending:?}"),
    }
}
