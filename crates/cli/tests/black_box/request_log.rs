//! `--request-log`: a line for each request, which agree with the report.

use std::collections::BTreeSet;

use crate::support::process::brunt;
use crate::support::serve::Serve;

/// The rows of a log by their columns.
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().expect("a header").clone();
    assert_eq!(
        header.iter().collect::<Vec<_>>(),
        [
            "due_ns",
            "sent_ns",
            "first_byte_ns",
            "done_ns",
            "status",
            "failure",
            "head_bytes",
            "body_bytes",
            "connection",
            "opening_us",
            "request",
        ]
    );
    let rows = reader.records();
    rows.map(|row| row.expect("a row").iter().map(str::to_owned).collect())
        .collect()
}

#[test]
fn each_request_has_a_line() {
    let server = Serve::start();
    for (load, name) in [
        ("-n 40 -c 4", "/bytes/1"),
        ("-d 400ms --warmup 100ms -r 200 --format json", "/"),
    ] {
        let url = server.url(name);
        let outcome = brunt(&format!("-q --request-log - {load} {url}"));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let rows = rows(&outcome.stdout);
        assert!(rows.len() >= 40, "{outcome:?}");
        let number = |text: &String| text.parse::<u64>().expect("a number");
        for row in &rows {
            assert!(number(&row[0]) <= number(&row[1]), "{row:?}");
            assert!(number(&row[1]) < number(&row[2]), "{row:?}");
            assert!(number(&row[2]) <= number(&row[3]), "{row:?}");
            assert_eq!((&*row[4], &*row[5], &*row[10]), ("200", "", name));
        }
        let done: Vec<u64> = rows.iter().map(|row| number(&row[3])).collect();
        assert!(done.is_sorted());
        if load.starts_with("-n") {
            assert_eq!(rows.len(), 40);
            let opened = rows.iter().filter(|row| !row[9].is_empty());
            assert_eq!(opened.count(), 4);
            let connections: BTreeSet<_> = rows.iter().map(|row| row[8].clone()).collect();
            assert_eq!(connections.len(), 4);
        }
    }
}

#[test]
fn a_log_has_a_limit_that_is_said_before_the_load() {
    let outcome = brunt("-n 20m --request-log /dev/null http://127.0.0.1:1/");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let words = "--request-log holds 16777216 requests (1 GiB), and -n asks for 20000000";
    assert!(outcome.stderr.contains(words), "{outcome:?}");
}
