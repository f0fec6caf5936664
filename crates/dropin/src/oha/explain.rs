//! The command line of brunt's own that does the same as one of oha's.

use std::num::NonZeroU32;

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
    let plan = plan(options, body, cpus)?;
    let made = match &options.body {
        Body::File(path) => Made::WithBody(path.clone()),
        Body::Typed(_) | Body::Lines(_) => Made::Set,
    };
    let line = OwnLine::of(&plan, &made, cpus)
        .noting_if(
            options.duration_ns.is_some(),
            "without --warmup a warm-up of 1 s comes first.",
        )
        .noting_if(
            options.rate_per_s.is_some() && !options.is_corrected,
            "response times count from the planned instant, as with --latency-correction.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            (
                "-n 100 -c 4 --disable-compression -H User-Agent:x http://h/",
                "brunt -c 4 -n 100 -T 3600s --setup-timeout 10s -H 'accept: */*' -H 'user-agent: \
                 x' -H 'host: h' http://h/\n",
            ),
            (
                "-z 5s -q 30 -t 2s --http2 -p 3 --insecure https://h/",
                "brunt -c 50 -r 30 --queue 64000000 -d 5s --warmup 0s -T 2s --setup-timeout 10s \
                 --streams 3 -H 'accept: */*' -H 'accept-encoding: gzip, compress, deflate, br' \
                 -H 'user-agent: oha/1.15.0' --http2 --insecure https://h/\n",
            ),
        ] {
            let options = Options::parse(&words(&format!("--explain {line}"))).expect(line);
            assert!(options.explains, "{line}");
            let explained = explanation(&options, b"", NonZeroU32::MIN).expect(line);
            assert_eq!(explained.line, expected, "{line}");
        }
    }
}
