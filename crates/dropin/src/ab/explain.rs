//! The command line of brunt's own that does the same as one of ab's.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::options::Options;
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> String {
    let mut words = vec!["brunt".to_owned()];
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-c", options.concurrency.to_string());
    push("-n", options.requests.to_string());
    if let Some(limit_s) = options.time_limit_s {
        push("-d", format!("{limit_s}s"));
    }
    push("-T", format!("{}s", options.timeout_s.max(1)));
    let usual = if options.body.is_some() {
        "POST"
    } else {
        "GET"
    };
    if options.method != usual {
        push("-m", options.method.clone());
    }
    if let Some(cookie) = &options.cookie {
        push("-H", format!("Cookie: {cookie}"));
    }
    for user in &options.users {
        if user.is_proxys {
            let credentials = BASE64_STANDARD.encode(&user.credentials);
            push("-H", format!("Proxy-Authorization: Basic {credentials}"));
        } else {
            push("-u", user.credentials.clone());
        }
    }
    if let Some(file) = &options.body {
        push("-b", format!("@{}", file.path.display()));
        push("-H", format!("Content-Type: {}", file.content_type));
    }
    for header in &options.headers {
        push("-H", header.clone());
    }
    if !options.keep_alive {
        words.push("--no-keepalive".to_owned());
    }
    if options.url.is_secure {
        words.push("--insecure".to_owned());
    }
    words.push(options.url.typed.clone());
    let notes = [
        "Requests are those of HTTP/1.1 (ab: HTTP/1.0), without User-Agent and Accept.",
        "Percentiles are exact to 0.1 %; -v prints all, --latency the whole spectrum.",
        "A verdict says what limited it.",
    ];
    shell::explained(&words, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            ("-n 9 h/", "brunt -c 1 -n 9 -T 30s --no-keepalive h/"),
            (
                "-kc2 -t 5 -p f -T a/b -A u:p -H X:y https://h/",
                "brunt -c 2 -n 50000 -d 5s -T 30s -u u:p -b @f -H 'Content-Type: a/b' -H X:y \
                 --insecure https://h/",
            ),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let options = Options::parse("ab", &words).expect(line);
            let text = explanation(&options);
            assert_eq!(text.lines().next(), Some(expected));
        }
    }
}
