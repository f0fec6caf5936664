//! What `brunt --help` says below the options.

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
