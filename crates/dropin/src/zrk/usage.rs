//! What zrk prints about itself, in brunt's words.

use super::VERSION;

/// The usage text.
pub(super) const USAGE: &str = "\
zrk - constant-throughput HTTP load generator

Usage: zrk [options] <url> [script args...]

Options:
  -t, --threads     <N>     Threads (default 2, at most 64)
  -c, --connections <N>     Connections (default 10)
  -s, --streams     <N>     Requests in flight per connection, with --http2 or
                            --http3 (default 1)
  -d, --duration    <T>     Length of the run (default 10s)
  -R, --rate      <N|A:B>   Requests per second, all connections together; A:B
                            rises or falls from A to B (default 1000)
      --closed              Send the next request when a response is in; no -R
      --disable-keepalive   A connection for each request
  -H, --header  <K: V>      Add a header field (repeatable)
  -m, --method      <M>     Method (default GET)
  -b, --body     <S|@FILE>  Body; @FILE: of a file; @-: of standard input;
                            @@x: a text that begins with @
      --script    <FILE>    A Lua script of wrk's makes the requests
      --timeout     <T>     Longest time from a send to the response (default 2s)
      --deadline    <T>     Longest time from the planned instant; what is later
                            is not sent, or given up (0 = off)
      --deadline-abort      Taken: with --deadline this is always so
      --interval    <T>     Time from line to line, and from row to row
                            (default 1s)
      --refresh     <T>     Taken: there is no dashboard
      --latency             Print more percentiles
      --http2               HTTP/2
      --http3               HTTP/3 (https only)
  -k, --insecure            Do not verify the certificate
      --plain               Taken: there is no dashboard

Reporting:
      --format  <text|json> Form of the report (default text)
  -o, --output      <FILE>  File of the report (default standard output)
      --hdr         <FILE>  File of the percentile distribution (.hgrm)
      --timeseries  <FILE>  File of a JSON object per interval; -: standard
                            output, and the report goes to standard error
      --timeseries-histogram  Each of them has its histogram
      --no-record-timeouts  Leave what was never answered out of the latencies

Limits (exit code 3 where they are exceeded):
      --slo-p99     <T>     The 99th percentile
      --max-error-rate <F>  The share of errors, 0 to 1, or as 1%

  -h, --help                Show this help
      --version             Show the version

brunt, which stands in for zrk here, adds --brunt-report FILE and --explain.
Durations: us, ms, s, m, h; without a unit, seconds.
";

/// The line of `--version`: its second word is the version, the rest says what makes the load.
pub(super) fn version() -> String {
    format!("zrk {VERSION} [brunt {}]\n", env!("CARGO_PKG_VERSION"))
}
