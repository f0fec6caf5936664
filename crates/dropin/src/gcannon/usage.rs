//! What gcannon prints about itself, in brunt's words.

/// The usage text.
pub(super) const USAGE: &str = "\
Usage: gcannon [URL] [OPTIONS]

  -c <N>              Connections [default: 100]
  -t <N>              Threads [default: 1]
  -d <TIME>           Length of the run in whole seconds or minutes: 10, 10s, 1m [default: 10s]
  -p <N>              Requests in flight per connection, 64 at most [default: 1]
  -r <N>              Requests per connection, 0 for no limit [default: 0]
  -s <STATUS>         Status whose class is expected [default: 200]
  -R, --raw <FILES>   Files with a request each, separated by commas; in them {SEQ:START} and
                      {RAND:MIN:MAX} are filled in. Without a URL the server is that of Host
  --ws                Frames of WebSocket and their replies
  --ws-msg <TEXT>     The text of a frame, with --ws [default: hello]
  --json              The result as JSON
  --per-tpl-latency   Latencies of each file
  --tui, --cqe-latency, -b <N>, --buckets <N>, --recv-buf <N>, --clear-history
                      Taken, without an effect

brunt, which stands in for gcannon here, adds --brunt-report FILE, --explain and --help.
";
