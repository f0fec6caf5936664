//! Tests of the `brunt` binary from outside: what it prints, how it exits, and whether its counts
//! are those of the servers that it loads.
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits, and its servers run beside it"
)]

mod bad_input;
mod bandwidth;
mod ci_comment;
mod compare;
mod compare_servers;
mod compare_stored;
mod counts_brunt;
mod counts_nginx;
mod counts_redis;
mod documents;
mod dropin_h2load;
mod dropin_lines;
mod dropin_nuttcp;
mod dropin_oha;
mod dropin_scripts;
mod dropin_tcpkali;
mod dropin_weighttp;
mod dropin_wrk;
mod find;
mod fleet;
mod fleet_faults;
mod fleet_launch;
mod fleet_rounds;
mod fleet_scripts;
mod foreign_text;
mod generated;
mod habits;
mod hostile;
mod hostile_files;
mod inputs;
mod large_inputs;
mod latency_files;
mod library;
mod lists;
mod loads;
mod merge;
mod messages;
mod objectives;
mod options;
mod outcomes;
mod output;
mod pages;
mod placement;
mod process_limits;
mod real_http2;
mod real_http3;
mod real_tls;
mod refusing_streams;
mod replays;
mod robustness;
mod scripts;
mod secrets;
mod serve;
mod signals;
mod summary;
mod support;
mod sweep;
mod watch;
mod websocket;
mod words;
