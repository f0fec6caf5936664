//! The command line of brunt's own that does the same as one of weighttp's.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::options::{Options, Proxy};
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> String {
    let mut words = vec!["brunt".to_owned()];
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-c", options.clients.to_string());
    push("-n", options.requests.to_string());
    if let Some(limit_s) = options.limit_s {
        push("-d", format!("{limit_s}s"));
    }
    push("-T", format!("{}s", options.cutoff_s.max(1)));
    if options.pipeline.get() > 1 {
        push("--pipeline", options.pipeline.to_string());
    }
    let usual = if options.body.is_some() {
        "POST"
    } else {
        "GET"
    };
    if options.method != usual {
        push("-m", options.method.clone());
    }
    if let Some(user) = &options.user {
        push("-u", user.clone());
    }
    if let Some(user) = &options.proxy_user {
        let credentials = BASE64_STANDARD.encode(user);
        push("-H", format!("Proxy-Authorization: Basic {credentials}"));
    }
    if let Some(path) = &options.body {
        push("-b", format!("@{}", path.display()));
        let content_type = options.content_type.as_deref();
        if options.header("content-type:").is_none() {
            let content_type = content_type.unwrap_or("text/plain");
            push("-H", format!("Content-Type: {content_type}"));
        }
    }
    for header in &options.headers {
        push("-H", header.clone());
    }
    for cookie in &options.cookies {
        push("-H", format!("Cookie: {cookie}"));
    }
    for source in &options.sources {
        push("--source-address", source.clone());
    }
    if let Some(Proxy::Socket(path)) = &options.proxy {
        push("--unix-socket", path.display().to_string());
    }
    if !options.keep_alive {
        words.push("--no-keepalive".to_owned());
    }
    words.push(match options.url.starts_with("http://") {
        true => options.url.clone(),
        false => format!("http://{}", options.url),
    });
    let mut notes = vec![
        "-t is left out: brunt finds how many threads the machine and the server leave room for.",
        "Percentiles are exact to 0.1 %; --request-log FILE writes every request.",
    ];
    if matches!(options.proxy, Some(Proxy::Host(..))) {
        notes.push("-X has no equal: brunt's own command line loads the server itself.");
    }
    shell::explained(&words, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weighttp::Form;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            ("-n 9 h/", "brunt -c 1 -n 9 -T 4s --no-keepalive http://h/"),
            (
                "-n9 -c4 -t2 -K8 -a 5 -p f -A u:p http://h/",
                "brunt -c 4 -n 9 -d 5s -T 4s --pipeline 8 -u u:p -b @f -H 'Content-Type: \
                 text/plain' http://h/",
            ),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let options = Options::parse(Form::Json, &words).expect(line);
            assert_eq!(explanation(&options).lines().next(), Some(expected));
        }
    }
}
