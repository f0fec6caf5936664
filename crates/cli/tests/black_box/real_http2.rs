//! HTTP/2 with the servers of others: requests and replies as brunt counts them, against the
//! server's own count, where connections are replaced, streams limited and streams reset too.

use crate::loads::{MACHINERIES, Machinery};
use crate::support::certificates::Authority;
use crate::support::nghttpd::Nghttpd;
use crate::support::nghttpx::Nghttpx;
use crate::support::nginx::{KEEPALIVE_REQUESTS, LARGE_BYTES, Nginx, Site};
use crate::support::run::{Requests, RunReport};

/// The two combinations that have one worker, for servers that are started for each run.
const ONE_WORKER: [Machinery; 2] = [MACHINERIES[0], MACHINERIES[1]];

/// Runs `options` on every backend, with one and with two workers, against an nginx with `site`,
/// and compares the counts that must be equal whatever becomes of the requests.
fn compare_site(site: &Site, options: &str, path: &str, check: impl Fn(Requests, &RunReport)) {
    let mut nginx = Nginx::start_sites(std::slice::from_ref(site));
    for machinery in MACHINERIES {
        let (before, logged_before) = (nginx.settled(), nginx.logged("HTTP/2.0"));
        let report = machinery.run(&format!("--http2 {options}"), &site.url(path));
        let received = nginx.settled() - before;
        let requests = report.requests();
        let not_processed = report.failures().get("not_processed").copied();
        assert_eq!(
            requests.sent,
            received + not_processed.unwrap_or(0),
            "{machinery:?}: {requests:?}"
        );
        assert_eq!(nginx.logged("HTTP/2.0") - logged_before, received);
        assert_eq!(report.at("/agents/0/negotiated/protocol"), "HTTP/2");
        assert!(received > 0);
        check(requests, &report);
    }
}

/// Runs `options` against an nginx with `lines` of configuration, in clear text and over TLS, and
/// compares the counts that must be equal whatever becomes of the requests.
fn compare(lines: &str, options: &str, path: &str, check: impl Fn(Requests, &RunReport)) {
    compare_site(&Site::clear(true).with(lines), options, path, &check);
    let authority = Authority::new();
    let secure = Site::secure(true, |address| authority.server(address)).with(lines);
    let options = format!("{} {options}", authority.trusted());
    compare_site(&secure, &options, path, &check);
}

/// Every request was answered by status 200, by replies of which none is lost.
fn all_answered(requests: Requests, report: &RunReport) {
    assert_eq!(requests.answered, requests.sent, "{requests:?}");
    assert!(report.failures().is_empty(), "{:?}", report.failures());
    assert_eq!(
        report.statuses(),
        [("200".to_owned(), requests.sent)].into()
    );
}

#[test]
fn closed_loop_by_duration() {
    let options = "-c 8 --streams 10 -d 300ms --warmup 100ms";
    compare("", options, "/100.html", |requests, report| {
        all_answered(requests, report);
        assert_eq!(report.number("/agents/0/negotiated/depth"), 10);
        assert_eq!(report.total("connections_opened"), 8);
        assert_eq!(report.total("goaways"), 0);
    });
}

#[test]
fn a_constant_rate() {
    let options = "-r 400 -c 4 --streams 3 -d 300ms --warmup 100ms";
    compare("", options, "/100.html", |requests, report| {
        all_answered(requests, report);
        assert_eq!(requests.sent, 160);
        let arrivals = report.arrivals();
        assert_eq!((arrivals.planned, arrivals.sent), (120, 120));
    });
}

#[test]
fn a_new_connection_for_each_request() {
    let options = "-c 4 -n 200 --no-keepalive";
    compare("", options, "/100.html", |requests, report| {
        all_answered(requests, report);
        assert_eq!(requests.sent, 200);
        let opened = report.total("connections_opened");
        assert!((200..=204).contains(&opened), "{opened}");
    });
}

#[test]
fn seven_requests_per_connection() {
    let options = "-c 4 -n 700 --streams 3 --requests-per-connection 7";
    compare("", options, "/100.html", |requests, report| {
        all_answered(requests, report);
        let opened = report.total("connections_opened");
        assert!((100..=108).contains(&opened), "{opened}");
    });
}

/// nginx sends trailers that say so, or none.
#[test]
fn calls_of_grpc_succeed_by_their_trailers() {
    let load = "-c 4 --streams 10 -n 500";
    let call = &format!("-H content-type:application/grpc -H te:trailers {load}");
    compare(
        "add_trailer grpc-status 0;",
        call,
        "/100.html",
        all_answered,
    );
    let refused = "add_trailer grpc-status 12; add_trailer grpc-message 'no such method';";
    for (lines, kind, message) in [
        (refused, "call_unimplemented", Some("no such method")),
        ("add_trailer grpc-status 12;", "call_unimplemented", None),
        ("", "call_no_status", None),
    ] {
        compare(lines, call, "/100.html", |requests, report| {
            assert_eq!((requests.sent, requests.answered), (500, 0), "{lines}");
            assert_eq!(report.failures(), [(kind.to_owned(), 500)].into());
            assert_eq!(report.code, Some(1), "{lines}");
            let kept = report.json.pointer("/agents/0/workers/0/unexpected");
            assert_eq!(kept.and_then(|text| text.as_str()), message, "{lines}");
        });
        compare(lines, load, "/100.html", all_answered);
    }
    // A status of HTTP that is an error is counted as that.
    compare("", call, "/missing", |requests, report| {
        assert_eq!(
            report.statuses(),
            [("404".to_owned(), requests.sent)].into()
        );
    });
}

#[test]
fn replies_without_bodies() {
    let options = "-m HEAD -c 4 --streams 10 -n 500";
    compare("", options, "/100.html", |requests, report| {
        all_answered(requests, report);
        let frame_heads = report.total("reply_body_bytes");
        assert_eq!(frame_heads, 0);
    });
}

#[test]
fn large_bodies_pass_through_the_windows() {
    let options = "-c 2 --streams 4 -n 100";
    compare("", options, "/large", |requests, report| {
        all_answered(requests, report);
        let bytes = report.total("reply_body_bytes");
        assert!(bytes > 100 * LARGE_BYTES, "{bytes}");
        assert!(bytes < 101 * LARGE_BYTES, "{bytes}");
    });
}

#[test]
fn where_the_server_replaces_connections() {
    // nginx announces the end of a connection with its hundredth request, and skips the requests
    // behind it.
    let lines = format!("keepalive_requests {KEEPALIVE_REQUESTS};");
    let options = "-c 8 --streams 10 -d 300ms --warmup 100ms";
    compare(&lines, options, "/100.html", |requests, report| {
        let Requests {
            sent,
            answered,
            failed,
            in_flight,
        } = requests;
        assert_eq!((sent, failed, in_flight), (answered, 0, 0));
        let goaways = report.total("goaways");
        assert!(goaways + 8 >= answered / KEEPALIVE_REQUESTS, "{goaways}");
        // What was sent behind the last request of each connection.
        let again = report.total("sent_again");
        assert!(again <= goaways * 9, "{again} of {goaways} connections");
        let opened = report.total("connections_opened");
        assert!(opened >= answered / KEEPALIVE_REQUESTS, "{opened}");
    });
}

#[test]
fn the_server_limits_streams() {
    let options = "-c 4 --streams 100 -d 300ms --warmup 100ms";
    let lines = "http2_max_concurrent_streams 8;";
    compare(lines, options, "/100.html", |requests, report| {
        all_answered(requests, report);
        assert_eq!(report.number("/agents/0/negotiated/depth"), 8);
        let note = report.at("/agents/0/negotiated/note").as_str();
        let note = note.unwrap_or_else(|| panic!("nothing says that the server limits streams"));
        assert!(note.contains("8 streams"), "{note}");
    });
}

#[test]
fn streams_that_are_reset() {
    // nginx resets the stream of a request to which it must not reply.
    let lines = "location = /cut { return 444; }";
    let options = "-c 4 --streams 10 -n 1000";
    compare(lines, options, "/cut", |requests, report| {
        assert_eq!((requests.sent, requests.failed), (1_000, 1_000));
        let failures = report.failures();
        assert!(
            failures.keys().all(|kind| kind.starts_with("stream_")),
            "{failures:?}"
        );
    });
}

#[test]
fn cut_off_by_a_signal() {
    let authority = Authority::new();
    let sites = [
        Site::clear(true),
        Site::secure(true, |address| authority.server(address)),
    ];
    let mut nginx = Nginx::start_sites(&sites);
    for site in &sites {
        for machinery in MACHINERIES {
            let before = nginx.settled();
            let url = site.url("/100.html");
            let trusted = authority.trusted_at(&url);
            let options = format!("--http2 {trusted} -c 4 --streams 8");
            let report = machinery.run_interrupted(&options, &url, || {
                nginx.wait_for_requests(before + 500);
            });
            let received = nginx.settled() - before;
            let requests = report.requests();
            assert_eq!(requests.sent, received, "{machinery:?}: {requests:?}");
            assert_eq!(requests.answered, received, "{machinery:?}: {requests:?}");
        }
    }
}

#[test]
fn nghttpd_counts_the_same() {
    let authority = Authority::new();
    // Padding, trailers, and bodies whose length is not announced.
    for options in [
        &[][..],
        &["--padding=64"],
        &["--trailer", "checked: yes"],
        &["--no-content-length", "--encoder-header-table-size=0"],
    ] {
        for machinery in ONE_WORKER {
            for is_secure in [false, true] {
                let server = if is_secure {
                    Nghttpd::start_secure(|address| authority.server(address), options)
                } else {
                    Nghttpd::start(options)
                };
                let url = server.url();
                let trusted = authority.trusted_at(&url);
                let load = format!("--http2 {trusted} -c 4 --streams 10 -n 400");
                let report = machinery.run(&load, &url);
                let frames = server.end();
                assert_eq!(report.at("/agents/0/negotiated/protocol"), "HTTP/2");
                all_answered(report.requests(), &report);
                assert_eq!(frames.requests, 400, "{options:?}");
                let heads_per_reply = 1 + u64::from(options.contains(&"--trailer"));
                assert_eq!(frames.heads, 400 * heads_per_reply, "{options:?}");
            }
        }
    }
}

#[test]
fn bodies_of_requests_wait_for_the_windows() {
    // nghttpd takes 65,535 bytes at a time, and sends them back.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let body = directory.path().join("body");
    std::fs::write(&body, "y".repeat(300_000)).expect("the directory is ours");
    for machinery in ONE_WORKER {
        let server = Nghttpd::start(&["--echo-upload"]);
        let load = format!("--http2 -c 2 --streams 4 -n 40 --body @{}", body.display());
        let report = machinery.run(&load, &server.url());
        all_answered(report.requests(), &report);
        let bytes = report.total("reply_body_bytes");
        assert!(bytes > 40 * 300_000, "{bytes}");
        assert_eq!(server.end().requests, 40);
    }
}

#[test]
fn through_nghttpx() {
    let authority = Authority::new();
    let mut nginx = Nginx::start();
    let issue = |address| authority.server(address);
    let proxy = Nghttpx::start(nginx.address(), issue, &[]);
    for machinery in MACHINERIES {
        for (url, forced) in [
            (proxy.url_clear("/100.html"), "--http2 --streams 10"),
            (proxy.url_secure("/100.html"), "--streams 10"),
            (proxy.url_secure("/100.html"), "--http1"),
        ] {
            let before = nginx.requests();
            let load = format!("{forced} {} -c 4 -n 1000", authority.trusted_at(&url));
            let report = machinery.run(&load, &url);
            let expected = if forced == "--http1" {
                "HTTP/1.1"
            } else {
                "HTTP/2"
            };
            assert_eq!(
                report.at("/agents/0/negotiated/protocol"),
                expected,
                "{url}"
            );
            all_answered(report.requests(), &report);
            assert_eq!(nginx.requests() - before, 1_000, "{machinery:?} {url}");
        }
    }
}

#[test]
fn nghttpx_replaces_connections() {
    let authority = Authority::new();
    let mut nginx = Nginx::start();
    let issue = |address| authority.server(address);
    let proxy = Nghttpx::start(nginx.address(), issue, &["--frontend-max-requests=50"]);
    for machinery in ONE_WORKER {
        let before = nginx.requests();
        let report = machinery.run(
            "--http2 -c 4 --streams 10 -n 2000",
            &proxy.url_clear("/100.html"),
        );
        let requests = report.requests();
        assert_eq!((requests.sent, requests.in_flight), (2_000, 0));
        let failures = report.failures();
        assert!(
            failures.keys().all(|kind| kind == "not_processed"),
            "{failures:?}"
        );
        assert!(report.total("goaways") > 0);
        assert_eq!(
            nginx.requests() - before,
            requests.answered,
            "{machinery:?}"
        );
    }
}
