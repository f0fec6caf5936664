//! `brunt tcpkali`: command lines of tcpkali against the reference server.

use std::io::Write;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::PATIENCE;
use crate::support::listener::serve_each;
use crate::support::process::{start, success};
use crate::support::serve::ServeTcp;

#[test]
fn connections_go_to_several_servers_and_are_replaced() {
    let [one, other] = [0, 1].map(|_| ServeTcp::start("sink=line", &[]));
    let line = "tcpkali -c4 -r20 -T1s --channel-lifetime 500ms -em x\\n";
    let run = success(&format!("{line} {} {}", one.address, other.address));
    assert!(run.stderr.starts_with("Destination: "), "{run:?}");
    for server in [one, other] {
        let counters = server.settled();
        assert!((36..=44).contains(&counters.messages), "{counters:?}");
        // Two connections, each used for 10 messages, and one before the run.
        let accepted = counters.connections_accepted;
        assert!((5..=7).contains(&accepted), "{counters:?}");
    }
}

/// A server that goes on talking on each connection, and never closes one. It gives the connections
/// whose client has said that it ends them.
fn talking() -> (std::net::SocketAddr, Receiver<()>) {
    let (sender, ended) = channel();
    let address = serve_each(move |mut stream| {
        let mut reading = stream.try_clone().expect("a descriptor");
        let sender = sender.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut reading, &mut std::io::sink());
            let _ = sender.send(());
        });
        while stream.write_all(b"more").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    (address, ended)
}

#[test]
fn a_second_signal_ends_the_wait_for_a_server_that_does_not_close() {
    // Without it, the wait takes a second. A busy machine may be as slow once, and not each time.
    let took = (0..5).map(|_| {
        let (address, ended) = talking();
        let process = start(&format!("tcpkali -c2 -r20 -T1h -em x\\n {address}"));
        process.wait_for_message("Ramped up to 2 connections.");
        process.signal(Signal::INT);
        // That of before the run, too.
        for _ in 0..3 {
            ended.recv_timeout(PATIENCE).expect("connections end");
        }
        let since = Instant::now();
        let outcome = process.wait_interrupted().exits(0);
        assert!(outcome.stdout.contains("Test duration: "), "{outcome:?}");
        since.elapsed()
    });
    let shortest = took.min().expect("some");
    assert!(shortest < Duration::from_millis(600), "{shortest:?}");
}
