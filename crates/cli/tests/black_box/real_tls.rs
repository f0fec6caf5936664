//! TLS with the servers of others: what is negotiated, what is counted, and what is refused before
//! a run, with the reason.

use crate::loads::MACHINERIES;
use crate::support::caddy::Caddy;
use crate::support::certificates::{Authority, NAME};
use crate::support::haproxy::Haproxy;
use crate::support::nginx::{Nginx, Site};
use crate::support::process::{Process, assert_refused, binary, brunt};
use crate::support::run::{RunReport, run};

/// Every request was answered by status 200, over connections with a TLS handshake each.
fn all_answered(report: &RunReport) -> u64 {
    let requests = report.requests();
    assert_eq!(requests.answered, requests.sent, "{requests:?}");
    assert!(report.failures().is_empty(), "{:?}", report.failures());
    assert_eq!(
        report.statuses(),
        [("200".to_owned(), requests.sent)].into()
    );
    let handshakes = report.total("handshakes_full") + report.total("handshakes_resumed");
    assert_eq!(handshakes, report.total("connections_opened"));
    assert_eq!(report.number("/latencies/tls/count"), handshakes);
    requests.sent
}

/// Runs `load` on every backend, with one and with two workers, against an nginx with one site
/// over TLS, and compares all counts.
fn compare(http2: bool, options: &str, expected: &str, check: impl Fn(&RunReport)) {
    let authority = Authority::new();
    let site = Site::secure(http2, |address| authority.server(address));
    let mut nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let version = match expected {
        "HTTP/2" => "HTTP/2.0",
        other => other,
    };
    for machinery in MACHINERIES {
        let (before, logged_before) = (nginx.settled(), nginx.logged(version));
        let load = format!("{} {options}", authority.trusted());
        let report = machinery.run(&load, &site.url("/100.html"));
        let received = nginx.settled() - before;
        assert_eq!(
            report.at("/agents/0/negotiated/protocol"),
            expected,
            "{machinery:?}"
        );
        assert_eq!(all_answered(&report), received, "{machinery:?}");
        assert_eq!(
            nginx.logged(version) - logged_before,
            received,
            "{machinery:?}"
        );
        assert!(received > 0);
        check(&report);
    }
}

#[test]
fn what_is_negotiated_is_what_was_asked_for() {
    const TIMED: &str = "-c 8 -d 300ms --warmup 100ms";
    const EACH: &str = "--http1 --no-keepalive -c 4 -n 200";
    type Check = fn(&RunReport);
    // Whether the server speaks HTTP/2, further options, what is spoken, and what holds.
    let cases: [(bool, &str, &str, &str, Check); 8] = [
        (true, "", TIMED, "HTTP/2", |report| {
            assert!(report.at("/agents/0/negotiated/note").is_null());
            assert_eq!(report.number("/agents/0/negotiated/depth"), 1);
            assert_eq!(report.total("connections_opened"), 8);
        }),
        (true, "--http1", TIMED, "HTTP/1.1", |report| {
            assert!(report.at("/agents/0/negotiated/note").is_null());
        }),
        (false, "", TIMED, "HTTP/1.1", |report| {
            let note = report.at("/agents/0/negotiated/note").as_str();
            let note = note.expect("it says that the server has no HTTP/2");
            assert!(note.contains("ALPN") && note.contains("h2"), "{note}");
        }),
        (false, "", EACH, "HTTP/1.1", |report| {
            let full = report.total("handshakes_full");
            assert!((200..=204).contains(&full), "{full}");
            assert_eq!(report.total("handshakes_resumed"), 0);
            assert!(!report.flag("/plan/connection/tls/resumption"));
        }),
        (
            false,
            "--tls-resume --tls-max 1.2",
            EACH,
            "HTTP/1.1",
            resumed,
        ),
        (
            false,
            "--tls-resume --tls-max 1.3",
            EACH,
            "HTTP/1.1",
            resumed,
        ),
        (true, "--tls-max 1.2", "-c 2 -n 20", "HTTP/2", |report| {
            assert_eq!(report.at("/agents/0/negotiated/tls/version"), "TLS 1.2");
        }),
        (true, "--tls-min 1.3", "-c 2 -n 20", "HTTP/2", |report| {
            assert_eq!(report.at("/agents/0/negotiated/tls/version"), "TLS 1.3");
        }),
    ];
    for (http2, options, load, expected, check) in cases {
        compare(http2, &format!("{options} {load}"), expected, check);
    }
}

/// Sessions are resumed where that is asked for.
fn resumed(report: &RunReport) {
    assert!(report.total("handshakes_resumed") > 100);
    assert!(report.flag("/plan/connection/tls/resumption"));
}

#[test]
fn haproxy_speaks_both() {
    let authority = Authority::new();
    let haproxy = Haproxy::start(|address| authority.server(address));
    for machinery in MACHINERIES {
        for (options, expected) in [
            ("--streams 10 -n 1000", "HTTP/2"),
            ("--http2 -d 200ms --warmup 50ms", "HTTP/2"),
            ("--http1 -n 1000", "HTTP/1.1"),
        ] {
            let before = haproxy.settled();
            let load = format!("{} -c 4 {options}", authority.trusted());
            let report = machinery.run(&load, &haproxy.url());
            assert_eq!(report.at("/agents/0/negotiated/protocol"), expected);
            let received = haproxy.settled() - before;
            assert_eq!(all_answered(&report), received, "{machinery:?} {options}");
        }
    }
}

#[test]
fn idle_connections_that_haproxy_closes_are_opened_again_when_they_are_needed() {
    const LIMITS: &str = "    timeout http-request 1s\n    timeout http-keep-alive 1s";
    let authority = Authority::new();
    let haproxy = Haproxy::start_limited(|address| authority.server(address), LIMITS);
    for machinery in MACHINERIES {
        for version in ["--http1", "--http2"] {
            let what = format!("{machinery:?} {version}");
            let figures = ["hrsp_2xx", "hrsp_4xx", "conn_tot"];
            let before = haproxy.counted(figures);
            let load = format!("{} {version} -c 16 -r 2.5 -d 3s", authority.trusted());
            let report = machinery.run(&load, &haproxy.url());
            let after = haproxy.counted(figures);
            let [answered, late, connections] =
                std::array::from_fn(|place| after[place] - before[place]);
            assert_eq!(all_answered(&report), answered, "{what}");
            // HTTP/1.1 says 408 before it closes, also when the run is over.
            let idle_replies = report.total_if_any("idle_replies");
            assert!((idle_replies..=idle_replies + 16).contains(&late), "{what}");
            assert_eq!(late > 0, version == "--http1", "{what}");
            assert_eq!(
                report.total("connections_opened") + 1,
                connections,
                "{what}"
            );
            assert!(connections <= 17 + 2 * answered, "{what}: {connections}");
            assert_ne!(report.finding("L1")["status"], "broken", "{what}");
        }
    }
}

#[test]
fn caddy_speaks_both() {
    let authority = Authority::new();
    let caddy = Caddy::start(|address| authority.server(address));
    for machinery in MACHINERIES {
        for (options, expected, version) in [
            ("--streams 10 -n 1000", "HTTP/2", "HTTP/2.0"),
            ("--http2 -d 200ms --warmup 50ms", "HTTP/2", "HTTP/2.0"),
            ("--http1 -n 1000", "HTTP/1.1", "HTTP/1.1"),
        ] {
            let before = caddy.logged(version);
            let load = format!("{} -c 4 {options}", authority.trusted());
            let report = machinery.run(&load, &caddy.url());
            assert_eq!(report.at("/agents/0/negotiated/protocol"), expected);
            let answered = all_answered(&report);
            caddy.wait_until_logged(version, before + answered);
        }
    }
}

#[test]
fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let asks = format!(
        "ssl_verify_client on; ssl_client_certificate {};",
        authority.roots().display()
    );
    let site = Site::secure(true, |address| authority.server(address)).with(&asks);
    let mut nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let client = authority.client();
    let url = site.url("/100.html");
    for machinery in MACHINERIES {
        for forced in ["--http1", "--http2"] {
            let before = nginx.settled();
            let load = format!(
                "{} --cert {} --key {} {forced} -c 4 -n 100",
                authority.trusted(),
                client.certificate.display(),
                client.key.display()
            );
            let report = machinery.run(&load, &url);
            assert_eq!(all_answered(&report), nginx.settled() - before);
            assert!(report.at("/plan/connection/tls/identity").is_object());
        }
    }
    // Both in one file.
    let load = format!(
        "{} --cert {} -c 1 -n 1",
        authority.trusted(),
        client.both.display()
    );
    all_answered(&run(&format!("{load} {url}")));
}

#[test]
fn the_name_asked_for_is_the_one_verified() {
    let authority = Authority::new();
    let site = Site::secure(true, |address| authority.server(address));
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let url = site.url("/100.html");
    let report = run(&format!(
        "{} --sni {NAME} -c 1 -n 10 {url}",
        authority.trusted()
    ));
    all_answered(&report);
    assert_eq!(report.at("/plan/connection/tls/server_name"), NAME);
    let refused = brunt(&format!(
        "{} --sni other.test -n 1 {url}",
        authority.trusted()
    ));
    assert_refused(&refused, &["other.test", "certificate"]);
}

#[test]
fn certificates_that_do_not_pass() {
    let (authority, other) = (Authority::new(), Authority::new());
    let sites = [
        Site::secure(true, |address| other.server(address)),
        Site::secure(true, |_| authority.misnamed()),
        Site::secure(true, |address| authority.expired(address)),
    ];
    let mut nginx = Nginx::start_sites(&sites);
    let words: [&[&str]; 3] = [
        &["not trusted", "issuer", "--cacert", "-k"],
        &["certificate", "other.test", "--sni"],
        &["certificate", "expired"],
    ];
    for (site, words) in sites.iter().zip(words) {
        let url = site.url("/100.html");
        for backend in ["uring", "epoll"] {
            let options = format!("--backend {backend} -c 2 -n 10");
            let before = nginx.settled();
            let refused = brunt(&format!("{} {options} {url}", authority.trusted()));
            assert_refused(&refused, words);
            assert_eq!(
                nginx.settled(),
                before,
                "requests of a run that was refused"
            );
            let report = run(&format!("-k {options} {url}"));
            assert_eq!(all_answered(&report), 10);
            assert!(report.flag("/plan/connection/tls/insecure"));
        }
    }
}

#[test]
fn http2_is_forced_and_not_spoken() {
    let authority = Authority::new();
    let site = Site::secure(false, |address| authority.server(address));
    let mut nginx = Nginx::start_sites(std::slice::from_ref(&site));
    for backend in ["uring", "epoll"] {
        let before = nginx.settled();
        // By ALPN over TLS; in clear text the server's answer tells.
        for url in [site.url("/100.html"), nginx.url()] {
            let trusted = authority.trusted_at(&url);
            let refused = brunt(&format!(
                "--http2 --backend {backend} {trusted} -n 10 {url}"
            ));
            assert_refused(&refused, &["HTTP/2"]);
        }
        // In clear text the start of HTTP/2 looks like a request to a server that has only
        // HTTP/1.1.
        assert!(nginx.settled() - before <= 1);
    }
}

#[test]
fn versions_of_tls_that_the_server_does_not_speak() {
    let authority = Authority::new();
    let site = Site {
        versions: "TLSv1.2",
        ..Site::secure(true, |address| authority.server(address))
    };
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let options = format!("{} --tls-min 1.3 -n 10", authority.trusted());
    let refused = brunt(&format!("{options} {}", site.url("/100.html")));
    assert_refused(&refused, &["TLS"]);
}

#[test]
fn a_client_certificate_that_is_missing() {
    let authority = Authority::new();
    // The handshake itself passes in TLS 1.3: nginx answers requests by status 400.
    let asks = format!(
        "ssl_verify_client on; ssl_client_certificate {};",
        authority.roots().display()
    );
    let site = Site::secure(true, |address| authority.server(address)).with(&asks);
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let report = run(&format!(
        "{} -c 2 -n 10 {}",
        authority.trusted(),
        site.url("/100.html")
    ));
    assert!(report.at("/plan/connection/tls/identity").is_null());
    assert_eq!(report.statuses(), [("400".to_owned(), 10)].into());
}

#[test]
fn keys_are_logged_where_the_environment_asks_for_it() {
    let authority = Authority::new();
    let site = Site::secure(true, |address| authority.server(address));
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("keys");
    let words = format!(
        "--format json {} -c 3 -n 30 {}",
        authority.trusted(),
        site.url("/100.html")
    );
    let mut command = binary();
    command
        .env("SSLKEYLOGFILE", &log)
        .args(words.split_whitespace());
    all_answered(&RunReport::of(Process::start(command).wait()));
    let keys = std::fs::read_to_string(&log).expect("brunt wrote it");
    let secrets = keys
        .lines()
        .filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 "));
    // One more is the connection made before the run.
    assert_eq!(secrets.count(), 4, "{keys}");
}
