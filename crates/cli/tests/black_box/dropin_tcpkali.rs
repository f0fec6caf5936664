//! `brunt tcpkali`: command lines of tcpkali against the reference server.

use crate::support::process::brunt;
use crate::support::serve::ServeTcp;

#[test]
fn what_is_sent_at_a_rate_is_what_the_server_counts() {
    let server = ServeTcp::start("echo=line", &[]);
    let line = format!(
        "tcpkali -c4 -r50 -T1s -em \\{{connection.uid}}PING\\n --latency-marker \\n \
         --latency-connect --latency-percentiles 50,100 {}",
        server.address
    );
    let run = brunt(&line);
    assert_eq!(run.code, Some(0), "{run:?}");
    let counters = server.settled();
    assert!((195..=205).contains(&counters.messages), "{counters:?}");
    assert_eq!(counters.messages, counters.replies);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let expected = [
        "Total data sent:     1200 bytes (1200 bytes)",
        "Total data received: 1200 bytes (1200 bytes)",
        "Bandwidth per channel: 0.005⇅ Mbps (0.6 kBps)",
        "Aggregate bandwidth: 0.010↓, 0.010↑ Mbps",
        "Packet rate estimate: 200.0↓, 200.0↑ (1↓, 1↑ TCP MSS/op)",
        "TCP connect latency at percentiles: ",
        "Message latency at percentiles: ",
        "Test duration: 1 s.",
    ];
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start), "{line}: {start}: {run:?}");
    }
    assert!(lines[6].ends_with(" ms (50/100%)"), "{}", lines[6]);
    assert_eq!(lines.len(), 8, "{run:?}");
    assert!(run.stderr.starts_with("brunt: "), "{run:?}");
}

#[test]
fn without_a_rate_messages_flow_and_the_server_gets_what_was_sent() {
    let server = ServeTcp::start("sink=line", &[]);
    let line = format!("tcpkali -T300ms -1 hello -em x\\n {}", server.address);
    let run = brunt(&line);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.stdout
            .contains("Total data received: 0 bytes (0 bytes)"),
        "{run:?}"
    );
    assert!(run.stdout.contains("Test duration: 0.3 s."), "{run:?}");
    let counters = server.settled();
    assert!(counters.messages > 100, "{counters:?}");
    assert_eq!(counters.bytes_received, 2 * counters.messages + 5);
}

#[test]
fn what_does_not_run_ends_as_tcpkali_does() {
    for (line, code, says) in [
        ("tcpkali --version", 0, "tcpkali version"),
        ("tcpkali -h", 64, "Usage: tcpkali"),
        ("tcpkali -m x", 64, "Usage: tcpkali"),
        (
            "tcpkali --explain -c2 -r5 -m x h:1",
            0,
            "brunt tcp -c 2 -d 10000ms -r 10 -m x",
        ),
    ] {
        let outcome = brunt(line);
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stdout.starts_with(says), "{outcome:?}");
    }
    let refused = brunt("tcpkali --statsd -m x h:1");
    assert_eq!(refused.code, Some(64));
    assert!(refused.stderr.contains("docs/drop-ins.md"), "{refused:?}");
    let unreachable = brunt("tcpkali -T200ms -m x 127.0.0.1:1");
    assert_eq!(unreachable.code, Some(1), "{unreachable:?}");
}
