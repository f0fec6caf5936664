//! The command line of brunt's own that does the same as one of wrk's.

use std::num::NonZeroU32;

use brunt_load::{RequestSet, RequestSpec};

use super::plan::{plan, typed_headers};
use super::{Options, Program};
use crate::own_line::{Made, OwnLine};
use crate::{Ending, Explanation};

/// The command line, for a machine with so many CPUs.
///
/// # Errors
///
/// As those of the plan.
pub fn explanation(options: &Options, cpus: NonZeroU32) -> Result<Explanation, Ending> {
    let mut plan = plan(options)?;
    let made = match &options.script {
        None => Made::Set,
        Some(script) => {
            // What the script finds as its own.
            plan.requests = RequestSet::one(RequestSpec {
                headers: typed_headers(options),
                ..RequestSpec::get(&options.url.path)
            });
            Made::Script(script.clone(), options.arguments[1..].to_vec())
        }
    };
    let line = OwnLine::of(&plan, &made, cpus)
        .with_word_if(options.latency, "--latency")
        .noting_if(
            options.script.is_none(),
            "without -t brunt finds how many threads the machine and the server leave room for.",
        )
        .noting("without --warmup a warm-up of 1 s comes first.")
        .noting_if(
            options.program == Program::Wrk2,
            "-r plans each request; response times count from the planned instant.",
        )
        .noting_if(
            plan.target.scheme.is_secure(),
            "without --http1 HTTP/2 is used where offered, without --insecure the certificate is \
             verified.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_translated() {
        let usual = "--warmup 0s -T 2s --setup-timeout 10s";
        for (program, words, expected) in [
            (
                Program::Wrk,
                &["http://h/"][..],
                format!("brunt -c 10 -t 2 -d 10s {usual} --drain 2s http://h/"),
            ),
            (
                Program::Wrk,
                &["-t1", "-c100", "-d1m", "-T5s", "--latency", "http://h/a?b"],
                "brunt -c 100 -t 1 -d 60s --warmup 0s -T 5s --setup-timeout 10s --latency \
                 'http://h/a?b'"
                    .to_owned(),
            ),
            (
                Program::Wrk,
                &[
                    "-t3",
                    "-s",
                    "x.lua",
                    "http://h/p",
                    "-H",
                    "X: y",
                    "--",
                    "16",
                    "a b",
                ],
                format!(
                    "brunt -c 10 -t 3 --oversubscribe -d 10s {usual} -H 'X: y' -s x.lua \
                     http://h/p -- 16 'a b'"
                ),
            ),
            (
                Program::Wrk2,
                &["-R2k", "-H", "X: it's", "-H", "Host: o", "https://h/"],
                "brunt -c 10 -t 2 -r 2000 -d 10s --warmup 0s -T 12s --drain 2s --setup-timeout \
                 10s -H 'X: it'\\''s' -H 'Host: o' --http1 --insecure https://h/"
                    .to_owned(),
            ),
            (
                Program::Wrk,
                &["-t1", "http://h:81/#f"],
                format!(
                    "brunt -c 10 -t 1 -d 10s {usual} --raw 'GET /#f HTTP/1.1\\r\\nHost: \
                     h:81\\r\\n\\r\\n' http://h:81/"
                ),
            ),
        ] {
            let mut typed = vec!["--explain".to_owned()];
            typed.extend(words.iter().map(|&word| word.to_owned()));
            let options = Options::parse(program, "wrk", &typed).expect("good");
            assert!(options.explains);
            let cpus = NonZeroU32::MIN.saturating_add(1);
            let explained = explanation(&options, cpus).expect("good");
            let expected = expected.replace(" --drain 2s http", " http");
            assert_eq!(explained.line, format!("{expected}\n"));
        }
    }
}
