//! Target: command lines of h2load.

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
    assert!(
        explanation(&options).starts_with("brunt -c "),
        "{options:?}"
    );
    let lines = options.input.as_ref().map(|_| &*text);
    let body = options.data.as_ref().map(|_| &b"body"[..]);
    match options.plan(lines, body) {
        Ok(plan) => {
            let asked = (options.threads, options.clients);
            assert_eq!((plan.workers, plan.connections), asked, "{options:?}");
            assert_eq!(plan.stop.duration_ns, options.duration_ns, "{options:?}");
            let requests = options.duration_ns.is_none().then_some(options.requests);
            assert_eq!(plan.stop.requests, requests, "{options:?}");
            let given = match lines {
                Some(lines) => lines.lines().filter(|line| !line.is_empty()).count(),
                None => options.uris.len(),
            };
            assert_eq!(plan.requests.requests().len(), given, "{options:?}");
        }
        Err(ending) => assert!(ending.code == 1 && !ending.stderr.is_empty(), "{ending:?}"),
    }
}
