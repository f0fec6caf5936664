//! The running server over real sockets, with each protocol and each backend.

mod http1;
mod http2_tls;
mod tcp;

use std::net::TcpStream;
use std::time::Duration;

use brunt_io::clock;
use brunt_server::{
    BackendKind, Counters, ListenAddress, Running, ServeOptions, pattern_byte, start,
};

const BACKENDS: [Option<BackendKind>; 2] = [Some(BackendKind::Uring), Some(BackendKind::Epoll)];
const MS: u64 = 1_000_000;
/// A hanging server fails the test instead of holding it up.
const LIMIT_NS: u64 = 60_000 * MS;

/// A server on a port that the kernel chooses.
fn serve(change: impl FnOnce(&mut ServeOptions)) -> Running {
    let mut options = ServeOptions::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    change(&mut options);
    start(&options).unwrap()
}

fn stream_to(address: &ListenAddress) -> TcpStream {
    let ListenAddress::Tcp(address) = address else {
        panic!("a TCP address")
    };
    let stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_nanos(LIMIT_NS));
    stream.set_read_timeout(limit).unwrap();
    stream.set_write_timeout(limit).unwrap();
    stream
}

/// The counters once they are as far as `reached`: what only the server sees may take a while.
fn wait_for(server: &Running, reached: impl Fn(&Counters) -> bool) -> Counters {
    let deadline_ns = clock::now_ns() + LIMIT_NS;
    loop {
        let totals = server.counters();
        if reached(&totals) {
            return totals;
        }
        assert!(clock::now_ns() < deadline_ns, "{totals:?}");
        std::thread::yield_now();
    }
}

fn letters(bytes: u64) -> Vec<u8> {
    (0..bytes).map(pattern_byte).collect()
}
