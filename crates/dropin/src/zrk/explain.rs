//! The command line of brunt's own that does the same as one of zrk's.

use std::num::NonZeroU32;

use brunt_load::{RequestSet, RequestSpec};

use super::options::{Body, Options};
use super::plan::plan;
use crate::own_line::{Made, OwnLine};
use crate::{Ending, Explanation};

/// The command line, for a machine with so many CPUs, with the body that the options name.
///
/// # Errors
///
/// As those of the plan.
pub fn explanation(
    options: &Options,
    body: &[u8],
    cpus: NonZeroU32,
) -> Result<Explanation, Ending> {
    let mut plan = plan(options, body)?;
    let made = match (&options.script, &options.body) {
        (Some(script), _) => {
            // What the script finds as its own.
            plan.requests = RequestSet::one(RequestSpec {
                headers: options.headers.clone(),
                ..RequestSpec::get(&options.target.path)
            });
            Made::Script(script.clone(), options.arguments.clone())
        }
        (None, Body::File(path)) => Made::WithBody(path.clone()),
        (None, Body::Typed(_)) => Made::Set,
    };
    let line = OwnLine::of(&plan, &made, cpus)
        .with_word_if(options.latency, "--latency")
        .noting(
            "without -t brunt finds how many threads the machine and the server leave room for.",
        )
        .noting("without --warmup a warm-up of 1 s comes first.")
        .noting_if(
            !options.is_closed,
            "-T counts from the planned instant: --timeout of zrk bounds no latency.",
        )
        .noting_if(
            options.series.is_some() || options.hdr.is_some(),
            "-o FILE.csv has rows of intervals, --hgrm FILE all percentiles, --hdr-log FILE both.",
        )
        .noting_if(
            options.p99_max_ns.is_some() || options.error_rate_max.is_some(),
            "--objective p99<..., errors<... is a limit, with exit code 1.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        for (line, body, expected) in [
            (
                "--closed -c 4 -t 1 -d 5 --timeout 8s http://h/",
                "",
                "brunt -c 4 -t 1 -d 5s --warmup 0s -T 8s --setup-timeout 10s -H 'User-Agent: zrk' \
                 -H 'Connection: keep-alive' http://h/\n",
            ),
            (
                "-R 100:200 -t 1 -d 5 -m POST -b @f -k https://h/",
                "body",
                "brunt -c 10 -t 1 --stages 5s:100..200 --warmup 0s -T 7s --drain 2s \
                 --setup-timeout 10s -b @f -H 'User-Agent: zrk' -H 'Connection: keep-alive' -H \
                 'Content-Length: 4' --http1 --insecure https://h/\n",
            ),
            (
                "--http2 -s 4 -t 1 -R 50 --latency --deadline 1s -k https://h/",
                "",
                "brunt -c 10 -t 1 -r 50 -d 10s --warmup 0s -T 1s --setup-timeout 10s --streams 4 \
                 -H 'User-Agent: zrk' --http2 --insecure --latency https://h/\n",
            ),
        ] {
            let options = Options::parse(&words(&format!("--explain {line}"))).expect(line);
            assert!(options.explains, "{line}");
            let explained = explanation(&options, body.as_bytes(), NonZeroU32::MIN).expect(line);
            assert_eq!(explained.line, expected, "{line}");
        }
    }
}
