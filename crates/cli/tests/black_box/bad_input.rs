//! What brunt refuses: exit code 2, one clear message, nothing sent, no file touched.

use std::ffi::OsStr;
use std::path::Path;

use crate::support::listener::Port;
use crate::support::process::{Outcome, Process, binary, brunt, brunt_with};
use crate::support::serve::Serve;

/// Checks exit code and message: it comes alone, holds all of `words`, and says nothing twice.
fn assert_refused(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(outcome.stdout, "", "standard output");
    let message = outcome.stderr.trim_end();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
    for bad in ["panicked", "backtrace", "Error {"] {
        assert!(!message.contains(bad), "{message}");
    }
    // Ours take one line; those of the argument parser may add a tip and the usage.
    let first = message.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("error: ") || message.lines().count() == 1,
        "{message}"
    );
    let clauses: Vec<_> = first.split(": ").collect();
    let repeated = clauses
        .iter()
        .enumerate()
        .any(|(index, clause)| clause.len() > 12 && clauses[..index].contains(clause));
    assert!(!repeated, "says the same twice: {message}");
}

/// Runs with `arguments` and an output file that does not exist, then with one that does.
fn refused<A: AsRef<OsStr>>(arguments: &[A], words: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("run.json");
    let run = || {
        let mut command = binary();
        command.args(arguments).arg("--output").arg(&path);
        let outcome = Process::start(command).wait();
        assert_refused(&outcome, words);
    };
    run();
    assert!(!path.exists(), "an output file was left behind");
    std::fs::write(&path, "kept").expect("the directory is ours");
    run();
    let text = std::fs::read_to_string(&path).expect("it was there before");
    assert_eq!(text, "kept", "the output file was touched");
}

/// Runs with `arguments` and the URL of a server. Brunt must refuse them, and must not have sent
/// any request.
fn refused_before_load(arguments: &[&str], words: &[&str]) {
    let server = Serve::start();
    let url = server.url("/");
    refused(&[arguments, &[url.as_str()]].concat(), words);
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn a_summary_of_several_runs() {
    for words in ["sweep -c 1,2", "compare http://127.0.0.1:1/"] {
        let words: Vec<&str> = words.split(' ').chain(["--format", "summary"]).collect();
        refused_before_load(&words, &["--format summary is of one run", "json or csv"]);
    }
}

#[test]
fn an_unknown_scheme() {
    refused(&["ftp://127.0.0.1/"], &["ftp", "http"]);
}

#[test]
fn text_that_is_no_url() {
    refused(&["http://127.0.0.1:99999/"], &["99999", "port"]);
    refused(&["http://"], &["http[s]://HOST"]);
}

#[test]
fn a_user_name_in_the_url() {
    for url in [
        "http://user:hidden@127.0.0.1/",
        "http://user:hidden@127.0.0.1:99999/",
        "ftp://user:hidden@127.0.0.1/",
    ] {
        for arguments in [&[url][..], &["--verify-url", url, "http://127.0.0.1/"]] {
            refused(arguments, &["***@127.0.0.1"]);
            assert!(!brunt_with(arguments).stderr.contains("hidden"), "{url}");
        }
    }
    refused(
        &["http://user:hidden@127.0.0.1/"],
        &["user name", "-u USER"],
    );
}

#[test]
fn a_host_that_cannot_be_resolved() {
    refused(
        &["http://no-such-host.invalid/"],
        &["no-such-host.invalid", "resolve"],
    );
}

#[test]
fn a_port_that_refuses() {
    let refusing = Port::refusing();
    let port = refusing.address.port();
    let url = format!("http://127.0.0.1:{port}/");
    refused(&[url], &[&format!("127.0.0.1:{port}"), "refused"]);
}

#[test]
fn no_connections() {
    refused_before_load(&["-c", "0"], &["--connections", "at least 1"]);
}

#[test]
fn no_workers() {
    refused_before_load(&["-t", "0"], &["--threads", "at least 1"]);
    refused_before_load(&["-t", "4097"], &["--threads", "4096 at most"]);
}

#[test]
fn no_requests() {
    refused_before_load(&["-n", "0"], &["--requests", "at least 1"]);
}

#[test]
fn more_workers_than_connections() {
    refused_before_load(
        &["-t", "3", "-c", "2"],
        &["3 workers", "2 connection", "-t 2"],
    );
}

#[test]
fn more_workers_than_cpus() {
    refused_before_load(
        &["-t", "4000", "-c", "4000"],
        &["4000 workers", "CPUs", "--oversubscribe"],
    );
}

#[test]
fn a_header_without_a_colon() {
    refused_before_load(&["-H", "nocolon"], &["nocolon", "Name: value"]);
}

#[test]
fn a_header_name_that_is_none() {
    refused_before_load(&["-H", "bad name: x"], &["header", "bad name"]);
}

#[test]
fn a_header_that_smuggles_in_another() {
    for field in ["A: b\r\nC: d", "A: b\nC: d", "A: b\rC: d", "A\r\nB: c"] {
        refused_before_load(&["-H", field], &["header"]);
    }
}

#[test]
fn a_method_that_is_none() {
    refused_before_load(&["-m", "GE T"], &["method", "GE T"]);
}

#[test]
fn a_number_of_streams_in_place_of_a_method() {
    refused_before_load(&["-m", "100"], &["--method", "--streams 100"]);
}

#[test]
fn a_length_that_contradicts_the_body() {
    refused_before_load(&["-H", "Content-Length: 5"], &["Content-Length", "0 bytes"]);
}

#[test]
fn a_body_file_that_is_missing() {
    refused_before_load(
        &["--body", "@/nonexistent/body"],
        &["/nonexistent/body", "No such file"],
    );
}

#[test]
fn a_body_file_that_is_a_directory() {
    refused_before_load(&["--body", "@/"], &["body", "irectory"]);
}

#[test]
fn two_bodies() {
    refused_before_load(&["-b", "x", "-b", "y"], &["--body", "multiple times"]);
}

#[test]
fn an_unknown_option_gets_a_suggestion() {
    refused_before_load(&["--conections", "3"], &["--conections", "'--connections'"]);
}

#[test]
fn a_duration_that_is_none() {
    for typed in ["10x", "s", "-1s", "1s1"] {
        let option = format!("--duration={typed}");
        refused_before_load(&[&option], &["--duration", typed, "10ms"]);
    }
    refused_before_load(&["-d", "0s"], &["--duration", "longer than 0"]);
}

#[test]
fn a_source_address_that_is_none() {
    refused_before_load(
        &["--source-address", "300.1.1.1"],
        &["--source-address", "300.1.1.1"],
    );
}

#[test]
fn a_source_address_that_is_not_local() {
    // Of a range for documentation (RFC 5737).
    refused_before_load(
        &["--source-address", "192.0.2.1"],
        &["192.0.2.1", "--source-address"],
    );
}

#[test]
fn a_source_address_of_another_family() {
    refused_before_load(&["--source-address", "::1"], &["::1", "source"]);
}

#[test]
fn a_unix_socket_that_is_missing() {
    refused(
        &["--unix-socket", "/nonexistent/socket", "http://localhost/"],
        &["/nonexistent/socket", "No such file"],
    );
}

#[test]
fn more_connections_than_ports() {
    refused_before_load(
        &["-t", "1", "-c", "200000", "--source-address", "127.0.0.1"],
        &["200000", "local ports", "--source-address"],
    );
}

#[test]
fn more_connections_than_descriptors() {
    let server = Serve::start();
    let script = format!(
        "ulimit -n 200; exec '{}' --backend epoll -t 1 -c 1000 {}",
        env!("CARGO_BIN_EXE_brunt"),
        server.url("/")
    );
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(script);
    let outcome = Process::start(command).wait();
    assert_refused(&outcome, &["file descriptors", "200", "ulimit -n"]);
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn a_new_connection_per_request_with_pipelining() {
    refused_before_load(
        &["--no-keepalive", "--pipeline", "2"],
        &["--no-keepalive", "--pipeline"],
    );
}

#[test]
fn an_output_in_a_directory_that_is_missing() {
    let server = Serve::start();
    let outcome = brunt(&format!("-o /nonexistent/run.json {}", server.url("/")));
    assert_refused(&outcome, &["/nonexistent/run.json", "No such file"]);
    assert_eq!(
        server.counters().connections_accepted,
        1,
        "only the one that asks"
    );
}

#[test]
fn an_output_that_is_a_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let server = Serve::start();
    let url = server.url("/");
    let outcome = brunt_with(&[OsStr::new("-o"), path.as_os_str(), OsStr::new(&url)]);
    let name = path.to_str().expect("a path in UTF-8");
    assert_refused(&outcome, &[name, "irectory"]);
    assert_eq!(
        server.counters().connections_accepted,
        1,
        "only the one that asks"
    );
}

#[test]
fn an_address_to_serve_on_that_is_not_local() {
    let outcome = brunt("serve --listen 192.0.2.1:0");
    assert_refused(&outcome, &["192.0.2.1", "listen"]);
}

#[test]
fn an_address_to_serve_on_that_is_taken() {
    let taken = Port::refusing();
    let port = taken.address.port();
    let outcome = brunt(&format!("serve --listen 127.0.0.1:{port}"));
    assert_refused(&outcome, &[&format!("127.0.0.1:{port}"), "in use"]);
}

#[test]
fn a_unix_socket_to_serve_on_that_exists() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("socket");
    std::fs::write(&path, "").expect("the directory is ours");
    let outcome = brunt_with(&[
        OsStr::new("serve"),
        OsStr::new("--unix-socket"),
        path.as_ref(),
    ]);
    assert_refused(&outcome, &["socket", "in use"]);
    assert!(
        Path::new(&path).exists(),
        "what was there is not ours to remove"
    );
}

#[test]
fn a_rate_that_is_none() {
    for typed in ["0", "-5", "-5k", "abc", "1e3", "5/x", "nan", "2000m", ""] {
        for option in ["--rate", "--connection-rate"] {
            refused_before_load(&[option, typed], &[option, "is not a rate", "100/s"]);
        }
    }
}

#[test]
fn stages_that_are_none() {
    for typed in [
        "10s",
        "10s:",
        "10s:1k..",
        "1s:5,",
        "1s:5 2s:7",
        "-1s:5",
        "1s:-5",
    ] {
        refused_before_load(
            &["--stages", typed],
            &["--stages", "is not a stage", "30s:5k"],
        );
    }
    refused_before_load(
        &["--stages", "1s:5,0s:7"],
        &["--stages", "stage 2", "longer"],
    );
    refused_before_load(
        &["--stages", "10s:0,1s:0..0"],
        &["--stages", "nothing ever arrives"],
    );
}

#[test]
fn arrivals_without_a_schedule() {
    for arguments in [
        &["--arrivals", "poisson"][..],
        &["--arrivals", "constant", "--connection-rate", "10"],
    ] {
        let words = [
            arguments[0],
            "--rate",
            "--stages",
            "--requests-per-connection",
        ];
        refused_before_load(arguments, &words);
    }
}

#[test]
fn a_seed_where_nothing_is_random() {
    for arguments in [&["--seed", "1"][..], &["--seed", "1", "-H", "A: {{seq}}"]] {
        let words = [
            "nothing of this load is",
            "a rate",
            "--think-time",
            "--order random",
        ];
        refused_before_load(arguments, &words);
    }
}

#[test]
fn placeholders_that_are_not_filled_in() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("the directory is ours");
        path.display().to_string()
    };
    let sessions = file("sessions", "/a\n/b?id={{seq}}\n");
    let body = file("body", "/a method=POST contents='{{now}}'\n");
    let targets = file("targets", "GET /a\nAuthorization: Bearer @env:TOKEN\n");
    let fields = format!("@{}", file("fields", "Authorization: Bearer @env:TOKEN\n"));
    for (arguments, words) in [
        (["-b", "{\"id\": \"{{now}}\"}"], ["`{{now}}`", "{{uuid}}"]),
        (["-H", "X: {{ $guid }}"], ["`{{ $guid }}`", "\\{{"]),
        (["--sessions", &sessions], ["line 2", "{{seq}}"]),
        (["--sessions", &body], ["line 1", "`{{now}}`"]),
        (["--targets", &targets], ["line 2", "@env:"]),
        (["-H", &fields], ["line 1", "@env:"]),
        (["-b", "token=@env:TOKEN"], ["-b @FILE", "@env:"]),
        (["--seq-from", "5"], ["--seq-from", "{{seq}}"]),
        (["--seq-from", "101g"], ["--seq-from", "100g"]),
    ] {
        refused_before_load(&arguments, &words);
    }
}

#[test]
fn an_arrival_process_that_is_none() {
    refused_before_load(
        &["-r", "5", "--arrivals", "possion"],
        &["possion", "'poisson'", "constant", "uniform"],
    );
}

#[test]
fn load_models_that_exclude_each_other() {
    for arguments in [
        ["--rate=5", "--stages=1s:5"],
        ["--rate=5", "--connection-rate=5"],
        ["--stages=1s:5", "--connection-rate=5"],
        ["--stages=1s:5", "--duration=1s"],
        ["--rate=5", "--think-time=1s"],
        ["--stages=1s:5", "--think-time=1s"],
    ] {
        let names = arguments.map(|argument| argument.split('=').next().unwrap_or_default());
        refused_before_load(&arguments, &[names[0], names[1], "cannot be used with"]);
    }
}

#[test]
fn fewer_connections_at_most_than_from_the_start() {
    refused_before_load(
        &["-r", "5", "-c", "9", "--max-connections", "8"],
        &["--max-connections 8", "9 connections", "-c"],
    );
    for arguments in [
        &["--max-connections", "100"][..],
        &[
            "--max-connections",
            "100",
            "--connection-rate",
            "5",
            "--no-keepalive",
        ],
    ] {
        refused_before_load(arguments, &["--max-connections", "--rate", "-c"]);
    }
}

#[test]
fn other_values_of_the_open_loop_that_are_none() {
    for (option, typed, word) in [
        ("--seed", "x", "--seed"),
        ("--seed", "18446744073709551616", "--seed"),
        ("--max-connections", "0", "at least 1"),
        ("--spin", "yes", "auto"),
        ("--think-time", "soon", "10ms"),
    ] {
        refused_before_load(&["-r", "5", option, typed], &[option, typed, word]);
    }
}

#[test]
fn a_misspelt_option_of_the_open_loop_gets_a_suggestion() {
    for (typed, meant) in [
        ("--arivals", "'--arrivals'"),
        ("--stage", "'--stages'"),
        ("--thinktime", "'--think-time'"),
        ("--hdrlog", "'--hdr-log'"),
    ] {
        refused_before_load(&[typed, "5"], &[typed, meant]);
    }
}

#[test]
fn a_misspelt_option_of_tls_gets_a_suggestion() {
    for (typed, meant) in [("--stream", "'--streams'"), ("--ca-cert", "'--cacert'")] {
        refused_before_load(&[typed, "5"], &[typed, meant]);
    }
}

#[test]
fn two_versions_of_http() {
    for arguments in [
        &["--http1", "--http2"][..],
        &["--http1", "--streams=2"],
        &["--http2", "--pipeline=2"],
        &["--no-keepalive", "--streams=2"],
    ] {
        let names: Vec<_> = arguments
            .iter()
            .filter_map(|argument| argument.split('=').next())
            .collect();
        refused_before_load(arguments, &[names[0], names[1], "cannot be used with"]);
    }
}

#[test]
fn streams_without_http2() {
    refused_before_load(
        &["--streams", "10"],
        &["--streams", "HTTP/1.1", "--http2", "--pipeline"],
    );
    for typed in ["0", "x", "5g"] {
        refused_before_load(&["--http2", "--streams", typed], &["--streams", typed]);
    }
}

#[test]
fn tls_options_in_clear_text() {
    for arguments in [
        &["--sni", "name"][..],
        &["--cacert", "/nonexistent/ca.pem"],
        &["--cert", "/nonexistent/client.pem"],
        &["--tls-min", "1.3"],
        &["--tls-max", "1.2"],
        &["--tls-resume"],
    ] {
        let words = [arguments[0], "http://", "clear text", "https URL"];
        refused_before_load(arguments, &words);
    }
}

#[test]
fn tls_options_that_contradict_each_other() {
    let url = "https://127.0.0.1:1/";
    refused(
        &["--tls-min", "1.3", "--tls-max", "1.2", url],
        &["--tls-min 1.3", "--tls-max 1.2", "no version"],
    );
    refused(&["--key", "/nonexistent/key.pem", url], &["--cert"]);
    refused(
        &["-k", "--cacert", "/nonexistent/ca.pem", url],
        &["--insecure", "any certificate", "--cacert"],
    );
}

#[test]
fn tls_values_that_are_none() {
    for (option, typed, word) in [
        ("--tls-min", "1.1", "1.2"),
        ("--tls-max", "TLSv1.3", "1.3"),
        ("--sni", "https://name/", "host name"),
        ("--sni", "name:443", "host name"),
        ("--sni", "", "host name"),
    ] {
        refused(
            &[option, typed, "https://127.0.0.1:1/"],
            &[option, typed, word],
        );
    }
}

#[test]
fn a_spectrum_without_a_text_report() {
    refused_before_load(&["--latency", "--quiet"], &["--latency", "text", "--hgrm"]);
    let server = Serve::start();
    let outcome = brunt(&format!("--latency --format csv {}", server.url("/")));
    assert_refused(&outcome, &["--latency", "text", "--hgrm"]);
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn a_file_of_latencies_that_cannot_be_written() {
    for option in ["--hdr-log", "--hgrm"] {
        refused_before_load(
            &["-r", "5", option, "/nonexistent/file"],
            &["/nonexistent/file", "No such file"],
        );
        refused_before_load(&["-r", "5", option, "/"], &["irectory"]);
    }
}

#[test]
fn two_reports_in_one_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("file");
    let name = path.to_str().expect("a path in UTF-8");
    let server = Serve::start();
    for (first, second) in [("-o", "--hgrm"), ("--hdr-log", "--hgrm")] {
        let url = server.url("/");
        let outcome = brunt_with(&[first, name, second, name, &url]);
        assert_refused(&outcome, &["same file", name, second]);
        assert!(!path.exists());
    }
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn files_of_tls_that_cannot_be_used() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("the directory is ours");
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let empty = write("empty.pem", "");
    let damaged = write(
        "damaged.pem",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    );
    for option in ["--cacert", "--cert"] {
        for (path, word) in [
            ("/nonexistent/file.pem", "No such file"),
            ("/", "irectory"),
            (&empty, "no certificate"),
            (&damaged, "damaged"),
        ] {
            refused(
                &[option, path, "https://127.0.0.1:1/"],
                &[option, path, word],
            );
        }
    }
}

#[test]
fn names_that_tls_does_not_know() {
    refused(
        &["-k", "--sni", "a..b", "https://127.0.0.1:1/"],
        &["a..b", "host name"],
    );
}

#[test]
fn a_key_log_that_cannot_be_written() {
    let mut command = binary();
    command
        .args(["-k", "https://127.0.0.1:1/"])
        .env("SSLKEYLOGFILE", "/nonexistent/keys");
    let outcome = Process::start(command).wait();
    assert_refused(&outcome, &["SSLKEYLOGFILE", "/nonexistent/keys"]);
}

#[test]
fn a_server_that_speaks_no_tls() {
    let server = Serve::start();
    let url = server.url("/").replace("http://", "https://");
    refused(&["-k", &url], &["does not speak TLS", "http://"]);
}

#[test]
fn a_rate_that_cannot_be_planned() {
    let server = Serve::start();
    let url = server.url("/");
    refused(
        &["-t", "1", "-r", "1g", "-d", "1s", &url],
        &["1000000000", "1 worker", "10000000", "-t"],
    );
}
