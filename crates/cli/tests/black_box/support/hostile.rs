//! A server that is hostile on one connection at a time and answers well on all others.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a connection of the server lives at most.
const LIFE: Duration = Duration::from_secs(20);
/// Bytes written at once by whoever writes without end.
const FLOOD_BYTES: usize = 32 << 10;

/// What serves a connection until it returns; then the connection is closed.
pub(crate) type Serve = Arc<dyn Fn(&mut Peer) -> io::Result<()> + Send + Sync>;

/// A client of the server.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// Hostile connections before this one.
    pub(crate) number: u32,
}

/// One thing that a hostile server does. All stop where the client closes.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads a request of HTTP/1.1.
    Request,
    /// Writes this.
    Say(Vec<u8>),
    /// Writes this, a byte at a time with pauses.
    Drip(Vec<u8>, Duration),
    /// Writes this again and again, and reads nothing.
    Flood(Vec<u8>),
    /// Writes this again and again, and reads what comes.
    FloodAndRead(Vec<u8>),
    /// Reads what comes.
    Read,
    /// Waits for the client, without reading, to close.
    Wait,
    /// Says that nothing more will come, and reads.
    HalfClose,
    /// Resets the connection.
    Reset,
    /// Anything else.
    Do(fn(&mut Peer) -> io::Result<()>),
}

impl Peer {
    /// Carries out `steps`, and closes.
    pub(crate) fn follow(&mut self, steps: &[Step]) -> io::Result<()> {
        steps.iter().try_for_each(|step| match step {
            Step::Request => self.read_request(),
            Step::Say(bytes) => self.stream.write_all(bytes),
            Step::Drip(bytes, pause) => bytes.iter().try_for_each(|byte| {
                self.stream.write_all(&[*byte])?;
                std::thread::sleep(*pause);
                Ok(())
            }),
            Step::Flood(bytes) => self.flood(bytes),
            Step::FloodAndRead(bytes) => {
                let reader = self.stream.try_clone()?;
                std::thread::spawn(move || read_all(reader));
                self.flood(bytes)
            }
            Step::Read => read_all(self.stream.try_clone()?),
            Step::Wait => self.wait(),
            Step::HalfClose => {
                self.stream.shutdown(std::net::Shutdown::Write)?;
                read_all(self.stream.try_clone()?)
            }
            Step::Reset => {
                self.reset();
                Ok(())
            }
            Step::Do(act) => act(self),
        })
    }

    /// Reads to the end of a request's head.
    pub(crate) fn read_request(&mut self) -> io::Result<()> {
        let mut last = [0; 4];
        while last != *b"\r\n\r\n" {
            last.rotate_left(1);
            self.stream.read_exact(&mut last[3..])?;
        }
        Ok(())
    }

    /// Has the close of the connection be a reset.
    pub(crate) fn reset(&self) {
        let outcome = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        outcome.expect("a socket lingers");
    }

    fn flood(&mut self, bytes: &[u8]) -> io::Result<()> {
        let flood = bytes.repeat(FLOOD_BYTES.div_ceil(bytes.len()));
        let end = Instant::now() + LIFE;
        while Instant::now() < end {
            self.stream.write_all(&flood)?;
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let mut closed = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let limit = Timespec {
            tv_sec: LIFE.as_secs() as i64,
            tv_nsec: 0,
        };
        poll(&mut closed, Some(&limit))?;
        Ok(())
    }
}

fn read_all(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// The server.
#[derive(Debug)]
pub(crate) struct Hostile {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    /// Hostile connections so far.
    hostile: Arc<AtomicU32>,
}

impl Hostile {
    /// Starts it: the first connection, with which brunt finds out what is there, is served by
    /// `quiet`, and then all but one at a time.
    pub(crate) fn start(quiet: Serve, hostile: Serve) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Self {
            address: listener.local_addr().expect("it is bound"),
            is_over: Arc::default(),
            hostile: Arc::default(),
        };
        let (is_over, count) = (Arc::clone(&server.is_over), Arc::clone(&server.hostile));
        std::thread::spawn(move || {
            let is_taken = Arc::new(AtomicBool::new(false));
            for (accepted, stream) in listener.incoming().flatten().enumerate() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let is_hostile = accepted > 0 && !is_taken.swap(true, Ordering::Relaxed);
                let number = if is_hostile {
                    count.fetch_add(1, Ordering::Relaxed)
                } else {
                    0
                };
                let serve = Arc::clone(if is_hostile { &hostile } else { &quiet });
                let is_taken = Arc::clone(&is_taken);
                std::thread::spawn(move || {
                    let _ = prepare(&stream);
                    let mut peer = Peer { stream, number };
                    // However it ended, the client has seen it.
                    let _ = serve(&mut peer);
                    drop(peer);
                    if is_hostile {
                        is_taken.store(false, Ordering::Relaxed);
                    }
                });
            }
        });
        server
    }

    /// How many connections were hostile.
    pub(crate) fn count(&self) -> u32 {
        self.hostile.load(Ordering::Relaxed)
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIFE))?;
    stream.set_write_timeout(Some(LIFE))
}
