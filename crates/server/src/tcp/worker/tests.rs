//! Every service and delay of raw TCP, against the scripted backend.

use brunt_io::backend::Event;
use brunt_load::units;

use super::*;
use crate::listeners::ListenAddress;
use crate::pattern::pattern_byte;
use crate::scripted::Scripted;
use crate::tcp::TcpCounters;
use crate::worker::tests;

const MS: u64 = 1_000_000;

fn options(service: &str, delay: &str, stall: &str) -> TcpOptions {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    let mut options = TcpOptions::new(address, service.parse().expect(service));
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    options.delay_ns = given(delay).map(|delay| units::duration_ns(&delay).expect("a delay"));
    options.stall = given(stall).map(|stall| stall.parse().expect("a stall"));
    options.check().expect("parts that fit");
    options
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared::new(1).with_tcp(1))
}

type Site<'a> = tests::Site<Tcp<'a>>;

fn site<'a>(shared: &Arc<Shared>, options: &'a TcpOptions) -> Site<'a> {
    let settings = WorkerSettings {
        idle_timeout_ns: Some(60_000 * MS),
        ..tests::SETTINGS
    };
    Site::of(Worker::of_tcp(
        Scripted::default(),
        options,
        shared,
        0,
        settings,
    ))
}

fn totals(site: &Site<'_>) -> TcpCounters {
    site.totals().tcp.expect("raw TCP")
}

/// What is said in these pieces gets this, on a connection that stays open.
fn exchange(service: &str, pieces: &[&str]) -> (String, TcpCounters) {
    let (shared, options) = (shared(), options(service, "", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    for piece in pieces {
        site.say(slot, piece).turns(2);
    }
    let text = site.text(slot);
    assert!(!site.seen(slot).closed, "{service}");
    let counters = totals(&site);
    assert_eq!(counters.bytes_sent, text.len() as u64, "{service}");
    assert_eq!(counters.bytes_received, site.script().taken_bytes);
    assert_eq!(counters.connections_live, 1);
    if options.service.answers() && options.service.framing().is_some() {
        assert_eq!(
            counters.messages,
            counters.replies + counters.messages_abandoned,
            "{counters:?}"
        );
    }
    (text, counters)
}

#[test]
fn services_answer_as_documented() {
    for (service, pieces, text, messages) in [
        ("echo", &["ab", "c"][..], "abc", 0),
        ("echo=line", &["a\nb", "c\nd"][..], "a\nbc\n", 2),
        ("sink", &["abc", "d"][..], "", 0),
        ("sink=line", &["a\nb\nc"][..], "", 2),
        (
            "reply=line:ok\\n",
            &["a\nb\n", "c", "\n"][..],
            "ok\nok\nok\n",
            3,
        ),
        ("reply=fixed=2:1", &["abcde"][..], "aa", 2),
        (
            "reply=len8:1",
            &["\u{1}a\u{0}\u{2}b"][..],
            "\u{1}a\u{1}a",
            2,
        ),
    ] {
        let (answers, counters) = exchange(service, pieces);
        assert_eq!(answers, text, "{service}");
        assert_eq!(counters.messages, messages, "{service}");
        let bytes = pieces.concat().len() as u64;
        assert_eq!(counters.bytes_received, bytes);
        let discarded = if service == "sink" { bytes } else { 0 };
        assert_eq!(counters.bytes_discarded, discarded);
    }
}

#[test]
fn answers_are_delayed_and_keep_their_order() {
    let (shared, options) = (shared(), options("reply=line:ok\\n", "10ms", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    site.script().now_ns = 1_000 * MS;
    site.script().arrive(slot, b"a\n");
    site.turns(1);
    assert!(site.text(slot).is_empty());
    // One that comes meanwhile does not wait for the one before it.
    site.script().now_ns = 1_004 * MS;
    site.script().arrive(slot, b"b\nc\n");
    site.turns(10);
    assert_eq!(site.text(slot), "ok\nok\nok\n");
    let sends = site.seen(slot).sends.clone();
    assert_eq!(sends, [(1_010 * MS, 3), (1_014 * MS, 6)]);
    let counters = totals(&site);
    assert_eq!((counters.replies, counters.replies_delayed), (3, 3));
    assert_eq!(counters.lateness_ns_max, Some(0));
}

#[test]
fn nothing_happens_in_a_silence() {
    for service in ["echo", "sink", "source"] {
        let (shared, options) = (shared(), options(service, "", "100ms/1s"));
        let mut site = site(&shared, &options);
        site.script().now_ns = 5_050 * MS;
        let slot = site.connect();
        site.script().arrive(slot, b"a");
        while site.script().now_ns < 5_100 * MS {
            let counters = totals(&site);
            assert_eq!(counters.bytes_sent, 0, "{service}");
            assert!(service != "sink" || counters.bytes_received == 0);
            site.turns(1);
        }
        assert_eq!(site.script().now_ns, 5_100 * MS, "{service}");
        site.turns(1);
        let counters = totals(&site);
        assert_eq!(counters.bytes_received, 1, "{service}");
        assert_eq!(counters.bytes_sent > 0, service != "sink", "{service}");
    }
}

#[test]
fn a_source_goes_on_until_its_peer_ends_or_takes_no_more() {
    for end in [Event::Ended, |slot| Event::SendFailed(slot, libc::EPIPE)] {
        let (shared, options) = (shared(), options("source", "", ""));
        let mut site = site(&shared, &options);
        let slot = site.connect();
        site.turns(3);
        // The others are not kept waiting: one piece per turn.
        let before = site.seen(slot).sends.len();
        site.turns(3);
        assert_eq!(site.seen(slot).sends.len(), before + 3);
        let sent = site.seen(slot).sent.clone();
        assert!((0..).zip(sent).all(|(at, byte)| byte == pattern_byte(at)));
        assert!(!site.seen(slot).closed);
        site.script().happen(end(slot));
        site.turns(2);
        assert!(site.seen(slot).closed);
    }
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from() {
    for service in ["echo", "reply=line:100", "echo=line"] {
        let (shared, options) = (shared(), options(service, "", ""));
        let mut site = site(&shared, &options);
        let slot = site.connect();
        site.script().hold_sends = true;
        let piece = "abcdefg\n".repeat(1_000);
        for _ in 0..200 {
            site.script().arrive(slot, piece.as_bytes());
        }
        // Less than the idle time-out.
        site.turns(500);
        let taken = site.script().taken_bytes;
        assert!(taken < 600_000, "{service}: {taken}");
        site.script().release();
        site.turns(6_000);
        assert_eq!(site.script().taken_bytes, 1_600_000, "{service}");
        let sent = site.seen(slot).sent.len() as u64;
        let expected = if service.starts_with("echo") {
            1_600_000
        } else {
            200_000 * 101
        };
        assert_eq!(sent, expected, "{service}");
    }
}

#[test]
fn what_a_peer_wants_back_is_bounded() {
    let (shared, options) = (shared(), options("echo=line", "", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    for _ in 0..20 {
        site.say(slot, "x".repeat(64 * 1024)).turns(2);
        if site.seen(slot).closed {
            break;
        }
    }
    assert!(site.seen(slot).closed);
    assert_eq!(totals(&site).connections_overflowed, 1);
    assert_eq!(site.worker.service.room.shared_bytes(), 0);
}

#[test]
fn the_end_of_a_connection_ends_a_message() {
    for (service, text) in [("echo=until-close", "abc"), ("reply=until-close:ok", "ok")] {
        let (shared, options) = (shared(), options(service, "1ms", ""));
        let mut site = site(&shared, &options);
        let slot = site.connect();
        site.say(slot, "ab").turns(2).say(slot, "c").turns(2);
        assert!(site.text(slot).is_empty());
        site.script().happen(Event::Ended(slot));
        site.turns(4);
        let counted = (site.text(slot), site.seen(slot).closed);
        assert_eq!(counted, (text.to_owned(), true));
        assert_eq!(totals(&site).replies, 1);
    }
    // Answers that wait are sent to a peer that has ended its side.
    let (shared, options) = (shared(), options("reply=line:ok\\n", "5ms", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    site.script().arrive(slot, b"a\nb");
    site.script().happen(Event::Ended(slot));
    site.turns(5);
    let counted = (site.text(slot), site.seen(slot).closed);
    assert_eq!(counted, ("ok\n".to_owned(), true));
}

#[test]
fn answers_of_lost_connections_are_counted() {
    let (shared, options) = (shared(), options("reply=line:ok\\n", "5ms", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    site.script().arrive(slot, b"a\nb\n");
    site.script()
        .happen(Event::ReceiveFailed(slot, libc::ECONNRESET));
    site.turns(2);
    assert!(site.seen(slot).closed);
    let counters = totals(&site);
    assert_eq!((counters.messages, counters.messages_abandoned), (2, 2));
    assert_eq!(site.worker.wakes.count(), 0);
}

#[test]
fn messages_that_are_framed_wrongly_end_their_connection() {
    let (shared, options) = (shared(), options("reply=len8-5:ok", "", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    site.say(slot, "\u{1}").turns(2);
    assert!(site.seen(slot).closed);
    assert_eq!(totals(&site).connections_misframed, 1);
}

#[test]
fn idle_connections_are_closed_and_keep_nothing() {
    let (shared, options) = (shared(), options("reply=line:ok\\n", "", ""));
    let mut site = site(&shared, &options);
    let slot = site.connect();
    site.say(slot, "a\n").turns(2);
    let connection = &site.worker.connections[slot.0 as usize];
    assert!(connection.work.is_none());
    assert!(size_of::<TcpConnection>() <= 48);
    site.turns(2);
    for _ in 0..90 {
        site.script().now_ns += 1_000 * MS;
        site.turns(1);
    }
    assert!(site.seen(slot).closed);
    assert_eq!(totals(&site).connections_timed_out, 1);
}
