//! The command line of brunt's own that does the same as one of ab's.

use std::num::NonZeroU32;

use super::options::Options;
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
    let plan = options.plan(body)?.plan;
    let made = options
        .body
        .as_ref()
        .map_or(Made::Set, |file| Made::WithBody(file.path.clone()));
    let line = OwnLine::of(&plan, &made, cpus)
        .noting("without --raw brunt asks by HTTP/1.1, and keeps connections.")
        .noting_if(
            !options.any_length,
            "a reply of another length than the first one is not a failure to brunt.",
        )
        .noting_if(
            options.csv.is_some(),
            "-e: --hgrm FILE has all percentiles.",
        )
        .noting_if(
            options.gnuplot.is_some(),
            "-g: --request-log FILE has each request.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        let fields = "User-Agent: ApacheBench/2.3\\r\\nAccept: */*\\r\\n";
        for (line, expected) in [
            (
                "-n 9 h/",
                format!(
                    "brunt -c 1 -t 1 -n 9 -T 30s --setup-timeout 10s --no-keepalive --raw \
                     'GET / HTTP/1.0\\r\\nHost: h\\r\\n{fields}\\r\\n' http://h/\n"
                ),
            ),
            (
                "-kc2 -t 5 -p f -T a/b -X p:81 -B 127.0.0.2 -f TLS1.2 -E c.pem -I https://h/x",
                format!(
                    "brunt -c 2 -t 1 -n 50000 -d 5s -T 30s --setup-timeout 10s --source-address \
                     127.0.0.2 --raw 'POST https://h/x HTTP/1.0\\r\\nConnection: \
                     Keep-Alive\\r\\nContent-length: 4\\r\\nContent-type: a/b\\r\\nHost: \
                     h\\r\\n{fields}\\r\\n' -b @f --insecure --no-sni --sni h --cert c.pem \
                     --tls-max 1.2 https://p:81/\n"
                ),
            ),
        ] {
            let words = words(line);
            let options = Options::parse("ab", &words).expect(line);
            let cpus = NonZeroU32::MIN;
            assert_eq!(
                explanation(&options, b"body", cpus).expect(line).line,
                expected
            );
        }
    }
}
