//! The running server over real sockets, on every backend.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use brunt_io::clock;
use brunt_server::{
    BackendKind, Counters, ListenAddress, Running, ServeError, ServeOptions, start,
};
use brunt_testkit::malformed;

use crate::{BACKENDS, MS, letters, stream_to, wait_for};

const NULL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn serve(backend: Option<BackendKind>, workers: u32) -> Running {
    crate::serve(|options| {
        options.backend = backend;
        options.workers = NonZeroU32::new(workers).unwrap();
    })
}

fn connect(server: &Running) -> TcpStream {
    stream_to(server.address())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")
}

/// Reads exactly as many bytes as `expected` has, and compares.
fn expect(stream: &mut impl Read, expected: &[u8], what: &str) {
    let mut bytes = vec![0; expected.len()];
    stream
        .read_exact(&mut bytes)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(
        bytes == expected,
        "{what}: {}",
        String::from_utf8_lossy(&bytes)
    );
}

/// Sends `request` on a connection of its own and reads to the end of the connection.
fn read_to_end(server: &Running, request: &str) -> Vec<u8> {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // A reset may follow the last byte.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// The counters as a client gets them.
fn counters(server: &Running) -> Counters {
    let request = "GET /counters HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let reply = String::from_utf8(read_to_end(server, request)).unwrap();
    serde_json::from_str(reply.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[test]
fn answers_come_as_documented() {
    malformed::install();
    for backend in BACKENDS {
        let server = serve(backend, 1);
        let mut stream = connect(&server);
        let sized = |bytes: u64| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
            [head.into_bytes(), letters(bytes)].concat()
        };
        let interim = [b"HTTP/1.1 100 Continue\r\n\r\n", NULL.as_bytes()].concat();
        let kept: [(&str, Vec<u8>); 3] = [
            ("/", NULL.into()),
            ("/bytes/5m", sized(5 << 20)),
            ("/interim/1", interim),
        ];
        for (path, expected) in &kept {
            stream.write_all(get(path).as_bytes()).unwrap();
            expect(&mut stream, expected, path);
        }
        let closed: [(&str, Vec<u8>); 4] = [
            (
                "/http10",
                [b"HTTP/1.0 200 OK\r\n\r\n", &letters(26)[..]].concat(),
            ),
            ("/reset", vec![]),
            ("/malformed/empty", vec![]),
            (
                "/malformed/short-length",
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n01234567".into(),
            ),
        ];
        for (path, expected) in &closed {
            assert!(read_to_end(&server, &get(path)) == *expected, "{path}");
            // Whatever goes before on the connection still arrives.
            let before = get("/") + &get("/") + &get(path);
            let expected = [NULL.as_bytes(), NULL.as_bytes(), expected].concat();
            if *path != "/reset" {
                assert!(
                    read_to_end(&server, &before) == expected,
                    "{path} behind two others"
                );
            }
        }
        server.stop().unwrap();
    }
}

#[test]
fn a_thousand_connections_are_counted_exactly() {
    for backend in BACKENDS {
        let server = serve(backend, 2);
        let mut streams: Vec<TcpStream> = (0..1_000).map(|_| connect(&server)).collect();
        let seven = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nabcdefg";
        let absent = NULL.replace("200 OK", "404 Not Found");
        let rounds = [("/", NULL), ("/bytes/7", seven), ("/status/404", &absent)];
        for (path, answer) in rounds {
            for stream in &mut streams {
                stream.write_all(get(path).as_bytes()).unwrap();
            }
            for stream in &mut streams {
                expect(stream, answer.as_bytes(), "one of 1,000");
            }
        }
        let totals = counters(&server);
        assert_eq!(totals.connections_live, 1_001, "with the one that asks");
        assert_eq!((totals.requests, totals.replies), (3_000, 3_000));
        assert_eq!(totals.faults, 0);
        assert_eq!(totals.requests_by_method["GET"], 3_000);
        assert_eq!(totals.replies_by_status[&200], 2_000);
        assert_eq!(totals.replies_by_status[&404], 1_000);
        let asked: usize = rounds.iter().map(|(path, _)| get(path).len()).sum();
        assert_eq!(totals.bytes_received, 1_000 * asked as u64);
        assert_eq!(totals.bytes_sent, 1_000 * (38 + 45 + 45));
        drop(streams);
        let totals = wait_for(&server, |totals| totals.connections_live == 0);
        assert!(totals.connections_accepted > 1_000);
        server.stop().unwrap();
    }
}

#[test]
fn unix_sockets_serve_and_go_away() {
    let directory = std::env::temp_dir();
    for (index, backend) in BACKENDS.into_iter().enumerate() {
        let path = directory.join(format!("brunt-server-{}-{index}.sock", std::process::id()));
        let address = ListenAddress::Unix(path.clone());
        // Left behind by a server that is gone.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let workers = NonZeroU32::new(2).unwrap();
        let options = ServeOptions {
            workers,
            backend,
            ..ServeOptions::new(address)
        };
        let server = start(&options).unwrap();
        assert!(
            matches!(start(&options), Err(ServeError::Listen { .. })),
            "in use"
        );
        for _ in 0..10 {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            stream.write_all(get("/").as_bytes()).unwrap();
            expect(&mut stream, NULL.as_bytes(), "unix");
        }
        assert_eq!(server.stop().unwrap().replies, 10);
        assert!(!path.exists());
    }
}

#[test]
fn a_port_in_use_is_refused_even_with_several_workers() {
    let server = serve(None, 2);
    for workers in [1, 2] {
        let workers = NonZeroU32::new(workers).unwrap();
        let options = ServeOptions {
            workers,
            ..ServeOptions::new(server.address().clone())
        };
        assert!(matches!(start(&options), Err(ServeError::Listen { .. })));
    }
    server.stop().unwrap();
}

#[test]
fn stopping_takes_little_time_and_closes_connections() {
    // A worker that spins has no sleep in which it looks up.
    for spin in [false, true] {
        for backend in BACKENDS {
            let server = crate::serve(|options| {
                (options.spin, options.backend) = (spin, backend);
            });
            let mut stream = connect(&server);
            for path in ["/delay/1ms", "/", "/delay/500us"] {
                stream.write_all(get(path).as_bytes()).unwrap();
                expect(&mut stream, NULL.as_bytes(), path);
            }
            let asked_ns = clock::now_ns();
            let totals = server.stop().unwrap();
            // About 100 ms by design; far more only on a machine that is busy with other things.
            assert!(clock::now_ns() - asked_ns < 2_000 * MS);
            assert_eq!((totals.replies, totals.replies_delayed), (3, 2));
            assert_eq!(totals.connections_live, 0);
            assert!(totals.lateness_ns_max.is_some());
            assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
        }
    }
}
