//! `brunt zrk`: its requests, its JSON, text, rows and files, its exit codes.

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary};
use crate::support::serve::Serve;

fn start(words: &str, url: &str) -> Process {
    let mut command = binary();
    command.arg("zrk");
    command.args(
        words
            .split_whitespace()
            .map(|word| word.replace("URL", url)),
    );
    Process::start(command)
}

fn zrk(words: &str, url: &str) -> Outcome {
    start(words, url).wait()
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn count(value: &Value, pointer: &str) -> u64 {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{pointer} of {value}"))
}

fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} of {value}"))
}

#[test]
fn the_json_has_what_the_boards_read() {
    let server = Serve::start();
    let words = "--plain --closed -t 2 -c 8 -d 400ms -m GET --timeout 8s --format json URL";
    let outcome = zrk(words, &server.url("/"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let found = json(&outcome.stdout);
    let requests = count(&found, "/requests");
    assert!(requests > 0);
    assert_eq!(count(&found, "/status_codes/2xx"), requests);
    // Those in flight at the end are not counted, one per connection.
    let received = server.settled().requests;
    assert!(
        (requests..=requests + 8).contains(&received),
        "{received}: {found}"
    );
    for pointer in [
        "/errors/connect",
        "/errors/read",
        "/errors/write",
        "/errors/timeout",
        "/errors/deadline",
        "/errors/non_2xx_3xx",
        "/max_schedule_lag_us",
        "/status_codes/5xx",
    ] {
        assert_eq!(count(&found, pointer), 0, "{pointer}: {found}");
    }
    assert_eq!(count(&found, "/config/launched"), 8);
    assert_eq!(found["config"]["closed"], true);
    assert_eq!(number(&found, "/rate_ratio"), 1.0);
    let per_s = requests as f64 / number(&found, "/duration_s");
    assert!((number(&found, "/achieved_rate") / per_s - 1.0).abs() < 0.01);
    let times = ["min", "p50", "p75", "p90", "p99", "p99_9", "p99_99", "max"];
    let times = times.map(|name| count(&found, &format!("/latency_us/{name}")));
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    assert!(number(&found, "/latency_us/mean") > 0.0);
    let histogram = found["latency_histogram"].as_str();
    assert!(
        histogram.is_some_and(|text| text.starts_with("HIST")),
        "{found}"
    );
}

#[test]
fn requests_are_zrks() {
    let server = Keeping::start();
    let url = format!("http://{}", server.address);
    let same = "-t 1 -c 1 -d 200ms -R 20 --format json";
    assert_eq!(zrk(&format!("{same} URL/a?b=1"), &url).code, Some(0));
    let post = format!("{same} -m POST -b {{\"x\":1}} -H Host:other -H X-A:b URL/p");
    assert_eq!(zrk(&post, &url).code, Some(0));
    let expected = [
        "GET /a?b=1 HTTP/1.1\r\nHost: ADDRESS\r\nUser-Agent: zrk\r\nConnection: \
         keep-alive\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: other\r\nX-A: b\r\nUser-Agent: zrk\r\nConnection: \
         keep-alive\r\nContent-Length: 7\r\n\r\n{\"x\":1}",
    ];
    assert_eq!(server.requests(), expected.map(str::to_owned).into());
}

#[test]
fn rows_add_up_to_the_report() {
    let server = Serve::start();
    let directory = directory();
    let file = |name: &str| directory.path().join(name);
    let words = format!(
        "-t 2 -c 4 -R 200:400 -d 1s --interval 250ms --latency --timeseries {} --hdr {} \
         --timeseries-histogram URL",
        file("rows").display(),
        file("hdr").display()
    );
    let outcome = zrk(&words, &server.url("/"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = &outcome.stdout;
    let rows = std::fs::read_to_string(file("rows")).expect("it was written");
    let rows: Vec<Value> = rows.lines().map(json).collect();
    assert!((3..=5).contains(&rows.len()), "{rows:?}");
    let sum: u64 = rows.iter().map(|row| count(row, "/requests")).sum();
    assert!(
        text.contains(&format!("\n  {sum} requests in 1.00s, ")),
        "{sum}: {text}"
    );
    let lines = text.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(lines, rows.len(), "{text}");
    for words in [
        " req/s  ·  ",
        "\n  ramp 200 → 400 req/s  ·  ",
        "\n  latency (coordinated-omission corrected)\n    p50    ",
        "\n  Detailed Percentile spectrum:\n       0.0000%  ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let last = rows.last().expect("there are some");
    assert!(number(last, "/target_rate") > 330.0, "{last}");
    let histogram = last["latency_histogram"].as_str();
    assert!(
        histogram.is_some_and(|text| text.starts_with("HIST")),
        "{last}"
    );
    let hdr = std::fs::read_to_string(file("hdr")).expect("it was written");
    assert!(
        hdr.starts_with("       Value     Percentile TotalCount "),
        "{hdr}"
    );
    assert!(
        hdr.contains("#[Buckets =           16, SubBuckets     =         2048]"),
        "{hdr}"
    );
}

#[test]
fn rows_on_standard_output_leave_the_report_to_standard_error() {
    let server = Serve::start();
    let words = "-c 2 -R 100 -d 300ms --interval 100ms --timeseries - URL";
    let outcome = zrk(words, &server.url("/"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        outcome
            .stdout
            .lines()
            .map(json)
            .all(|row| row["t"].is_f64()),
        "{outcome:?}"
    );
    assert!(
        outcome.stderr.contains(" requests in 0.30s, "),
        "{outcome:?}"
    );
}

#[test]
fn exit_codes_are_zrks() {
    let server = Serve::start();
    for (words, path, code, said) in [
        ("--slo-p99 1us URL", "/", 3, "zrk: SLO breach: p99 "),
        (
            "--max-error-rate 1% URL",
            "/status/503",
            3,
            "exceeds limit 0.0100\n",
        ),
        ("--max-error-rate 1% --slo-p99 9s URL", "/", 0, "brunt: "),
        (
            "--closed -R 1:2 URL",
            "/",
            2,
            "zrk: --closed is incompatible with a ramp",
        ),
        (
            "-b @/nowhere URL",
            "/",
            2,
            "zrk: cannot read body from /nowhere: ",
        ),
        ("--script /nowhere.lua URL", "/", 2, "/nowhere.lua"),
        (
            "http://127.0.0.1:1/",
            "",
            1,
            "zrk: no request completed; connecting failed: Conn",
        ),
    ] {
        let words = format!("-c 2 -t 1 -d 200ms -R 50 {words}");
        let outcome = zrk(&words, &server.url(path));
        assert_eq!(outcome.code, Some(code), "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(said), "{words}: {outcome:?}");
    }
}

#[test]
fn an_interrupted_run_is_reported() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let server = Serve::start();
        let process = start("-c 2 -R 50 -d 60s --format json URL", &server.url("/"));
        server.wait_for_requests(5);
        process.signal(signal);
        let outcome = process.wait();
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        let found = json(&outcome.stdout);
        assert_eq!(found["interrupted"], true, "{found}");
        assert!(number(&found, "/duration_s") < 60.0, "{found}");
    }
}

#[test]
fn scripts_make_the_requests() {
    let server = Keeping::start();
    let directory = directory();
    let script = directory.path().join("x.lua");
    let text = "function init(args) path = args[1] end\n\
                function request() return wrk.format('PUT', path) end\n\
                function done(summary) io.write('done ', summary.requests > 0 and 1 or 0) end\n";
    std::fs::write(&script, text).expect("it is ours");
    let words = format!(
        "-c 1 -t 1 -R 20 -d 200ms --script {} URL/ /s",
        script.display()
    );
    let outcome = zrk(&words, &format!("http://{}", server.address));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.ends_with("done 1"), "{outcome:?}");
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|it| it.starts_with("PUT /s HTTP/1.1\r\n")),
        "{requests:?}"
    );
}

#[test]
fn what_is_too_late_misses_the_deadline() {
    let server = Keeping::start();
    let url = format!("http://{}", server.address);
    let words = "-c 1 -t 1 -R 400 -d 400ms --deadline 100ms --format json URL/";
    let outcome = zrk(words, &url);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let found = json(&outcome.stdout);
    assert!(count(&found, "/errors/deadline") > 0, "{found}");
    assert_eq!(count(&found, "/errors/timeout"), 0, "{found}");
    assert!(number(&found, "/error_rate") > 0.0, "{found}");
    assert!(count(&found, "/latency_us/max") <= 101_000, "{found}");
}
