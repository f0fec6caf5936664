//! What tcpkali's help is here: the options that brunt takes.

const HEAD: &str = "Usage: tcpkali [OPTIONS] [-l <port>] [<host:port>...]\n";
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
  --nagle on                       let small writes wait (brunt sends them at once)
  --rcvbuf, --sndbuf <Size>        buffers of each socket
  --ws, --websocket                speak WebSocket: each message is a text
  -H, --header <string>            header field of its upgrade
  --ssl                            speak TLS; any certificate passes
  --channel-lifetime <Time>        with a rate: how long a connection is used
  -l, --listen-port <port>         take connections, and throw away what they send
  -T, --duration <Time>            length of the run (10s); -1 for ever
  -e, --unescape-message-args      read escapes in the messages that follow
  -1, --first-message <string>     what each connection begins with
  --first-message-file <name>      the same out of a file
  -m, --message <string>           message, sent again and again as fast as can be; several
                                   follow one another; without one, connections are held
  -f, --message-file <name>        the same out of a file
  -r, --message-rate <Rate>        messages per second on each connection
  --channel-bandwidth-upstream <Bandwidth>  bytes per second on each connection
  --latency-connect                print the time to connect
  --latency-first-byte             print the time to the first byte of a reply
  --latency-marker <string>        what ends the reply to a message: its time is printed
  --latency-marker-skip <N>        how often it stands in the reply to the first message
  --message-marker                 what ends it is the instant in \\{message.marker}
  --latency-percentiles <list>     which percentiles to print (95,99,99.5)
  --write-combine off              what brunt does in any case
  --statsd, --statsd-host <host>, --statsd-port <port>, --statsd-namespace <string>,
  --statsd-latency-window <T>      send metrics to StatsD (127.0.0.1, 8125, tcpkali)
  --brunt-report <FILE>            keep the whole run, for `brunt report`

Counts and rates: k, m. Sizes: k, m. Bandwidths: kbps, Mbps, kBps, MBps. Times: ms, s, m, h, d.
Messages: \\{connection.uid}, \\{connection.uid % 10}, \\{re [a-z]{8}}, \\{connection.re ...},
\\{global.re ...}, \\{message.marker}, \\{<FILE>}, \\{raw \"...\"}, \\{ws.text \"...\"}. See
docs/drop-ins.md.
";

/// The help text of `-h`.
pub(super) fn short() -> String {
    format!("{HEAD}{SHORT}")
}

/// The help text of `--help`.
pub(super) fn long() -> String {
    format!("{HEAD}{LONG}")
}
