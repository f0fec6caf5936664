//! Hostile peers of QUIC, and of the network below it: what is between brunt and a server drops,
//! changes, repeats and adds datagrams. Servers that break HTTP/3 itself are in `robustness`.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::process::brunt;
use crate::support::run::RunReport;
use crate::support::serve::Serve;

use super::{ATTEMPTS, Brief, Pace, Patient, TIME_MAX, check_each, expect_endured};

const DATAGRAM_BYTES_MAX: usize = 65_535;
/// The largest datagram that UDP over IPv4 carries.
const SENT_BYTES_MAX: usize = 65_507;
/// One connection in so many is hostile; not the first one, which is there before the run.
const HOSTILE_EVERY: u64 = 4;
/// More bytes than the packet with a server's hello has: keys, and an acknowledgement.
const HELLO_BYTES_MAX: usize = 200;
/// Datagrams in which a handshake is over, each way.
const HANDSHAKE: u64 = 12;

/// What comes of a datagram: others, to brunt or to the server.
#[derive(Default)]
struct Passed {
    to_brunt: Vec<Vec<u8>>,
    to_server: Vec<Vec<u8>>,
}

/// A connection as it is seen between its ends.
#[derive(Default)]
struct Flow {
    from_brunt: u64,
    from_server: u64,
    /// The first datagram of brunt.
    first: Vec<u8>,
    /// The first datagram of the server.
    answer: Vec<u8>,
    held_back: Option<Vec<u8>>,
}

/// What becomes of a datagram.
type Change = fn(&mut Flow, &[u8], &mut Passed);

#[derive(Clone, Copy)]
struct Behaviour {
    name: &'static str,
    pace: Pace,
    /// The kinds of failure that come of it, as in streams.
    kinds: &'static [&'static str],
    from_brunt: Change,
    from_server: Change,
}

fn forward(_flow: &mut Flow, datagram: &[u8], passed: &mut Passed) {
    passed.to_server.push(datagram.to_vec());
}

fn answer(_flow: &mut Flow, datagram: &[u8], passed: &mut Passed) {
    passed.to_brunt.push(datagram.to_vec());
}

fn nothing(_flow: &mut Flow, _datagram: &[u8], _passed: &mut Passed) {}

/// The ids in a packet with a long header (RFC 8999 section 5.1): destination and source.
fn ids(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = datagram.get(5..).filter(|_| datagram[0] & 0x80 != 0)?;
    let (length, rest) = rest.split_first()?;
    let (destination, rest) = rest.split_at_checked((*length).into())?;
    let (length, rest) = rest.split_first()?;
    Some((destination, rest.get(..(*length).into())?))
}

/// A packet with a long header of this version that answers `datagram`.
fn long_header(first: u8, version: u32, datagram: &[u8]) -> Option<Vec<u8>> {
    let (destination, source) = ids(datagram)?;
    let mut packet = vec![first];
    packet.extend_from_slice(&version.to_be_bytes());
    packet.push(source.len() as u8);
    packet.extend_from_slice(source);
    packet.push(destination.len() as u8);
    packet.extend_from_slice(destination);
    Some(packet)
}

/// Version negotiation (RFC 9000 section 17.2.1).
fn versions(datagram: &[u8], listed: &[u32]) -> Option<Vec<u8>> {
    let mut packet = long_header(0xc0, 0, datagram)?;
    for version in listed {
        packet.extend_from_slice(&version.to_be_bytes());
    }
    Some(packet)
}

/// A Retry whose integrity tag is wrong (RFC 9000 section 17.2.5).
fn retry(datagram: &[u8]) -> Option<Vec<u8>> {
    let mut packet = long_header(0xf0, 1, datagram)?;
    packet.extend_from_slice(&[0x5a; 64]);
    Some(packet)
}

/// Garbage of a packet with a short header, as a stateless reset looks.
fn noise(bytes: usize) -> Vec<u8> {
    let mut noise: Vec<u8> = (0..bytes).map(|at| (at * 37 % 251) as u8).collect();
    if let Some(first) = noise.first_mut() {
        *first = 0x47;
    }
    noise
}

const TIMED_OUT: &[&str] = &["handshake_timed_out"];
const LATE: &[&str] = &["timed_out", "unanswered"];

/// Nothing of the server's comes through; brunt is answered so, until it gives up.
const fn impostor(name: &'static str, from_brunt: Change) -> Behaviour {
    Behaviour {
        name,
        pace: Patient,
        kinds: TIMED_OUT,
        from_brunt,
        from_server: nothing,
    }
}

/// What the server sends comes so, and brunt puts up with it.
const fn server(name: &'static str, from_server: Change) -> Behaviour {
    Behaviour {
        name,
        pace: Brief,
        kinds: &[],
        from_brunt: forward,
        from_server,
    }
}

/// What the server sends comes so, and brunt gives up.
const fn silenced(name: &'static str, from_server: Change) -> Behaviour {
    Behaviour {
        pace: Patient,
        kinds: TIMED_OUT,
        ..server(name, from_server)
    }
}

const BEHAVIOURS: &[Behaviour] = &[
    impostor("http3: silence", nothing),
    impostor("http3: garbage as an answer", |_, _, passed| {
        passed.to_brunt.push(noise(1_200));
    }),
    impostor("http3: a thousand bytes for each", |_, _, passed| {
        passed.to_brunt.extend((0..100).map(|_| noise(1_000)));
    }),
    Behaviour {
        pace: Brief,
        kinds: &["quic_version"],
        ..impostor("http3: no common version", |_, datagram, passed| {
            let versions = versions(datagram, &[0x6b33_43cf, 0xff00_001d]);
            passed.to_brunt.extend(versions);
        })
    },
    impostor("http3: a thousand versions", |_, datagram, passed| {
        let mut listed = vec![0x0a0a_0a0a; 1_000];
        listed.push(1);
        passed.to_brunt.extend(versions(datagram, &listed));
    }),
    impostor("http3: a forged Retry for each", |_, datagram, passed| {
        passed.to_brunt.extend(retry(datagram));
    }),
    impostor(
        "http3: empty packets of every kind",
        |_, datagram, passed| {
            for first in [0xc0, 0xd0, 0xe0, 0xf0, 0x40] {
                passed.to_brunt.extend(long_header(first, 1, datagram));
            }
        },
    ),
    silenced("http3: changed datagrams", |_, datagram, passed| {
        let mut changed = datagram.to_vec();
        if let Some(last) = changed.last_mut() {
            *last ^= 1;
        }
        if let Some(byte) = changed.get_mut(datagram.len() / 2) {
            *byte ^= 0x80;
        }
        if let Some(byte) = changed.get_mut(40) {
            *byte ^= 0x80;
        }
        passed.to_brunt.push(changed);
    }),
    silenced(
        "http3: silence in the handshake",
        |flow, datagram, passed| {
            if flow.from_server == 1 {
                // The server's hello at most: what comes behind it in the datagram is changed.
                let mut changed = datagram.to_vec();
                for byte in changed.iter_mut().skip(HELLO_BYTES_MAX) {
                    *byte ^= 1;
                }
                passed.to_brunt.push(changed);
            }
        },
    ),
    Behaviour {
        name: "http3: nothing is heard behind the handshake",
        pace: Patient,
        kinds: LATE,
        from_brunt: |flow, datagram, passed| {
            if flow.from_brunt <= HANDSHAKE {
                passed.to_server.push(datagram.to_vec());
            }
        },
        from_server: answer,
    },
    server(
        "http3: the first one again and again",
        |flow, datagram, passed| {
            passed.to_brunt.push(datagram.to_vec());
            passed.to_brunt.extend((0..20).map(|_| flow.answer.clone()));
        },
    ),
    server(
        "http3: in another order",
        |flow, datagram, passed| match flow.held_back.take() {
            Some(earlier) => passed.to_brunt.extend([datagram.to_vec(), earlier]),
            None if flow.from_server % 8 == 1 => flow.held_back = Some(datagram.to_vec()),
            None => passed.to_brunt.push(datagram.to_vec()),
        },
    ),
    server(
        "http3: garbage behind each packet",
        |_, datagram, passed| {
            let mut longer = datagram.to_vec();
            if has_long_header(datagram) {
                longer.extend_from_slice(&noise(200));
            }
            passed.to_brunt.push(longer);
        },
    ),
    server("http3: resets without a token", |_, datagram, passed| {
        passed.to_brunt.extend((21..60).map(noise));
        passed.to_brunt.push(datagram.to_vec());
    }),
    server("http3: the largest datagrams", |_, datagram, passed| {
        passed
            .to_brunt
            .extend([noise(SENT_BYTES_MAX), datagram.to_vec()]);
    }),
];

fn has_long_header(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0x80 != 0)
}

/// A connection between its ends.
struct Between {
    socket: UdpSocket,
    flow: Flow,
    is_hostile: bool,
}

/// Passes datagrams on between clients of `front` and `server`, until `is_over`.
fn pass_on(
    behaviour: Behaviour,
    front: &UdpSocket,
    server: SocketAddr,
    is_over: &AtomicBool,
    hostile: &AtomicU64,
) {
    let mut connections: HashMap<SocketAddr, Between> = HashMap::new();
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    while !is_over.load(Ordering::Relaxed) {
        // A datagram of brunt's, or a moment without one.
        if let Ok((bytes, client)) = front.recv_from(&mut buffer) {
            let number = connections.len() as u64;
            let between = connections.entry(client).or_insert_with(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
                socket.connect(server).expect("a connected socket");
                socket.set_nonblocking(true).expect("it does not wait");
                let is_hostile = number % HOSTILE_EVERY == HOSTILE_EVERY - 2;
                hostile.fetch_add(u64::from(is_hostile), Ordering::Relaxed);
                Between {
                    socket,
                    flow: Flow::default(),
                    is_hostile,
                }
            });
            let datagram = &buffer[..bytes];
            between.flow.from_brunt += 1;
            if between.flow.first.is_empty() {
                between.flow.first = datagram.to_vec();
            }
            let change = if between.is_hostile {
                behaviour.from_brunt
            } else {
                forward
            };
            let mut passed = Passed::default();
            change(&mut between.flow, datagram, &mut passed);
            send(&passed, (front, client), &between.socket);
        }
        for (client, between) in &mut connections {
            while let Ok(bytes) = between.socket.recv(&mut buffer) {
                let datagram = &buffer[..bytes];
                between.flow.from_server += 1;
                if between.flow.answer.is_empty() {
                    between.flow.answer = datagram.to_vec();
                }
                let change = if between.is_hostile {
                    behaviour.from_server
                } else {
                    answer
                };
                let mut passed = Passed::default();
                change(&mut between.flow, datagram, &mut passed);
                send(&passed, (front, *client), &between.socket);
            }
        }
    }
}

fn send(passed: &Passed, (front, client): (&UdpSocket, SocketAddr), back: &UdpSocket) {
    // What is lost here is sent again.
    for datagram in &passed.to_brunt {
        let _ = front.send_to(datagram, client);
    }
    for datagram in &passed.to_server {
        let _ = back.send(datagram);
    }
}

fn check_one(behaviour: Behaviour, backend: &str, server: SocketAddr) {
    let pace = behaviour.pace.options();
    let front = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = front.local_addr().expect("an address");
    front
        .set_read_timeout(Some(Duration::from_millis(1)))
        .expect("a time-out");
    let (is_over, hostile) = (AtomicBool::new(false), AtomicU64::new(0));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| pass_on(behaviour, &front, server, &is_over, &hostile));
        let outcome = (0..ATTEMPTS).find_map(|_| {
            let outcome = brunt(&format!(
                "--format json --backend {backend} -t 1 -c 4 --warmup 0s --think-time 2ms \
                 --drain 300ms --watch off {pace} --http3 -k https://{address}/"
            ));
            // On a loaded machine the first connection, which is a quiet one, may be late.
            (outcome.code != Some(2)).then_some(outcome)
        });
        is_over.store(true, Ordering::Relaxed);
        outcome.expect("a run began")
    });
    assert!(outcome.took < TIME_MAX, "it took {:?}", outcome.took);
    assert!(hostile.load(Ordering::Relaxed) > 0, "it was not hostile");
    expect_endured(&RunReport::of(outcome), behaviour.kinds);
}

fn check(backend: &str) {
    let (_process, server) = Serve::start_http3();
    let named = BEHAVIOURS.iter();
    let named = named.map(|&behaviour| (behaviour.name, behaviour));
    check_each(backend, named.collect(), |behaviour| {
        check_one(behaviour, backend, server);
    });
}

#[test]
fn http3_on_uring() {
    check("uring");
}

#[test]
fn http3_on_epoll() {
    check("epoll");
}
