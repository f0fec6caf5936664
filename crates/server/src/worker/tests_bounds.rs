//! What clients that ask for much and read nothing cost: memory, and the time of the others.

use std::sync::Arc;

use brunt_io::backend::Slot;
use brunt_proto::websocket::Opcode;

use super::tests::{SETTINGS, Site, get};
use super::tests_websocket::{KEY, frame, text, upgrade};
use super::{Shared, WorkerSettings};

/// Room for output in these tests, and clients that share it.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
const CLIENTS: usize = 300;
/// What a turn may send at most: what it goes on with, and what it answers of what came in it.
const TURN_BYTES: usize = 4 << 20;

/// A request, and what follows it ten times.
fn tenfold(request: String, asked: &[u8]) -> Vec<u8> {
    [request.as_bytes(), &asked.repeat(10)].concat()
}

/// What many clients ask for, with the least that each of them gets once it reads.
fn demands() -> Vec<(&'static str, Vec<u8>, usize)> {
    let long = |path| tenfold(upgrade(path), &text("x"));
    let pipelined = |path| tenfold(String::new(), get(path).as_bytes());
    let echoed = frame(Opcode::Binary, &vec![b'x'; 1 << 18], Some(KEY));
    vec![
        ("messages", long("/websocket/bytes/1048576"), 10 << 20),
        ("frames", long("/websocket/chunked/1048576"), 10 << 20),
        ("half a frame", long("/websocket/truncate/1048576"), 1 << 19),
        (
            "echo",
            [upgrade("/websocket").as_bytes(), &echoed].concat(),
            1 << 18,
        ),
        ("chunks", pipelined("/chunked/1048576"), 10 << 20),
        ("bodies", pipelined("/bytes/16000"), 160_000),
    ]
}

fn site() -> Site {
    let settings = WorkerSettings {
        connections_max: 10_000,
        output_bytes_max: OUTPUT_BYTES_MAX,
        input_bytes_max: 1 << 30,
        ..SETTINGS
    };
    Site::with_settings(&Arc::new(Shared::new(1)), settings)
}

#[test]
fn output_that_nobody_reads_is_bounded() {
    for (what, asked, least) in demands() {
        let mut site = site();
        site.script().hold_sends = true;
        // What the kernel takes: an upgrade.
        site.script().taken_first = 200;
        let slots: Vec<Slot> = (0..CLIENTS).map(|_| site.connect()).collect();
        for slot in &slots {
            site.say(*slot, &asked).turns(1);
            let held_bytes = site.script().held_bytes();
            assert!(held_bytes <= OUTPUT_BYTES_MAX, "{what}: {held_bytes}");
        }
        site.turns(20);
        assert!(site.script().held_bytes() <= OUTPUT_BYTES_MAX, "{what}");
        assert_eq!(site.totals().connections_overflowed, 0, "{what}");
        // Somebody who reads is answered beside them.
        site.script().hold_sends = false;
        let quiet = site.connect();
        for path in ["/bytes/1000", "/counters", "/chunked/20000"] {
            site.say(quiet, get(path)).turns(200);
        }
        let answered = site.text(quiet);
        assert_eq!(answered.matches("HTTP/1.1 200 OK").count(), 3, "{what}");
        assert!(
            answered.ends_with("0\r\nBrunt-Length: 20000\r\n\r\n"),
            "{what}"
        );
        // And so are they, once they read.
        for slot in &slots[1..] {
            site.lose(*slot);
        }
        site.script().release();
        for _ in 0..100_000 {
            site.turns(1);
            if site.seen(slots[0]).sent.len() >= least {
                break;
            }
        }
        assert!(site.seen(slots[0]).sent.len() >= least, "{what}");
        site.turns(10).lose(slots[0]);
        assert_eq!(site.worker.service.output.shared_bytes(), 0, "{what}");
    }
}

#[test]
fn clients_that_ask_for_much_hold_up_nobody() {
    for (what, asked, least) in demands() {
        let mut site = site();
        let slots: Vec<Slot> = (0..CLIENTS).map(|_| site.connect()).collect();
        for slot in &slots {
            site.script().arrive(*slot, &asked);
        }
        let quiet = site.connect();
        site.script().arrive(quiet, get("/").as_bytes());
        let mut sent_bytes = site.script().sent_bytes();
        for turn in 0..4 {
            site.turns(1);
            let before_bytes = std::mem::replace(&mut sent_bytes, site.script().sent_bytes());
            let turn_bytes = sent_bytes - before_bytes;
            // The first pieces, of all of them, are in one turn, since they ask in one.
            let first_bytes = if turn == 0 { CLIENTS * (64 << 10) } else { 0 };
            assert!(
                turn_bytes <= TURN_BYTES + first_bytes,
                "{what}: {turn_bytes}"
            );
        }
        assert!(!site.seen(quiet).sent.is_empty(), "{what}");
        if least >= 10 << 20 {
            assert!(sent_bytes < CLIENTS * least / 10, "{what}: still at it");
            // One more is answered in the turn in which it asks.
            site.say(quiet, get("/bytes/100"));
            assert_eq!(site.seen(quiet).sends.len(), 2, "{what}");
        }
    }
}
