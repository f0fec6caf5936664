//! Requests that are given as text: sent byte by byte, with replies framed as they ask for.

use brunt_load::{Plan, RequestOrder, RequestSet, verbatim_requests};
use brunt_record::Run;

use crate::common::{
    Kind, by_count, expect_equal_counts, expect_valid, failures, lifetime, load, many,
    on_every_backend,
};

on_every_backend! {
    a_text_is_sent_as_it_is,
    texts_are_pipelined,
    old_requests_have_a_connection_each,
    old_requests_keep_their_connection_when_told,
}

/// Sends 100 requests, those of `text` in turns.
fn sent(kind: Kind, text: &str, change: impl FnOnce(&mut Plan)) -> Run {
    let requests = verbatim_requests(text.as_bytes()).expect("requests");
    let set = match &requests[..] {
        [only] => RequestSet::one(only.clone()),
        _ => RequestSet::of(requests, RequestOrder::Turns).expect("a list"),
    };
    let (run, served) = load(kind, "/", |plan| {
        by_count(plan, 100);
        plan.traffic.requests = set;
        change(plan);
    });
    expect_valid(&run, text);
    expect_equal_counts(&run, served, text);
    assert_eq!(failures(&run), [], "{text}");
    assert_eq!(lifetime(&run).replies.successes(), 100, "{text}");
    run
}

fn a_text_is_sent_as_it_is(kind: Kind) {
    // Spaces and cases that brunt would not write.
    let text = "GET /bytes/9 HTTP/1.1\r\nhOST:x\r\nX-Empty:\r\n\r\n";
    let run = sent(kind, text, |_| {});
    assert_eq!(lifetime(&run).bytes_sent, 100 * text.len() as u64);
    assert_eq!(lifetime(&run).connections_opened, 4);
}

fn texts_are_pipelined(kind: Kind) {
    let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    let head = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n";
    sent(kind, get, |plan| plan.traffic.pipeline = many(5));
    let text = format!("{get}{post}{head}{head}");
    let run = sent(kind, &text, |plan| plan.traffic.pipeline = many(4));
    assert_eq!(lifetime(&run).bytes_sent, 25 * text.len() as u64);
    let sent_by_name: Vec<u64> = run.names.iter().map(|name| name.requests_sent).collect();
    assert_eq!(sent_by_name, [25, 25, 50]);
}

fn old_requests_have_a_connection_each(kind: Kind) {
    let text = "GET / HTTP/1.0\r\n\r\n";
    let run = sent(kind, text, |_| {});
    assert!(lifetime(&run).connections_opened >= 100);
    assert_eq!(lifetime(&run).bytes_sent, 100 * text.len() as u64);
}

fn old_requests_keep_their_connection_when_told(kind: Kind) {
    let run = sent(
        kind,
        "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
        |_| {},
    );
    assert_eq!(lifetime(&run).connections_opened, 4);
}
