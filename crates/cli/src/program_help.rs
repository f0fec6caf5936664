//! What `brunt -h` says, and `brunt --help` below the options.

/// The options that most runs need, and an example for each kind of use, in 80 columns.
pub(crate) const SHORT_HELP: &str = "\
A load generator for HTTP, WebSocket and TCP that says what limited each run.

Usage: brunt [OPTIONS] [URL]     without a URL, brunt's own server is loaded
       brunt COMMAND [OPTIONS]

Load:
  -c, --connections N   connections at once [64]
  -d, --duration TIME   length of the measured part, such as 30s [10s]
  -n, --requests N      number of requests, in place of a length
  -r, --rate RATE       open loop: requests per second, whatever the replies
      --stages LIST     open loop: steps and ramps, such as 10s:0..5k,30s:5k
      --warmup TIME     load before the measured part [1s]
  -t, --threads N       worker threads [brunt chooses]
Request:
  -m, --method METHOD   [GET, or POST with a body]
  -H, --header FIELD    'Name: value', or @FILE; repeatable
  -b, --body TEXT       or @FILE
  -u, --user USER       USER:PASSWORD, or @FILE
      --urls FILE       a list of URLs; --targets FILE for those of vegeta
  -s, --script FILE     a script in Lua, as for wrk
      --no-keepalive    a new connection for each request
  -T, --timeout TIME    limit of a request [10s]
TLS, HTTP/2 and HTTP/3:
  -k, --insecure        accept any certificate
      --http2, --http3  speak this version; --streams N requests in flight
Output:
  -o, --output FILE     .json to keep the run, .html for a page with charts
      --latency         all percentiles
      --objective TEXT  'p99 < 10ms, errors < 0.1%'; exit code 1 if missed
  -q, --quiet           no progress; -v, --verbose for everything

Examples:
  brunt -c 100 -d 30s http://host/                  closed loop
  brunt -r 2k -d 30s --latency http://host/         open loop
  brunt find --objective 'p99 < 10ms' http://host/  highest rate that holds
  brunt sweep -c 1..1000:x2 http://host/            throughput by connections
  brunt compare http://old/ http://new/             which of two is faster
  brunt wrk -t2 -c100 -d30s http://host/            another tool's command line

Commands: serve, compare, sweep, find, tcp, report, merge, fleet, agent.
`brunt --help` lists all options, `brunt COMMAND --help` those of a command.
";

/// Commands to begin with, and what holds for all options.
pub(crate) const PROGRAM_HELP: &str = "\
    First steps (those with a URL need a server there, such as `brunt serve`):\n  \
    brunt                                           a first report, of brunt's own server\n  \
    brunt http://127.0.0.1:8080/                    as many requests as the server takes\n  \
    brunt -r 2k --latency http://127.0.0.1:8080/    2,000 per second, with all percentiles\n  \
    brunt -o run.html http://127.0.0.1:8080/        a page with charts, to share\n  \
    brunt -o old.json http://127.0.0.1:8080/        a run stored; then change the server\n  \
    brunt -o new.json http://127.0.0.1:8080/        and store another\n  \
    brunt compare old.json new.json                 what changed\n\
    brunt wrk ..., wrk2 ..., ab ..., weighttp ..., httperf ..., h2load ..., \
    tcpkali ..., nuttcp ... and oha ... take the command lines of these tools and print their \
    text (docs/drop-ins.md).\n\
    Durations: 500us, 10ms, 1.5s, 1m30s, 1d. Counts: 10k, 2m. Rates: 50k, 100/s, 60/m.\n\
    SSLKEYLOGFILE: the file that this variable names gets the keys of TLS connections, for \
    programs that decrypt captured packets.\n\
    Exit codes: 0 done; 1 an objective was missed, the server failed, or no request succeeded; \
    2 wrong usage, or set-up failed; 3 an invariant is broken: the figures cannot be trusted; \
    130 interrupted (what was measured is reported).";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn the_short_help_is_short_and_names_what_there_is() {
        assert!(SHORT_HELP.lines().count() <= 45);
        assert!(SHORT_HELP.lines().all(|line| line.chars().count() <= 80));
        let program = Arguments::command();
        let is_option = |name: &str| {
            let mut options = program.get_arguments();
            options.any(|option| option.get_long() == Some(name)) || name == "help"
        };
        let words = SHORT_HELP.split([' ', ',', ';', '`', '\n']);
        for name in words.filter_map(|word| word.strip_prefix("--")) {
            assert!(is_option(name), "--{name}");
        }
        let listed = SHORT_HELP.split_once("Commands: ").map(|(_, rest)| rest);
        let listed = listed.and_then(|rest| rest.split_once('.'));
        let (listed, _) = listed.expect("the commands");
        let commands: Vec<&str> = program.get_subcommands().map(|it| it.get_name()).collect();
        assert_eq!(listed.split(", ").collect::<Vec<_>>(), commands);
    }

    #[test]
    fn the_help_of_a_run_stays_readable() {
        let mut program = Arguments::command();
        program.build();
        let shown = program
            .get_arguments()
            .filter(|it| !it.is_positional() && !it.is_hide_set());
        assert!(shown.count() <= 75);
    }
}
