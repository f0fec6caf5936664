//! `--sessions`: users of a log, each with a connection of its own.

use crate::loads::MACHINERIES;
use crate::support::keeping::Keeping;
use crate::support::stored::Stored;

const LOG: &str = "# users\n/a think=0.02\n  /a1\n  /a2?q=1\n\
    /b method=POST contents='x=1&y=2'\n\n/c\n";

#[test]
fn each_session_has_a_connection() {
    let files = Stored::new();
    let log = files.write("log", LOG);
    for machinery in MACHINERIES {
        let server = Keeping::start();
        let load =
            format!("--sessions {log} --connection-rate 20 -d 800ms --warmup 0s -H X-A:1 --redact");
        let report = machinery.run(&load, &server.url("/"));
        let sessions = report.at("/agents/0/workers/0/generator/sessions");
        assert_eq!(sessions["failed"], 0, "{machinery:?}");
        let completed = sessions["completed"].as_u64().expect("a count");
        assert!(completed >= 2, "{machinery:?}: {sessions}");
        let sequences = server.sequences();
        for sequence in &sequences {
            let lines = sequence.iter().filter_map(|request| request.lines().next());
            let lines: Vec<_> = lines.collect();
            let expected: &[&str] = match lines[0] {
                "GET /c HTTP/1.1" => &["GET /c HTTP/1.1"],
                _ => &[
                    "GET /a HTTP/1.1",
                    "GET /a1 HTTP/1.1",
                    "GET /a2?q=1 HTTP/1.1",
                    "POST /b HTTP/1.1",
                ],
            };
            assert!(expected.starts_with(&lines), "{machinery:?}: {lines:?}");
            let mut posted = sequence.iter().skip(3);
            let is_whole = posted.all(|request| request.ends_with("\r\n\r\nx=1&y=2"));
            assert!(is_whole, "{sequence:?}");
            assert!(sequence[0].contains("X-A: 1\r\n"), "{sequence:?}");
        }
        let names = report.at("/names").as_array().expect("a list").iter();
        let names: Vec<_> = names.filter_map(|name| name["name"].as_str()).collect();
        assert_eq!(names, ["/a", "/a1", "/a2", "POST /b", "/c"]);
    }
}
