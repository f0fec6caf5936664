//! What weighttp prints about itself.

use super::form::Form;

const USAGE: &str = r#"weighttp <options> <URI>
  -n num     number of requests      (mandatory)
  -t num     thread count            (default: 1)
  -c num     concurrent clients      (default: 1)
  -k         keep alive              (default: no)
  -K num     num pipelined requests  (default: 1)
  -6         use ipv6                (default: no)
  -i         use HTTP HEAD method    (default: GET)
  -m method  use custom HTTP method  (default: GET)
  -H str     add header to request ("label: value"); repeatable
  -b size    socket buffer sizes (SO_SNDBUF, SO_RCVBUF)
  -B addr    local address to bind to when making outgoing connections
  -C cookie  add cookie to request ("cookie-name=value"); repeatable
  -F         use TCP Fast Open (RFC 7413)
  -T type    Content-Type header to use for POST/PUT data,
             e.g. application/x-www-form-urlencoded
                                     (default: text/plain)
  -A string  add Basic WWW Authorization   (str is username:password)
  -P string  add Basic Proxy-Authorization (str is username:password)
  -X proxy   proxy:port or unix domain socket path beginning w/ '/'
  -p file    make HTTP POST request using file contents for body
  -u file    make HTTP PUT request using file contents for body
  -d         do not report extended percentiles (beyond min,mean,max)
  -S         do not show standard deviation confidence warnings
  -l         (ignored; compatibility with Apache Bench (ab))
  -e file    output CSV file with percentages for total time to serve
  -r         (ignored; compatibility with Apache Bench (ab))
  -a time    max seconds to run benchmark (or until -n requests)
  -s cutoff  seconds to cutoff fails (default: 4)
  -q         quiet: do not show version header or progress
  -h         show help and exit
  -V         show version and exit

example:"#;
// A blank ends the line before it.
const EXAMPLE: &str = " \n  weighttp -n 500000 -c 100 -t 2 -K 64 http://localhost/index.html\n\n";

pub(super) fn usage() -> String {
    [USAGE, EXAMPLE].concat()
}

/// The lines that name the version.
pub(super) fn version(form: Form) -> &'static str {
    match form {
        Form::Json => "\nweighttp 0.5 - lightweight and simple webserver benchmarking tool\n\n",
        Form::Text => "weighttp 0.4 - a lightweight and simple webserver benchmarking tool\n\n",
    }
}
