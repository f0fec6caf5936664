//! `brunt tcpkali`: command lines of tcpkali against the reference server.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::PATIENCE;
use crate::support::listener::serve_each;
use crate::support::process::{Outcome, start, success};
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

#[test]
fn what_is_listened_for_is_counted() {
    let free_port = || {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("bound").port()
    };
    let port = free_port();
    let listening = start(&format!("tcpkali -l {port} -T 1h"));
    listening.wait_for_message(&format!("Listen on: [0.0.0.0]:{port}\n"));
    let run = success(&format!("tcpkali -r100 -T1s -m PING 127.0.0.1:{port}"));
    let bytes = |outcome: &Outcome, row| {
        let line = outcome.stdout.lines().nth(row);
        let bytes = line.and_then(|line| line.split(['(', ')']).nth(1));
        bytes.unwrap_or_default().to_owned()
    };
    let taken = listening.wait_interrupted().exits(64);
    assert_eq!(bytes(&taken, 1), bytes(&run, 0), "{taken:?}");
    assert!(bytes(&taken, 1).ends_with(" bytes"), "{taken:?}");
    let port = free_port();
    let both = success(&format!(
        "tcpkali -T300ms -r100 -m PING -l {port} 127.0.0.1:{port}"
    ));
    assert!(!both.stdout.contains("received: 0 bytes"), "{both:?}");
}

#[test]
fn metrics_go_to_statsd() {
    let server = ServeTcp::start("echo=line", &[]);
    let statsd = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = statsd.local_addr().expect("bound").port();
    let line = format!(
        "tcpkali -c2 -r50 -T1s -em PING\\n --latency-marker PING --latency-connect --statsd \
         --statsd-port {port} --statsd-namespace load --latency-percentiles 95 {}",
        server.address
    );
    success(&line);
    statsd.set_nonblocking(true).expect("a socket");
    let mut buffer = [0; 1_024];
    let mut text = String::new();
    while let Ok(length) = statsd.recv(&mut buffer) {
        text.push_str(std::str::from_utf8(&buffer[..length]).expect("text"));
    }
    let sum = |name: &str| {
        let start = format!("load.{name}:");
        let values = text
            .lines()
            .filter_map(|line| line.strip_prefix(start.as_str()));
        let values = values.map(|value| value.split('|').next().expect("a value").parse::<f64>());
        values.map(|value| value.expect("a number")).sum::<f64>()
    };
    // What came after the last interval is in the run alone.
    let counters = server.settled();
    for (name, most) in [
        ("traffic.data.sent", counters.bytes_received),
        ("traffic.data.rcvd", counters.bytes_sent),
        ("traffic.msgs.rcvd", counters.messages),
        ("connections.opened", 2),
    ] {
        let sum = sum(name);
        let is_counted = sum > 0.0 && sum <= most as f64;
        assert!(is_counted, "{name}: {sum} of {most}: {text}");
    }
    for name in ["connect.95", "message.95", "message.max"] {
        assert!(sum(&format!("latency.{name}")) > 0.0, "{name}: {text}");
    }
    assert!(text.starts_with("load.connections.opened:0|c\n"), "{text}");
    let last = "load.traffic.msgs.rcvd:0|c\nload.traffic.msgs.sent:0|c\n";
    assert!(text.ends_with(last), "{text}");
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
