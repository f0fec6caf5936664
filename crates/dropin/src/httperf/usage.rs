//! What httperf prints about itself.

/// The usage text.
pub(super) const USAGE: &str = "\
Usage: httperf [-hdvV] [--add-header S] [--burst-length N] [--client N/N]
\t[--close-with-reset] [--debug N] [--failure-status N]
\t[--help] [--hog] [--http-version S] [--max-connections N]
\t[--max-piped-calls N] [--method S] [--no-host-hdr]
\t[--num-calls N] [--num-conns N] [--period [d|u|e]T1[,T2]]
\t[--port N] [--print-reply [header|body]] [--print-request [header|body]]
\t[--rate X] [--recv-buffer N] [--retry-on-failure] [--send-buffer N]
\t[--server S] [--server-name S] [--session-cookies]
\t[--ssl] [--ssl-ciphers L] [--ssl-no-reuse]
\t[--think-timeout X] [--timeout X] [--uri S] [--verbose] [--version]
\t[--wlog y|n,file] [--wsess N,N,X] [--wsesslog N,X,file]
\t[--wset N,X]
";

/// The version, which runs print that are asked for it.
pub(super) const VERSION: &str =
    "httperf: httperf-0.9.0 compiled without DEBUG without TIME_SYSCALLS.\n";
