//! The command line of brunt's own that does the same as one of weighttp's.

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
    let plan = options.plan_on(options.target(false)?, body)?;
    let made = options.body.clone().map_or(Made::Set, Made::WithBody);
    let line = OwnLine::of(&plan, &made, cpus)
        .noting(
            "without -t brunt finds how many threads the machine and the server leave room for.",
        )
        .noting_if(
            options.csv.is_some(),
            "-e: --hgrm FILE has all percentiles.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;
    use crate::weighttp::Form;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            (
                "-n 9 -k nobody.invalid",
                "brunt -c 1 -t 1 -n 9 -T 4s --setup-timeout 10s -H 'User-Agent: weighttp/0.5' \
                 http://nobody.invalid/\n",
            ),
            (
                "-n 9 127.0.0.1/",
                "brunt -c 1 -t 1 -n 9 -T 4s --setup-timeout 10s --no-keepalive -H 'Connection: \
                 close' -H 'User-Agent: weighttp/0.5' http://127.0.0.1/\n",
            ),
            (
                "-n9 -c4 -t2 -K8 -a 5 -p f -A u:p http://127.0.0.1:81/x",
                "brunt -c 4 -t 2 --oversubscribe -n 9 -d 5s -T 4s --setup-timeout 10s --pipeline 8 \
                 -b @f -H 'Content-Length: 4' -H 'Content-Type: text/plain' -H 'Authorization: \
                 Basic dTpw' -H 'User-Agent: weighttp/0.5' http://127.0.0.1:81/x\n",
            ),
            (
                "-n 1 -k -X 127.0.0.1:81 http://h/x",
                "brunt -c 1 -t 1 -n 1 -T 4s --setup-timeout 10s --raw 'GET http://h/x \
                 HTTP/1.1\\r\\nHost: h\\r\\nUser-Agent: weighttp/0.5\\r\\n\\r\\n' \
                 http://127.0.0.1:81/\n",
            ),
        ] {
            let words = words(line);
            let options = Options::parse(Form::Json, &words).expect(line);
            let explained = explanation(&options, b"body", NonZeroU32::MIN).expect(line);
            assert_eq!(explained.line, expected);
        }
    }
}
