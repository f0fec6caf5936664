//! The command line of brunt's own that does the same as one of h2load's.

use std::num::NonZeroU32;

use super::options::Options;
use super::uris::Uris;
use crate::own_line::{Made, OwnLine};
use crate::{Ending, Explanation};

/// The command line of what requests `uris`, with the content of the body file, on a machine with
/// so many CPUs. Where `is_list` holds, brunt reads the lines of the input file as h2load does.
///
/// # Errors
///
/// There is no such load.
pub fn explanation(
    options: &Options,
    uris: &Uris,
    data: Option<&[u8]>,
    is_list: bool,
    cpus: NonZeroU32,
) -> Result<Explanation, Ending> {
    let plan = options.plan(uris, data)?;
    let made = match (&options.data, &options.input) {
        (Some(path), _) => Made::WithBody(path.clone()),
        (None, Some(path)) if is_list => Made::Listed(path.clone()),
        (None, _) => Made::Set,
    };
    let line = OwnLine::of(&plan, &made, cpus)
        .noting_if(
            plan.has_equal_parts,
            "without --equal-parts each connection sends as much as it gets to.",
        )
        .noting_if(
            options.log.is_some(),
            "--log-file: --request-log FILE has each request.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        const AGENT: &str = "-H 'user-agent: h2load nghttp2/1.52.0'";
        const CIPHERS: &str = "--tls-ciphers TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,\
             TLS_CHACHA20_POLY1305_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,\
             TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,\
             TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,\
             TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
        for (line, expected) in [
            (
                "-n 9 -c 3 -m 5 http://h/ http://h/b",
                "-c 3 -t 1 -n 9 -T 3600s --streams 5 --equal-parts AGENT --path /b --http2 --order \
                 connection http://h/",
            ),
            (
                "--h1 -D 5 --warm-up-time 1 -m 4 -H a:b https://h/",
                "-c 1 -t 1 -d 5s --plain-warmup -T 3600s --drain 1s --pipeline 4 AGENT -H 'a: b' \
                 --http1 --insecure CIPHERS https://h/",
            ),
            (
                "-n 4 -c 2 -t 2 -m 7 -w 16 -W 20 -N 2 --connect-to i:9 -d f https://h/x",
                "-c 2 -t 2 -n 4 -T 2s --streams 7 --h2-stream-window 65535 --h2-window 1048575 \
                 --equal-parts -b @f -H 'Host: h' AGENT --insecure --sni h CIPHERS https://i:9/x",
            ),
            (
                "-n 6 -c 3 -r 2 --rate-period 500ms -B unix:/s --log-file l http://h",
                "-c 3 -t 1 --connection-rate 4 -n 6 -T 3600s --requests-per-connection 2 AGENT \
                 --http2 --unix-socket /s http://h/",
            ),
            (
                "-n 6 -c 3 --rps 1.5 -H :method:PUT -m 8 https://h/",
                "-c 3 -t 1 -r 4.5 -n 6 -T 3600s --pipeline 8 --streams 8 --equal-parts -m PUT \
                 AGENT --insecure CIPHERS https://h/",
            ),
            (
                "--h3 -n 6 -c 2 -m 3 https://h/",
                "-c 2 -t 1 -n 6 -T 3600s --streams 3 --equal-parts AGENT --http3 --insecure \
                 CIPHERS https://h/",
            ),
            (
                "--timing-script-file f --h1",
                "-c 1 -t 1 --stages 500ns:1000000,19999500ns:0,2us:1000000 -n 3 -T \
                 3600s --equal-parts AGENT --path /b --path /c --order connection http://h/a",
            ),
        ] {
            let words = words(line);
            let options = Options::parse(&words).expect(line);
            let script = "0\thttp://h/a\n20\t/b\n20\t/c\n";
            let script = options.timing_script.as_ref().map(|_| script);
            let uris = options.uris(script).expect(line);
            let data = options.data.as_ref().map(|_| &b"x"[..]);
            let cpus = NonZeroU32::new(8).expect("not 0");
            let explained = explanation(&options, &uris, data, false, cpus).expect(line);
            let expected = format!("brunt {}", expected.replace("AGENT", AGENT));
            let expected = expected.replace("CIPHERS", CIPHERS);
            assert_eq!(explained.line, format!("{expected}\n"), "{line}");
        }
    }
}
