//! `brunt weighttp`: its requests, its JSON, its text of older versions, its exit codes.

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary};

fn weighttp(words: &[&str], url: &str) -> Outcome {
    let mut command = binary();
    command.arg("weighttp");
    command.args(words.iter().map(|word| word.replace("URL", url)));
    Process::start(command).wait()
}

#[test]
fn the_report_is_json_that_adds_up() {
    let server = Keeping::start();
    let url = format!("http://{}", server.address);
    let words = [
        "-q", "-k", "-n", "40", "-c", "4", "-t", "2", "-e", "-", "URL/x",
    ];
    let outcome = weighttp(&words, &url);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (csv, json) = outcome.stdout.split_once('{').expect("JSON");
    assert_eq!(csv.lines().count(), 102, "{csv}");
    let report: serde_json::Value = serde_json::from_str(&format!("{{{json}")).expect("JSON");
    let number = |pointer: &str| report.pointer(pointer).and_then(|it| it.as_u64());
    for (pointer, expected) in [
        ("/request_counts/started", 40),
        ("/request_counts/retired", 40),
        ("/request_counts/keep-alive", 36),
        ("/response_counts/pass", 40),
        ("/response_counts/fail", 0),
        ("/status_codes/2xx", 40),
        ("/traffic/bytes_body", 40 * 14),
        ("/connect_times/num", 4),
        ("/total_times/num", 40),
    ] {
        assert_eq!(number(pointer), Some(expected), "{pointer}: {outcome:?}");
    }
    assert_eq!(outcome.stderr.matches("brunt: ").count(), 1, "{outcome:?}");
    let requests: Vec<String> = server.requests().into_iter().collect();
    let expected = "GET /x HTTP/1.1\r\nHost: ADDRESS\r\nUser-Agent: weighttp/0.5\r\n\r\n";
    assert_eq!(requests, [expected]);
}

#[test]
fn the_text_of_older_versions_is_chosen_by_switch_or_variable() {
    let server = Keeping::start();
    let url = format!("http://{}/", server.address);
    let by_switch = weighttp(&["--text", "-n", "3", "URL"], &url);
    let mut command = binary();
    command.env("BRUNT_WEIGHTTP", "0.4");
    command.args(["weighttp", "-n", "3", &url]);
    let by_variable = Process::start(command).wait();
    for outcome in [by_switch, by_variable] {
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        for line in [
            "starting benchmark...\nspawning thread #1: 1 concurrent requests, 3 total requests\n",
            "progress: 100% done\n\nfinished in 0 sec, ",
            "\nrequests: 3 total, 3 started, 3 done, 3 succeeded, 0 failed, 0 errored\n",
            "\nstatus codes: 3 2xx, 0 3xx, 0 4xx, 0 5xx\ntraffic: ",
        ] {
            assert!(outcome.stdout.contains(line), "{line}\n{outcome:?}");
        }
    }
}

#[test]
fn pipelined_requests_share_a_connection() {
    let server = Keeping::start();
    let url = format!("http://{}/", server.address);
    let outcome = weighttp(&["-q", "-n", "12", "-K", "4", "URL"], &url);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let is_one = outcome
        .stdout
        .contains("\"connect_times\": {\n     \"num\":         1,\n");
    assert!(is_one, "{outcome:?}");
}

#[test]
fn what_cannot_run_ends_as_in_weighttp() {
    for (words, code, stderr) in [
        (&["-V"][..], 0, ""),
        (&["-h"], 0, ""),
        (&[], 1, "\nerror: missing URI argument\n\n"),
        (
            &["-n", "2", "-c", "3", "h/"],
            1,
            "\nerror: concur_count > req_count\n\n",
        ),
        (
            &["-n", "2", "http://nobody.invalid/"],
            1,
            "\nerror: could not resolve hostname: nobody.invalid\n\n",
        ),
    ] {
        let outcome = weighttp(words, "");
        assert_eq!(
            (outcome.code, &*outcome.stderr),
            (Some(code), stderr),
            "{words:?}"
        );
        let has_help = outcome.stdout.contains("weighttp <options> <URI>\n");
        assert_eq!(has_help, words != ["-V"], "{words:?}");
    }
    let outcome = weighttp(
        &["--explain", "-n", "9", "-k", "http://nobody.invalid/"],
        "",
    );
    let first = outcome.stdout.lines().next();
    assert_eq!(first, Some("brunt -c 1 -n 9 -T 4s http://nobody.invalid/"));
}
