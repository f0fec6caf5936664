//! `--qlog`: what QUIC does on one connection, as a file.

use crate::support::process::brunt;
use crate::support::serve::Serve;

#[test]
fn the_first_connection_is_logged_as_qlog() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Serve::start_secure(&directory.path().join("cert.pem"), &["--http3"]);
    let file = directory.path().join("first.sqlog");
    let line = |options: &str| {
        let certificate = server.certificate().display();
        let (file, url) = (file.display(), server.url(""));
        format!("--cacert {certificate} -c 3 -n 30 --qlog {file} {options} {url}")
    };
    let outcome = brunt(&line("--http3"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = std::fs::read_to_string(&file).expect("a log");
    let records: Vec<serde_json::Value> = text
        .split('\u{1e}')
        .skip(1)
        .map(|record| serde_json::from_str(record).expect(record))
        .collect();
    assert_eq!(records[0]["qlog_version"], "0.3");
    let count = |name: &str| records.iter().filter(|it| it["name"] == name).count();
    assert!(count("transport:datagrams_sent") > 1, "{text}");
    assert!(count("transport:datagrams_received") > 1, "{text}");
    // It began, and its handshake was complete, once.
    assert_eq!(count("connectivity:connection_state_updated"), 2, "{text}");
    let refused = brunt(&line(""));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("add --http3"), "{refused:?}");
    let missing = brunt("--http3 --qlog /nowhere/first.sqlog https://127.0.0.1:9/");
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(
        missing.stderr.contains("cannot write to /nowhere"),
        "{missing:?}"
    );
}
