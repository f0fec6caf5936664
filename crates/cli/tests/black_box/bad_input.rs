//! What brunt refuses: exit code 2, one clear message, nothing sent, no file touched.

use std::ffi::OsStr;

use crate::support::listener::Port;
use crate::support::process::{Process, assert_refused, binary, brunt, brunt_with};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// Runs with `arguments` and an output file that does not exist, then with one that does.
fn refused<A: AsRef<OsStr>>(arguments: &[A], words: &[&str]) {
    let files = Stored::new();
    let path = files.place("run.json");
    let run = || {
        let mut command = binary();
        command.args(arguments).arg("--output").arg(&path);
        let outcome = Process::start(command).wait();
        assert_refused(&outcome, words);
    };
    run();
    assert!(!path.exists(), "an output file was left behind");
    files.write("run.json", "kept");
    run();
    assert_eq!(files.text("run.json"), "kept");
}

/// Command lines, and what the message to each names, with `|` between. `_` stands for a blank in a
/// word, `URL` for that of a server, `SERVER` for its address, `HTTPS` for a URL where nobody is,
/// `ANY` for an address to listen on.
const REFUSED: &[&str] = &[
    // The program's own arguments.
    "ftp://127.0.0.1/ => ftp|http",
    "http://127.0.0.1:99999/ => 99999|port",
    "http:// => http[s]://HOST",
    "http://no-such-host.invalid/ => no-such-host.invalid|resolve",
    "sweep -c 1,2 --format summary URL => is of one run|json or csv",
    "--generate man-nothing => man-COMMAND, |complete-fish",
    "--generate  => man-COMMAND, |complete-fish",
    "--latency --format csv URL => --latency|text|--hgrm",
    // Connections and workers.
    "-t 3 -c 2 URL => 3 workers|2 connection|-t 2",
    "-t 4000 -c 4000 URL => 4000 workers|CPUs|--oversubscribe",
    "-t 1 -c 200000 --source-address 127.0.0.1 URL => 200000|local ports|--source-address",
    // Of a range for documentation (RFC 5737).
    "--source-address 192.0.2.1 URL => 192.0.2.1|--source-address",
    "--source-address ::1 URL => ::1|source",
    "--unix-socket /nonexistent/socket http://localhost/ => /nonexistent/socket|No such file",
    // Requests.
    "-H bad_name:_x URL => header|bad name",
    "-H A:_b\r\nC:_d URL => header",
    "-H A\r\nB:_c URL => header",
    "-H Content-Length:_5 URL => Content-Length|0 bytes",
    "-m GE_T URL => method|GE T",
    "--body @/nonexistent/body URL => /nonexistent/body|No such file",
    "--body @/ URL => body|irectory",
    // Load.
    "-t 1 -r 1g -d 1s URL => 1000000000|1 worker|10000000|-t",
    "--seed 1 URL => nothing of this load is|a rate|--order random",
    // Files.
    "--hdr-log /nonexistent/file URL => /nonexistent/file|No such file",
    "--hgrm / URL => irectory",
    "-o /nonexistent/run.json URL => /nonexistent/run.json|No such file",
    "-o / URL => /|irectory",
    // HTTP/2 and TLS.
    // Messages, connections held and connections alone.
    "tcp --hold -m a h:1 => --hold sends no messages",
    "tcp --hold --first a h:1 => --reply says",
    "tcp --hold --send h:1 => leave it out with --send",
    "--hold --message a ws://h:1/ => --hold sends no messages",
    "tcp -m a --reply line => HOST:PORT",
    "tcp -m a h:1 => --reply says",
    "tcp -m {sequ} --reply line h:1 => {seq}",
    "tcp -m a --reply line --http2 h:1 => --http2 is about",
    "tcp -m a --reply line URL => tcp://HOST:PORT",
    "tcp -m a --reply line --tls-min 1.3 h:1 => tls://",
    "ws://h/ => there is no message; give one with --message",
    "--message a URL => --message is about WebSocket|ws:// or wss://",
    "--message a -b x ws://h/ => --body is about requests of HTTP",
    // Streams.
    "tcp --send -r 10 h:1 => --rate is about messages",
    "tcp --send --depth 2 h:1 => --depth is about messages",
    "tcp -m a --reply line -H a:b h:1 => --header is about requests of HTTP",
    "tcp --bandwidth 1g -m x --reply none h:1 => --bandwidth is a limit",
    "tcp --send --congestion nosuch SERVER => --congestion nosuch",
    "tcp --send --sndbuf 2g SERVER => net.core.wmem_max",
    "tcp --send tls://127.0.0.1:9 => of TLS the kernel counts records",
    // Scripts.
    "-s x.lua => URL",
    "-s /nonexistent.lua URL => cannot open /nonexistent.lua",
    // Requests in order, and parts of a plan.
    "--sessions /nonexistent URL => cannot read the sessions",
    "--sessions x --think-time 1s,exp URL => not random",
    "--order random URL => --urls",
    "--part 1/2 URL => --threads",
    "--part 1/2 -t 2 URL => add --start-at",
    "--part 1/3 -t 2 --start-at 1 URL => use -t 3",
    "--part 1/2 -t 2 -n 5 --start-at 1 URL => --requests",
    // Experiments.
    "sweep -c 1,2 --reply line URL => --reply is about messages over TCP",
    "sweep -c 1,2 --message a URL => --message is about messages",
    "sweep -c 1,2 --message a --ping 1s tcp://h:1 => --ping is about WebSocket",
    "sweep -c 1,2 --message a tcp://h:1 => --reply says",
    "sweep --body-size 1,2 --message a ws://h/ => --body-size is about requests",
    "sweep -c 1,2 --hold URL => --hold is about a single run",
    "find --objective p99<1s --pipeline 2 --message a ws://h/ => --depth in its place",
    "find --objective p99<1s ws://h/ => there is no message",
    "compare --body x --message a ws://h/ ws://i/ => --body is about requests",
    "find URL => say what is to be met",
    "find --objective p99<1ms => give the URL",
    "find --objective rate>5 URL => leave it out of --objective",
    "find --objective p99<1ms --stages 1s:5 URL => --stages",
    "find --objective p99<1ms URL URL => one server",
    "find --objective p99<1ms --budget 5s URL => too short",
    "find --objective p99<1ms -r 9 --max-rate 5 URL => above the 5",
    "find --objective p99<1ms --sessions x URL => --sessions",
    "sweep URL => nothing is varied",
    "sweep -c 1,2 -r 1,2 URL => one setting",
    "sweep -c 1,2 => give the URL",
    "sweep -c 1,2 URL URL => one server",
    "sweep -c 1,2 --hgrm x URL => --hgrm",
    "sweep -c 1,2 --sessions x URL => --sessions",
    "compare URL => 2 to 26 servers",
    "compare => 2 to 26 servers",
    "compare --pairs 6 URL URL => 7 to 100 pairs",
    "compare --pairs 7 -r 5 URL URL => 2 figures are compared at once, which takes 8 to 100 pairs",
    "compare -s x.lua URL URL => --script",
    "compare --sessions x URL URL => --sessions",
    "compare --hgrm x URL URL => --hgrm",
    "compare --fail-if p99>+5% URL URL => give one with -r",
    "compare -r 5 --fail-if rate<-5% URL URL => the rate is given",
    "compare --fail-if capacity<-5% URL URL => not compared",
    "compare --objective p99<1ms URL URL => --objective",
    "compare --start ./a URL URL => there are 2 URLs",
    "compare ftp://a/ URL => ftp",
    "compare ws://h/ URL => there is no message; give one with --message",
    "merge => FILE",
    // Fleets.
    "fleet --local 2 => give the URL",
    "fleet URL => --agents",
    "fleet --agents 2 URL => --nats",
    "fleet --local 2 --watch 1 URL => --watch",
    "fleet tcp --local 2 --send => HOST:PORT",
    "fleet tcp --local 2 --send --watch 1 h:1 => --watch",
    "fleet tcp -c 2 --send h:1 => --agents",
    "agent => name the broker",
    "agent --nats nats://192.0.2.1:4222 => not on this machine",
    "fleet find --local 2 URL => say what is to be met",
    "fleet sweep --local 2 -c 2,4 -s x.lua URL => --script",
    "fleet sweep --local 2 -c 2,4 --watch off URL => --watch does not go with several agents",
    // Servers.
    "serve -l ANY --cert /dev/null => --tls",
    "serve -l ANY --tls --cert /nonexistent => cannot read /nonexistent",
    "serve -l ANY --tls --cert /dev/null => no certificate in PEM",
    "serve -l ANY --tls --client-ca /dev/null => no certificate in PEM",
    "serve -l ANY --tls --tls-min 1.3 --tls-max 1.2 => newer than",
    "serve -l ANY --tls --cert-out /nonexistent/x => cannot write /nonexistent/x",
    "serve -l ANY --tcp drain => none of echo, echo=FRAMING",
    "serve -l ANY --tcp reply=line => has no reply",
    "serve -l ANY --tcp sink --tcp-delay 1ms => a delay is one of answers",
    "serve -l ANY --tcp echo --tcp-stall 1s => no SILENCE/PERIOD",
    "serve -l ANY --tcp echo --tcp-listen here => --tcp-listen here: write IP:PORT",
    "serve -l ANY --tcp echo --tcp-listen 192.0.2.1:1 => cannot listen on 192.0.2.1:1",
    // What users of other tools type.
    "ws://127.0.0.1:1/ => as in --message 'hello'",
    "serve --listen 192.0.2.1:0 => 192.0.2.1|listen",
];

#[test]
fn each_is_refused_before_load() {
    let server = Serve::start();
    let (url, address) = (server.url("/"), server.address());
    for row in REFUSED {
        let (line, parts) = row.split_once(" => ").expect("a row");
        let words = line.split(' ').map(|word| match word {
            "URL" => url.clone(),
            "HTTPS" => "https://127.0.0.1:1/".to_owned(),
            "ANY" => "127.0.0.1:0".to_owned(),
            word => word.replace('_', " ").replace("SERVER", &address),
        });
        let outcome = brunt_with(&words.collect::<Vec<_>>());
        assert_refused(&outcome, &parts.split('|').collect::<Vec<_>>());
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
    refused(&[&url], &[&format!("127.0.0.1:{port}"), "refused"]);
    // Nobody has the port of UDP either, which the kernel says.
    let secure = url.replace("http:", "https:");
    refused(&["--http3", "-k", &secure], &["refused"]);
    refused(&["compare", &url, &url], &["refused"]);
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
    let files = Stored::new();
    let outcome = brunt(&format!(
        "serve --unix-socket {}",
        files.write("socket", "")
    ));
    assert_refused(&outcome, &["socket", "in use"]);
    // What was there is not ours to remove.
    assert!(files.place("socket").exists());
}

#[test]
fn placeholders_that_are_not_filled_in() {
    let files = Stored::new();
    let file = |name: &str, text: &str| files.write(name, text);
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
fn two_reports_in_one_file() {
    let (server, files) = (Serve::start(), Stored::new());
    let (name, url) = (files.path("file"), server.url("/"));
    for (first, second) in [("-o", "--hgrm"), ("--hdr-log", "--hgrm")] {
        let outcome = brunt(&format!("{first} {name} {second} {name} {url}"));
        assert_refused(&outcome, &["same file", &name]);
        assert!(!files.place("file").exists());
    }
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn files_of_tls_that_cannot_be_used() {
    let files = Stored::new();
    let empty = files.write("empty.pem", "");
    let text = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    let damaged = files.write("damaged.pem", text);
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
