//! The command line of brunt's own that does the same as one of h2load's.

use super::options::{Options, Version};
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> String {
    let mut words = vec!["brunt".to_owned()];
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-c", options.clients.to_string());
    match options.duration_ns {
        Some(ns) => {
            push("-d", format!("{}ms", ns / 1_000_000));
            push("--warmup", format!("{}ms", options.warmup_ns / 1_000_000));
        }
        None => push("-n", options.requests.to_string()),
    }
    if let Some(ns) = options.timeout_ns {
        push("-T", format!("{}ms", ns / 1_000_000));
    }
    if let Some(rate) = options.rate {
        let per_s = f64::from(rate.get()) * 1e9 / options.period_ns as f64;
        push("--connection-rate", per_s.to_string());
        let each = options.requests.div_ceil(options.clients.get().into());
        push("--requests-per-connection", each.to_string());
    }
    let uri = options.uris.first().map_or("", String::as_str);
    let version = if uri.starts_with("https") {
        options.secured
    } else {
        options.clear_text
    };
    let streams = options.streams.to_string();
    match version {
        Version::One if options.streams.get() > 1 => push("--pipeline", streams),
        Version::Two if options.streams.get() > 1 => push("--streams", streams),
        _ => {}
    }
    if let Some(path) = &options.data {
        push("-b", format!("@{}", path.display()));
    }
    for header in &options.headers {
        push("-H", header.clone());
    }
    words.push(
        if version == Version::One {
            "--http1"
        } else {
            "--http2"
        }
        .to_owned(),
    );
    if uri.starts_with("https") {
        words.push("--insecure".to_owned());
    }
    match &options.input {
        Some(path) => words.extend(["--urls".to_owned(), path.display().to_string()]),
        None => words.push(uri.to_owned()),
    }
    let notes = [
        "-t is left out: brunt finds how many threads the machine and the server leave room for.",
        "Response times of all requests have percentiles, and a verdict says what limited the run.",
    ];
    shell::explained(&words, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            (
                "-n 9 -c 3 -m 5 http://h/",
                "brunt -c 3 -n 9 --streams 5 --http2 http://h/",
            ),
            (
                "--h1 -D 5 --warm-up-time 1 -t 1 -m 4 -H a:b https://h/",
                "brunt -c 1 -d 5000ms --warmup 1000ms --pipeline 4 -H a:b --http1 --insecure \
                 https://h/",
            ),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let options = Options::parse(&words).expect(line);
            assert_eq!(explanation(&options).lines().next(), Some(expected));
        }
    }
}
