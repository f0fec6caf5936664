//! Servers that are hostile on one connection, through a whole run: the quiet connections of the
//! same worker keep being answered, and what is sent to a server that does not read is bounded.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brunt_load::{HttpChoice, Plan};
use brunt_record::Run;

use crate::common::{self, Kind, MS, S, change_request, choice, lifetime, many, plan, serve_each};

crate::common::on_both_kernels![
    an_endless_body_leaves_the_other_connections_their_answers,
    endless_pings_leave_the_other_connections_their_answers,
    streams_allowed_and_forbidden_without_end_break_nothing,
    sends_to_a_server_that_answers_without_reading_are_bounded,
];

/// How long a connection of these servers waits for anything at most.
const LIFE: Duration = Duration::from_secs(20);
/// Connections of a run.
const CONNECTIONS: u32 = 4;
/// Beside a flood, the quiet connections must get at least one in this many of the answers that
/// they get without one. They are three of four connections, and a loaded machine may have little
/// CPU for them during a flood.
const ANSWERS_PART: u64 = 10;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Serves one connection until the client closes it.
type Serve = fn(&mut TcpStream) -> io::Result<()>;

/// A server whose connections are quiet but for one at a time, which is hostile. The first one,
/// with which the run finds out what is there, is quiet.
fn server(quiet: Serve, hostile: Option<Serve>) -> SocketAddr {
    let is_taken = Arc::new(AtomicBool::new(false));
    serve_each(move |before, mut stream| {
        let is_free = || before > 0 && !is_taken.swap(true, Ordering::Relaxed);
        let hostile = hostile.filter(|_| is_free());
        stream.set_read_timeout(Some(LIFE)).expect("an option");
        stream.set_write_timeout(Some(LIFE)).expect("an option");
        stream.set_nodelay(true).expect("an option");
        // However it ended, the client has seen it.
        let _ = hostile.unwrap_or(quiet)(&mut stream);
        drop(stream);
        if hostile.is_some() {
            is_taken.store(false, Ordering::Relaxed);
        }
    })
}

/// A run of a second whose connections think between two requests, so that it is their number and
/// not the CPU that bounds the answers.
fn run(kind: Kind, server: SocketAddr, change: impl FnOnce(&mut Plan)) -> Run {
    let mut plan = plan(&format!("http://{server}/"), choice(kind));
    plan.load.connections = many(CONNECTIONS);
    plan.traffic.think_time_ns = 10 * MS;
    plan.load.warmup_ns = 0;
    plan.load.stop.duration_ns = Some(S);
    plan.load.drain_limit_ns = 300 * MS;
    change(&mut plan);
    common::run(plan)
}

fn answers(run: &Run) -> u64 {
    lifetime(run).replies.total()
}

/// Compares the answers beside one hostile connection with those without it.
fn expect_answers(kind: Kind, http: HttpChoice, quiet: Serve, hostile: Serve) -> Run {
    let [alone, beside] = [None, Some(hostile)].map(|hostile| {
        run(kind, server(quiet, hostile), |plan| {
            plan.connection.protocol = http.into()
        })
    });
    let (alone, answered) = (answers(&alone), answers(&beside));
    assert!(alone >= 2 * ANSWERS_PART, "{alone} answers");
    assert!(
        answered * ANSWERS_PART >= alone,
        "{answered} answers beside a flood, {alone} without"
    );
    beside
}

fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut last = [0; 4];
    while last != *b"\r\n\r\n" {
        last.rotate_left(1);
        stream.read_exact(&mut last[3..])?;
    }
    Ok(())
}

fn answer_each(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        read_request(stream)?;
        stream.write_all(ANSWER)?;
    }
}

fn endless_body(stream: &mut TcpStream) -> io::Result<()> {
    read_request(stream)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n")?;
    loop {
        stream.write_all(&[b'x'; 64 << 10])?;
    }
}

fn an_endless_body_leaves_the_other_connections_their_answers(kind: Kind) {
    expect_answers(kind, HttpChoice::HTTP1, answer_each, endless_body);
}

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` in HPACK's static table.
const OK: u8 = 0x88;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn greet(stream: &mut TcpStream) -> io::Result<()> {
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    stream.write_all(&frame(SETTINGS, ACK, 0, &[]))
}

/// Answers streams that have come.
fn answer_streams(stream: &mut TcpStream) -> io::Result<()> {
    greet(stream)?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        stream.read_exact(&mut vec![0; length as usize])?;
        if header[3] == HEADERS {
            let id = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
            stream.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, id, &[OK]))?;
        }
    }
}

/// Writes `bytes` again and again, and reads what comes.
fn flood(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    greet(stream)?;
    let mut reader = stream.try_clone()?;
    std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()));
    let bytes = bytes.repeat((32 << 10) / bytes.len());
    loop {
        stream.write_all(&bytes)?;
    }
}

fn endless_pings_leave_the_other_connections_their_answers(kind: Kind) {
    expect_answers(kind, HttpChoice::HTTP2, answer_streams, |stream| {
        flood(stream, &frame(PING, 0, 0, b"12345678"))
    });
}

fn max_streams(count: u32) -> Vec<u8> {
    let payload = [&3_u16.to_be_bytes()[..], &count.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

fn streams_allowed_and_forbidden_without_end_break_nothing(kind: Kind) {
    let run = expect_answers(kind, HttpChoice::HTTP2, answer_streams, |stream| {
        flood(stream, &[max_streams(0), max_streams(1)].concat())
    });
    // The window is as long as planned, and nothing is waited for beyond the drain.
    assert_eq!(run.window_ns, S);
    let broken = common::broken(&run, &[]);
    assert!(
        broken.iter().all(|finding| finding.id != "L1"),
        "{broken:#?}"
    );
}

/// Bytes of a request: a send of so many has no completion event on io_uring.
const REQUEST_BYTES: u64 = 15 << 10;

/// What the server's socket is to hold; the kernel takes twice as much.
const RECEIVE_BYTES: usize = 64 << 10;

/// Answers each request without reading it: what has come is known by how much waits, until the
/// socket takes no more, and from then on by the time.
fn answer_without_reading(stream: &mut TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_recv_buffer_size(&*stream, RECEIVE_BYTES)?;
    let mut before = 0;
    loop {
        for _ in 0..20 {
            let waiting = rustix::io::ioctl_fionread(&*stream)?;
            if waiting >= before + REQUEST_BYTES {
                before = waiting;
                break;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        stream.write_all(ANSWER)?;
    }
}

/// The most that the kernel keeps of what is sent on a connection.
fn send_buffer_bytes_max() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_wmem").expect("procfs");
    let last = text.split_ascii_whitespace().next_back().expect("numbers");
    last.parse().expect("a number")
}

fn sends_to_a_server_that_answers_without_reading_are_bounded(kind: Kind) {
    let run = run(kind, server(answer_without_reading, None), |plan| {
        plan.traffic.think_time_ns = 0;
        plan.load.connections = many(1);
        change_request(plan, |request| request.method = "POST".to_owned());
        change_request(plan, |request| {
            request.body = vec![b'x'; REQUEST_BYTES as usize]
        });
        // Long enough for more answers than requests can be sent.
        plan.load.stop.duration_ns = Some(3 * S);
    });
    let all = lifetime(&run);
    assert!(all.replies.total() > 0, "{all:?}");
    // What both sockets of a connection hold, and what waits in brunt.
    let held_bytes = send_buffer_bytes_max() + 2 * RECEIVE_BYTES as u64;
    let sends_max = (held_bytes / REQUEST_BYTES + 64) * all.connections_opened;
    assert!(
        all.requests_sent <= sends_max,
        "{} requests sent on {} connections",
        all.requests_sent,
        all.connections_opened
    );
}
