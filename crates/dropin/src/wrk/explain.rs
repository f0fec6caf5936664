//! The command line of brunt's own that does the same as one of wrk's.

use super::plan::headers;
use super::{Options, Program};
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> String {
    let mut words = vec![
        "brunt".to_owned(),
        "-c".to_owned(),
        options.connections.to_string(),
        "-d".to_owned(),
        format!("{}s", options.duration_s),
        "-T".to_owned(),
        format!("{}s", options.timeout_s.max(1)),
    ];
    if let Some(rate_per_s) = options.rate_per_s {
        words.extend(["-r".to_owned(), rate_per_s.to_string()]);
    }
    let is_secure = options.url.scheme.eq_ignore_ascii_case("https");
    if is_secure {
        words.extend(["--http1".to_owned(), "--insecure".to_owned()]);
    }
    for (name, value) in headers(options) {
        // Brunt makes the same.
        if name != "Host" || value != options.url.authority() {
            words.extend(["-H".to_owned(), format!("{name}: {value}")]);
        }
    }
    if options.latency {
        words.push("--latency".to_owned());
    }
    if let Some(script) = &options.script {
        // What a thread of it counts is its own.
        let script = script.display().to_string();
        words.extend([
            "-t".to_owned(),
            options.threads.to_string(),
            "-s".to_owned(),
            script,
        ]);
    }
    words.push(options.url.typed.clone());
    if options.script.is_some() && options.arguments.len() > 1 {
        words.push("--".to_owned());
        words.extend_from_slice(&options.arguments[1..]);
    }
    let mut text = shell::line(&words);
    for note in notes(options, is_secure) {
        text.push_str("  ");
        text.push_str(note);
        text.push('\n');
    }
    text
}

fn notes(options: &Options, is_secure: bool) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if options.script.is_none() {
        notes.push(
            "-t is left out: brunt finds how many threads the machine and the server leave room \
             for.",
        );
    }
    notes.push(
        "A warm-up of 1 s comes first (--warmup 0s for none), and a verdict says what limited it.",
    );
    if options.program == Program::Wrk2 {
        notes.push("-r plans each request; response times count from the planned instant.");
    }
    if is_secure {
        notes.push("Without --http1 HTTP/2 is used where offered; without --insecure the");
        notes.push("certificate is verified.");
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrk::Asked;

    #[test]
    fn command_lines_are_translated() {
        for (words, expected) in [
            (&["http://h/"][..], "brunt -c 10 -d 10s -T 2s http://h/"),
            (
                &["-t4", "-c100", "-d1m", "--latency", "http://h/a?b"],
                "brunt -c 100 -d 60s -T 2s --latency 'http://h/a?b'",
            ),
            (
                &["-t2", "-s", "x.lua", "http://h/", "--", "16", "a b"],
                "brunt -c 10 -d 10s -T 2s -t 2 -s x.lua http://h/ -- 16 'a b'",
            ),
            (
                &["-R2k", "-H", "X: it's", "-H", "Host: o", "https://h/"],
                "brunt -c 10 -d 10s -T 2s -r 2000 --http1 --insecure -H 'Host: o' \
                 -H 'X: it'\\''s' https://h/",
            ),
        ] {
            let mut typed = vec!["--explain".to_owned()];
            typed.extend(words.iter().map(|&word| word.to_owned()));
            let Ok(Asked::Explain(options)) = Asked::parse(Program::Wrk, "wrk", &typed) else {
                panic!("{words:?}");
            };
            let text = explanation(&options);
            let mut first: Vec<&str> = text.lines().next().unwrap_or_default().split(' ').collect();
            let mut wanted: Vec<&str> = expected.split(' ').collect();
            // Header fields stand in the order of wrk's request.
            first.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(first, wanted);
        }
    }
}
