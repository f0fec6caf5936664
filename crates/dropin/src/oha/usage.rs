//! What oha prints about itself, in brunt's words.

use super::VERSION;

/// The usage text.
pub(super) const USAGE: &str = "\
HTTP load generator

Usage: oha [OPTIONS] <URL>

Options:
  -n <N>                     Requests (k and m: thousands and millions) [default: 200]
  -c <N>                     Connections [default: 50]
  -p <N>                     Requests in flight per connection over HTTP/2 [default: 1]
  -z <DURATION>              Length of the run, in place of -n, as in 10s or 3m
  -w, --wait-ongoing-requests-after-deadline
                             Taken: requests in flight at the end are always waited for
  -q <QPS>                   Requests per second, all connections together
      --latency-correction   With -q: latencies from the planned instants
      --no-tui, --fps <FPS>, --no-color, --disable-color
                             Taken: nothing is drawn
  -m, --method <METHOD>      Method [default: GET]
  -H <HEADER>                A header field
  -t <TIMEOUT>               Longest time of a request [default: none]
      --connect-timeout <T>  Longest time to open a connection [default: 5s]
  -A <TYPE>                  Accept
  -d <TEXT>                  Body
  -D <FILE>                  File of the body
  -Z <FILE>                  File of bodies, one per line, of which each request has one
  -T <TYPE>                  Content-Type
  -a <USER:PASSWORD>         Basic authentication
      --http-version <V>     1.1, 2 or 3 [default: 1.1]
      --http2                HTTP/2
      --host <HOST>          Host
      --disable-compression  No Accept-Encoding
  -r, --redirect <N>         Taken: redirects are not followed
      --disable-keepalive    A connection for each request
      --no-pre-lookup        Taken: names are looked up once
      --ipv4, --ipv6         Taken: the resolver's first address is used
      --cacert <FILE>        Certificates to verify the server by
      --cert <FILE>, --key <FILE>
                             Certificate and key of the client
      --insecure             Do not verify the certificate
      --connect-to <HOST:PORT:TO_HOST:TO_PORT>
                             Connect to another server
      --unix-socket <PATH>   Connect to a Unix socket
      --stats-success-breakdown
                             Times of 2xx, and of 4xx and 5xx, apart
  -o, --output <FILE>        File of the result
      --output-format <F>    text, json or quiet [default: text]; -j, --json: json
  -u, --time-unit <UNIT>     ns, us, ms, s, m or h, for text
  -h, --help                 Print this help
  -V, --version              Print the version

brunt, which stands in for oha here, adds --brunt-report FILE.
";

/// The line of `--version`.
pub(super) fn version() -> String {
    format!("oha {VERSION} [brunt {}]\n", env!("CARGO_PKG_VERSION"))
}
