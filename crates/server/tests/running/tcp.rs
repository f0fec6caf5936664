//! Raw TCP over real sockets, on every backend, in clear text and over TLS.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;

use brunt_io::threads;
use brunt_server::{
    BackendKind, ListenAddress, Running, ServeOptions, TcpCounters, TcpOptions, TlsOptions, start,
};

use crate::http2_tls::{client, secure};
use crate::{BACKENDS, letters, stream_to};

fn options(backend: Option<BackendKind>, service: &str) -> ServeOptions {
    let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
    ServeOptions {
        workers: NonZeroU32::new(2).unwrap(),
        backend,
        tcp: Some(TcpOptions::new(address.clone(), service.parse().unwrap())),
        ..ServeOptions::new(address)
    }
}

fn connect(server: &Running) -> TcpStream {
    stream_to(server.tcp_address().unwrap())
}

/// The counters as a client of HTTP gets them.
fn counters(server: &Running) -> TcpCounters {
    let mut stream = stream_to(server.address());
    let request = b"GET /counters HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let body = reply.split("\r\n\r\n").nth(1).unwrap();
    let counters: brunt_server::Counters = serde_json::from_str(body).unwrap();
    assert_eq!(counters.connections_accepted, counters.counters_requests);
    counters.tcp.unwrap()
}

/// Waits until the counters say what is expected.
fn settle(server: &Running, is_expected: impl Fn(&TcpCounters) -> bool) -> TcpCounters {
    for _ in 0..2_000 {
        let counters = counters(server);
        if is_expected(&counters) {
            return counters;
        }
        threads::sleep(5_000_000);
    }
    panic!("{:?}", counters(server))
}

#[test]
fn an_echo_sends_back_what_it_reads() {
    for backend in BACKENDS {
        for service in ["echo", "echo=fixed=5"] {
            let server = start(&options(backend, service)).unwrap();
            let mut stream = connect(&server);
            // More than fits into the buffers of both ends, so that the echo has to wait.
            let sent = letters(30_000_000);
            let mut writing = stream.try_clone().unwrap();
            let writer = threads::spawn("writer", {
                let sent = sent.clone();
                move || {
                    writing.write_all(&sent).unwrap();
                    writing.shutdown(Shutdown::Write).unwrap();
                }
            });
            let writer = writer.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            writer.join().unwrap();
            assert!(received == sent, "{backend:?} {service}");
            let counters = settle(&server, |counters| counters.connections_live == 0);
            assert_eq!(counters.bytes_received, sent.len() as u64);
            assert_eq!(counters.bytes_sent, sent.len() as u64);
            let messages = if service == "echo" { 0 } else { 6_000_000 };
            assert_eq!((counters.messages, counters.replies), (messages, messages));
        }
    }
}

#[test]
fn a_sink_counts_every_byte_and_discards_them_in_the_kernel() {
    for backend in BACKENDS {
        for (service, messages) in [("sink", 0), ("sink=delim=z", 384_615)] {
            let server = start(&options(backend, service)).unwrap();
            let mut streams: Vec<_> = (0..4).map(|_| connect(&server)).collect();
            for stream in &mut streams {
                stream.write_all(&letters(10_000_000)).unwrap();
            }
            // The bytes of a read are counted before its messages.
            let counters = settle(&server, |counters| {
                counters.bytes_received == 40_000_000 && counters.messages >= 4 * messages
            });
            assert_eq!(counters.connections_live, 4);
            assert_eq!(counters.messages, 4 * messages);
            let discarded = if messages == 0 { 40_000_000 } else { 0 };
            assert_eq!(counters.bytes_discarded, discarded, "{backend:?}");
            drop(streams);
            settle(&server, |counters| counters.connections_live == 0);
            let counters = server.stop().unwrap().tcp.unwrap();
            assert_eq!((counters.connections_accepted, counters.bytes_sent), (4, 0));
        }
    }
}

#[test]
fn it_listens_on_a_unix_socket_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("raw");
    for backend in BACKENDS {
        for service in ["echo", "sink"] {
            let mut options = options(backend, service);
            options.tcp.as_mut().unwrap().address = ListenAddress::Unix(path.clone());
            let server = start(&options).unwrap();
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(b"hello").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut received = String::new();
            stream.read_to_string(&mut received).unwrap();
            let expected = if service == "echo" { "hello" } else { "" };
            assert_eq!(received, expected);
            let counters = settle(&server, |counters| counters.connections_live == 0);
            // Such a socket cannot throw bytes away.
            assert_eq!((counters.bytes_received, counters.bytes_discarded), (5, 0));
        }
    }
    assert!(!path.exists());
}

#[test]
fn it_speaks_tls_too() {
    for backend in BACKENDS {
        let mut options = options(backend, "echo");
        options.tls = Some(TlsOptions::default());
        let server = start(&options).unwrap();
        let config = client(&server, &[], None);
        let mut stream = secure(connect(&server), &config, "localhost").unwrap();
        for count in [1, 100, 50_000] {
            let sent = letters(count);
            stream.write_all(&sent).unwrap();
            let mut received = vec![0; sent.len()];
            stream.read_exact(&mut received).unwrap();
            assert!(received == sent, "{backend:?}");
        }
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
        let counters = server.stop().unwrap().tcp.unwrap();
        assert_eq!(counters.bytes_received, 50_101);
        assert_eq!(counters.bytes_sent, 50_101);
        assert_eq!(counters.connections_accepted, 1);
        assert_eq!(counters.connections_live, 0);
    }
}
