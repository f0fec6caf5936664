//! What tcpkali's help is here: the options that brunt takes.

const HEAD: &str = "Usage: tcpkali [OPTIONS] <host:port>\n";
const SHORT: &str = "\
  -c <N>               connections
  -T <Time>            length of the run (10s)
  -e                   read escapes in the messages that follow
  -1 <string>          what each connection begins with
  -m <string>          message, sent again and again
  -r <Rate>            messages per second on each connection
  --help               all options
";
const LONG: &str = "\
  -h, --help, --version
  -c, --connections <N>            connections (1)
  --connect-rate <Rate>            connections opened per second (100)
  --connect-timeout <Time>         limit of one attempt (1s)
  --source-ip <IP>                 address to connect from; several are used in turns
  -w, --workers <N>                threads
  --ssl                            speak TLS; any certificate passes
  -T, --duration <Time>            length of the run (10s)
  -e, --unescape-message-args      read escapes in the messages that follow
  -1, --first-message <string>     what each connection begins with
  --first-message-file <name>      the same out of a file
  -m, --message <string>           message, sent again and again; several in turns
  -f, --message-file <name>        the same out of a file
  -r, --message-rate <Rate>        messages per second on each connection
  --latency-connect                print the time to connect
  --latency-first-byte             print the time to the first byte of a reply
  --latency-marker <string>        what ends the reply to a message: its time is printed
  --latency-percentiles <list>     which percentiles to print (95,99,99.5)
  --nagle off, --write-combine off what brunt does in any case
  --brunt-report <FILE>            keep the whole run, for `brunt report`
  --explain                        print brunt's own command line, and run nothing

Counts and rates: k, m. Times: ms, s, m, h, d.
Messages: \\{connection.uid}, \\{raw \"...\"}. See docs/drop-ins.md.
";

/// That of `-h`.
pub(super) fn short() -> String {
    format!("{HEAD}{SHORT}")
}

/// That of `--help`.
pub(super) fn long() -> String {
    format!("{HEAD}{LONG}")
}
