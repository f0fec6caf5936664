//! Programs that read ab's text read ours.

use brunt_dropin::ab::{Options, Seen, heading, report};

use crate::{FAILURES, NORMAL, groups, is_number, run};

/// What is printed of a stored run, as if it had been asked for so.
fn text(line: &str, stored: &[u8]) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let options = Options::parse("ab", &words).expect(line);
    heading(&options) + &report(&options, &run(stored), &Seen::default())
}

#[test]
fn expressions_match() {
    for stored in [NORMAL, FAILURES] {
        let text = text("-k -n 1000 -c 4 http://h/", stored);
        for expression in [
            r"Requests per second:\s+([\d.]+)",
            r"Time per request:\s+([\d.]+) \[ms\] \(mean\)",
            r"Time per request:\s+([\d.]+).*across all concurrent requests",
            r"Complete requests:\s+(\d+)",
            r"Failed requests:\s+(\d+)",
            r"Keep-Alive requests:\s+(\d+)",
            r"Transfer rate:\s+([\d.]+) \[Kbytes/sec\]",
            r"Time taken for tests:\s+([\d.]+) seconds",
            r"Total:\s+(\d+)\s+\d+\s+[\d.]+\s+\d+\s+\d+\n",
            r"\s+50%\s+([\d]+)",
            r"\s+90%\s+([\d]+)",
            r"100%\s+(\d+) \(longest request\)",
        ] {
            let found = groups(expression, &text).expect(expression);
            assert!(is_number(&found[0]), "{expression}: {found:?}");
        }
        // By the fourth word of a line, as awk counts.
        let rate = text
            .lines()
            .find(|line| line.starts_with("Requests per second"));
        let word = rate.and_then(|line| line.split_whitespace().nth(3));
        assert!(word.is_some_and(is_number), "{rate:?}");
        for name in ["Connect:", "Processing:", "Waiting:", "Total:"] {
            let is_row = |line: &&str| line.starts_with(name);
            let row = text.lines().find(is_row).expect(name);
            assert_eq!(row.split_whitespace().count(), 6, "{row}");
        }
        assert!(!text.to_lowercase().contains("nan"), "{text}");
    }
}
