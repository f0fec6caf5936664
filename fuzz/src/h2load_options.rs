//! Target: command lines of h2load.

use std::num::NonZeroU32;

use brunt_dropin::h2load::{Options, explanation};

/// Takes each line of the input as one word of a command line, and the whole as the lines of its
/// input file. What is refused is refused with a message; what is accepted gives a plan, or a
/// message, and a command line of brunt's own.
pub fn h2load_options(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match Options::parse(&words) {
        Ok(options) => options,
        Err(ending) => {
            let is_told = match ending.code {
                0 => !ending.stdout.is_empty(),
                code => code == 1 && !ending.stderr.is_empty(),
            };
            assert!(is_told, "{words:?}: {ending:?}");
            return;
        }
    };
    assert!(options.threads <= options.clients, "{options:?}");
    let has_file = options.input.is_some() || options.timing_script.is_some();
    let lines = has_file.then_some(&*text);
    let body = options.data.as_ref().map(|_| &b"body"[..]);
    let made = options.uris(lines).and_then(|uris| {
        let plan = options.plan(&uris, body)?;
        let explained = explanation(&options, &uris, body, false, NonZeroU32::MIN)?;
        assert!(explained.line.starts_with("brunt -c "), "{options:?}");
        Ok((uris, plan))
    });
    match made {
        Ok((uris, plan)) => {
            let asked = (options.threads, options.clients);
            assert_eq!((plan.workers, plan.connections), asked, "{options:?}");
            assert_eq!(plan.stop.requests.is_none(), options.duration_ns.is_some());
            assert_eq!(
                plan.requests.requests().len(),
                uris.paths.len(),
                "{options:?}"
            );
        }
        Err(ending) => assert!(ending.code == 1 && !ending.stderr.is_empty(), "{ending:?}"),
    }
}
