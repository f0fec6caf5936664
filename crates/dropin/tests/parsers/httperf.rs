//! Programs that read httperf's text read ours.

use brunt_dropin::httperf::{Options, heading, report};
use brunt_judge::RunFigures;
use brunt_load::sessions::{Lifetimes, SessionFigures};

use crate::{FAILURES, NORMAL, groups, is_number, run};

/// What is printed of a stored run, as if it had been asked for so.
fn text(line: &str, stored: &[u8]) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let options = Options::parse("httperf", &words).expect(line);
    heading(&options) + &report(&options, &run(stored), &sessions())
}

/// Three sessions with a connection of 151, 153 and 155 ms and two replies each, and one that
/// failed.
fn sessions() -> SessionFigures {
    let mut lifetimes = Lifetimes {
        count: 3,
        min_ns: 151_000_000,
        max_ns: 155_000_000,
        sum_ns: 459_000_000,
        squares_ms: 70_235.0,
        by_ms: vec![0; 156],
    };
    for ms in [151, 153, 155] {
        lifetimes.by_ms[ms] += 1;
    }
    let mut sessions = SessionFigures {
        lifetimes,
        connections: 3,
        completed_ns: 459_000_000,
        failed_ns: 151_000_000,
        lengths: vec![1, 0, 3],
        replies: 6,
        response_ns: 66_000_000,
        transfer_ns: 3_000_000,
        ..SessionFigures::default()
    };
    sessions.counts.begun = 4;
    sessions.counts.completed = 3;
    sessions.counts.failed = 1;
    sessions
}

/// The numbers that each of the expressions finds first; they are searched in the text as a whole.
fn numbers(expressions: &[&str], text: &str) -> Vec<Vec<String>> {
    let all = expressions.iter().map(|expression| {
        let found = groups(&format!("(?m){expression}"), text);
        let found = found.unwrap_or_else(|| panic!("{expression}\n{text}"));
        assert!(
            found.iter().all(|it| is_number(it)),
            "{expression}: {found:?}"
        );
        found
    });
    all.collect()
}

/// stresser's and performatron's httperf.rb: an expression for each line.
#[test]
fn stresser_and_performatron_find_their_figures() {
    for stored in [NORMAL, FAILURES] {
        let text = text("--server h --num-conns 10 --rate 5", stored);
        let found = numbers(
            &[
                concat!(
                    r"^Total: connections (\d+) requests (\d+)",
                    r" replies (\d+) test-duration (\d+\.\d+) s"
                ),
                r"^Connection rate: (\d+\.\d)[^\d]+(\d+\.\d)[^\d]+(\d+)[^\d]",
                concat!(
                    r"^Connection time .*min (\d+\.\d) avg (\d+\.\d)",
                    r" max (\d+\.\d) median (\d+\.\d) stddev (\d+\.\d)"
                ),
                r"^Request rate: (\d+\.\d)",
                r"^Reply rate .*min (\d+\.\d) avg (\d+\.\d) max (\d+\.\d) stddev (\d+\.\d)",
                r"^Reply time .* response (\d+\.\d)",
                r"^Reply status.+ 1xx=(\d+) 2xx=(\d+) 3xx=(\d+) 4xx=(\d+) 5xx=(\d+)",
                r"^Net I/O: (\d+\.\d)",
                r"^Errors: total (\d+)",
            ],
            &text,
        );
        assert_eq!(found[2], ["151.0", "153.0", "155.0", "153.5", "2.0"]);
        assert_eq!(found[5], ["11.0"]);
        let run = run(stored);
        let replies = run.summary().lifetime.replies;
        let statuses: u64 = found[6].iter().map(|it| it.parse::<u64>().expect(it)).sum();
        assert_eq!(statuses, replies.total(), "{text}");
        assert_eq!(found[0][2], replies.total().to_string(), "{text}");
    }
}

/// autobench: words by their place on a line, after it has been found by how it begins.
#[test]
fn autobench_finds_its_figures() {
    let text = text("--hog --server h --num-conns 10 --rate 5", NORMAL);
    numbers(
        &[
            r"^Total: connections (\d+)",
            r"^Connection rate: (\d+\.\d)",
            r"^Request rate: (\d+\.\d)",
            concat!(
                r"^Reply rate \[replies/s\]: min (\d+\.\d)",
                r" avg (\d+\.\d) max (\d+\.\d) stddev (\d+\.\d)"
            ),
            r"^Reply time \[ms\]: response (\d+\.\d)",
            r"^Net I/O: (\d+\.\d)",
            concat!(
                r"^Errors: total (\d+) client-timo (\d+) socket-timo",
                r" (\d+) connrefused (\d+) connreset (\d+)"
            ),
            r"^Errors: fd-unavail (\d+) addrunavail (\d+) ftab-full (\d+) other (\d+)",
        ],
        &text,
    );
}

/// httperfrb and its translations to other languages: an expression for each figure, some with
/// what is behind it.
#[test]
fn libraries_find_each_figure() {
    let text = text("--server h --num-conns 10 -v", NORMAL);
    let of_line = numbers(
        &[
            r"^httperf: maximum number of open descriptors = (\d+)$",
            r"^Maximum connect burst length: ([0-9]*?\.?[0-9]+)$",
            r"^Connection time \[ms\]: connect ([0-9]*?\.?[0-9]+)$",
            r"^Connection length \[replies/conn\]: ([0-9]*?\.?[0-9]+)$",
            r"^Request rate: .+ req/s \(([0-9]*?\.?[0-9]+) ms/req\)$",
            r"^Request size \[B\]: ([0-9]*?\.?[0-9]+)$",
            r"^Reply rate .+ stddev [0-9.]+ \(([0-9]+) samples\)$",
            r"^Reply time \[ms\]: response [0-9.]+ transfer ([0-9]*?\.?[0-9]+)$",
            concat!(
                r"^Reply size \[B\]: header ([0-9.]+) content",
                r" ([0-9.]+) footer ([0-9.]+) \(total ([0-9.]+)\)$"
            ),
            concat!(
                r"^CPU time \[s\]: user ([0-9.]+) system ([0-9.]+) \(user",
                r" ([0-9.]+)% system ([0-9.]+)% total ([0-9.]+)%\)$"
            ),
            r"^Net I/O: ([0-9.]+) KB/s \(([0-9.]+)\*10\^6 bps\)$",
        ],
        &text,
    );
    assert_eq!(of_line[7], ["0.5"]);
}

#[test]
fn sessions_have_their_lines() {
    let text = text("--server h --wsess 4,2,0.1", NORMAL);
    let found = numbers(
        &[
            concat!(
                r"^Session rate \[sess/s\]: min ([\d.]+) avg ([\d.]+)",
                r" max ([\d.]+) stddev ([\d.]+) \((\d+)/(\d+)\)$"
            ),
            r"^Session: avg ([\d.]+) connections/session$",
            r"^Session lifetime \[s\]: ([\d.]+)$",
            r"^Session failtime \[s\]: ([\d.]+)$",
            r"^Session length histogram: (\d+) (\d+) (\d+)$",
        ],
        &text,
    );
    assert_eq!(found[0][4..], ["3", "4"]);
    assert_eq!(found[1..4], [["1.00"], ["0.2"], ["0.2"]]);
    assert_eq!(found[4], ["1", "0", "3"]);
}
