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

/// Words of a command line, behind which the URL of a server is put in place of `URL`, and what the
/// message names.
const REFUSED: &[(&[&str], &[&str])] = &[
    // The program's own arguments.
    (&["ftp://127.0.0.1/"], &["ftp", "http"]),
    (&["http://127.0.0.1:99999/"], &["99999", "port"]),
    (&["http://"], &["http[s]://HOST"]),
    (
        &["http://no-such-host.invalid/"],
        &["no-such-host.invalid", "resolve"],
    ),
    (
        &["--conections", "3", "URL"],
        &["--conections", "'--connections'"],
    ),
    (
        &["--thinktime", "5", "URL"],
        &["--thinktime", "'--think-time'"],
    ),
    (&["--ca-cert", "5", "URL"], &["--ca-cert", "'--cacert'"]),
    (
        &["sweep", "-c", "1,2", "--format", "summary", "URL"],
        &["is of one run", "json or csv"],
    ),
    // Connections and workers.
    (&["-c", "0", "URL"], &["--connections", "at least 1"]),
    (&["-n", "0", "URL"], &["--requests", "at least 1"]),
    (&["-t", "4097", "URL"], &["--threads", "4096 at most"]),
    (
        &["-t", "3", "-c", "2", "URL"],
        &["3 workers", "2 connection", "-t 2"],
    ),
    (
        &["-t", "4000", "-c", "4000", "URL"],
        &["4000 workers", "CPUs", "--oversubscribe"],
    ),
    (
        &[
            "-t",
            "1",
            "-c",
            "200000",
            "--source-address",
            "127.0.0.1",
            "URL",
        ],
        &["200000", "local ports", "--source-address"],
    ),
    (
        &["--source-address", "300.1.1.1", "URL"],
        &["--source-address", "300.1.1.1"],
    ),
    // Of a range for documentation (RFC 5737).
    (
        &["--source-address", "192.0.2.1", "URL"],
        &["192.0.2.1", "--source-address"],
    ),
    (&["--source-address", "::1", "URL"], &["::1", "source"]),
    (
        &["--unix-socket", "/nonexistent/socket", "http://localhost/"],
        &["/nonexistent/socket", "No such file"],
    ),
    (
        &["--no-keepalive", "--pipeline", "2", "URL"],
        &["--no-keepalive", "--pipeline"],
    ),
    // Requests.
    (&["-H", "nocolon", "URL"], &["nocolon", "Name: value"]),
    (&["-H", "bad name: x", "URL"], &["header", "bad name"]),
    (&["-H", "A: b\r\nC: d", "URL"], &["header"]),
    (&["-H", "A: b\nC: d", "URL"], &["header"]),
    (&["-H", "A: b\rC: d", "URL"], &["header"]),
    (&["-H", "A\r\nB: c", "URL"], &["header"]),
    (
        &["-H", "Content-Length: 5", "URL"],
        &["Content-Length", "0 bytes"],
    ),
    (&["-m", "GE T", "URL"], &["method", "GE T"]),
    (&["-m", "100", "URL"], &["--method", "--streams 100"]),
    (
        &["--body", "@/nonexistent/body", "URL"],
        &["/nonexistent/body", "No such file"],
    ),
    (&["--body", "@/", "URL"], &["body", "irectory"]),
    (
        &["-b", "x", "-b", "y", "URL"],
        &["--body", "multiple times"],
    ),
    // Load.
    (&["--duration=10x", "URL"], &["--duration", "10x", "10ms"]),
    (&["--duration=-1s", "URL"], &["--duration", "-1s", "10ms"]),
    (&["-d", "0s", "URL"], &["--duration", "longer than 0"]),
    (
        &["--rate", "-5k", "URL"],
        &["--rate", "is not a rate", "100/s"],
    ),
    (
        &["--rate", "", "URL"],
        &["--rate", "is not a rate", "100/s"],
    ),
    (
        &["--connection-rate", "0", "URL"],
        &["--connection-rate", "is not a rate", "100/s"],
    ),
    (
        &["-t", "1", "-r", "1g", "-d", "1s", "URL"],
        &["1000000000", "1 worker", "10000000", "-t"],
    ),
    (
        &["--stages", "10s:1k..", "URL"],
        &["--stages", "is not a stage", "30s:5k"],
    ),
    (
        &["--stages", "1s:5,0s:7", "URL"],
        &["--stages", "stage 2", "longer"],
    ),
    (
        &["--stages", "10s:0,1s:0..0", "URL"],
        &["--stages", "nothing ever arrives"],
    ),
    (
        &["--arrivals", "poisson", "URL"],
        &["--arrivals", "--stages", "--requests-per-connection"],
    ),
    (
        &["-r", "5", "--arrivals", "possion", "URL"],
        &["possion", "'poisson'", "uniform"],
    ),
    (
        &["--seed", "1", "URL"],
        &["nothing of this load is", "a rate", "--order random"],
    ),
    (
        &["-r", "5", "--seed", "18446744073709551616", "URL"],
        &["--seed", "18446744073709551616"],
    ),
    (
        &["-r", "5", "--spin", "yes", "URL"],
        &["--spin", "yes", "auto"],
    ),
    (
        &["-r", "5", "--think-time", "soon", "URL"],
        &["--think-time", "soon", "10ms"],
    ),
    (
        &["--rate=5", "--stages=1s:5", "URL"],
        &["--rate", "--stages", "cannot be used with"],
    ),
    (
        &["--stages=1s:5", "-d1s", "URL"],
        &["--stages", "--duration", "cannot be used with"],
    ),
    (
        &["--rate=5", "--think-time=1s", "URL"],
        &["--rate", "--think-time", "cannot be used with"],
    ),
    (
        &["-r", "5", "-c", "9", "--max-connections", "8", "URL"],
        &["--max-connections 8", "-c"],
    ),
    (
        &["--max-connections", "100", "URL"],
        &["--max-connections", "--rate", "-c"],
    ),
    // Files.
    (
        &["--hdr-log", "/nonexistent/file", "URL"],
        &["/nonexistent/file", "No such file"],
    ),
    (&["--hgrm", "/", "URL"], &["irectory"]),
    // HTTP/2 and TLS.
    (
        &["--http1", "--http2", "URL"],
        &["--http1", "--http2", "cannot be used with"],
    ),
    (
        &["--http2", "--pipeline=2", "URL"],
        &["--http2", "--pipeline", "cannot be used with"],
    ),
    (
        &["--streams", "10", "URL"],
        &["--streams", "HTTP/1.1", "--http2", "--pipeline"],
    ),
    (&["--http2", "--streams", "5g", "URL"], &["--streams", "5g"]),
    (
        &["--sni", "name", "URL"],
        &["--sni", "http://", "clear text", "https URL"],
    ),
    (
        &["--tls-resume", "URL"],
        &["--tls-resume", "http://", "clear text", "https URL"],
    ),
    (
        &[
            "--tls-min",
            "1.3",
            "--tls-max",
            "1.2",
            "https://127.0.0.1:1/",
        ],
        &["1.3", "no version"],
    ),
    (
        &["--tls-max", "TLSv1.3", "https://127.0.0.1:1/"],
        &["--tls-max", "TLSv1.3", "1.3"],
    ),
    (
        &["--sni", "name:443", "https://127.0.0.1:1/"],
        &["--sni", "name:443", "host name"],
    ),
    (
        &["-k", "--sni", "a..b", "https://127.0.0.1:1/"],
        &["a..b", "host name"],
    ),
    (
        &["--key", "/nonexistent/key.pem", "https://127.0.0.1:1/"],
        &["--cert"],
    ),
    (
        &[
            "-k",
            "--cacert",
            "/nonexistent/ca.pem",
            "https://127.0.0.1:1/",
        ],
        &["--insecure", "any certificate", "--cacert"],
    ),
];

#[test]
fn each_is_refused_before_load() {
    let server = Serve::start();
    let url = server.url("/");
    for (arguments, words) in REFUSED {
        let arguments = arguments
            .iter()
            .map(|word| if *word == "URL" { &*url } else { word });
        let arguments: Vec<&str> = arguments.collect();
        let outcome = brunt_with(&arguments);
        assert_refused(&outcome, words);
    }
    refused(&["-c", "0", &url], &["--connections"]);
    refused(&["-t", "3", "-c", "2", &url], &["3 workers"]);
    assert_eq!(server.counters().requests, 0);
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
fn a_port_that_refuses() {
    let refusing = Port::refusing();
    let port = refusing.address.port();
    let url = format!("http://127.0.0.1:{port}/");
    refused(&[url], &[&format!("127.0.0.1:{port}"), "refused"]);
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
        refused(&[&arguments[..], &["http://127.0.0.1:1/"]].concat(), &words);
    }
}

#[test]
fn a_spectrum_without_a_text_report() {
    let server = Serve::start();
    let outcome = brunt(&format!("--latency --format csv {}", server.url("/")));
    assert_refused(&outcome, &["--latency", "text", "--hgrm"]);
    assert_eq!(server.counters().requests, 0);
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
