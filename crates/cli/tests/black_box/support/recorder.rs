//! A server that answers everything alike and keeps what it was sent, byte for byte.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::PATIENCE;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) from: IpAddr,
    /// Head and body.
    pub(crate) text: String,
}

/// The server: one request per connection, one connection at a time.
#[derive(Debug)]
pub(crate) struct Recorder {
    address: SocketAddr,
    requests: Receiver<Recorded>,
}

impl Recorder {
    /// Starts it; it lives as long as the test process.
    pub(crate) fn start() -> Self {
        Self::answering(REPLY)
    }

    /// Starts it with an answer of the test's own, behind which it closes the connection.
    pub(crate) fn answering(reply: &[u8]) -> Self {
        let reply = reply.to_vec();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serve(stream, &sender, &reply).is_none() {
                    return;
                }
            }
        });
        Self { address, requests }
    }

    /// The URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What came until now.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.requests.try_iter().collect()
    }
}

/// Serves one connection. None when nobody is interested any more.
fn serve(mut stream: TcpStream, requests: &Sender<Recorded>, reply: &[u8]) -> Option<()> {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let from = stream.peer_addr().ok().map(|peer| peer.ip());
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&bytes) {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            // It was only looked whether somebody is there.
            _ => return Some(()),
        }
    }
    let recorded = Recorded {
        from: from?,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    };
    // Before the reply, so that a client that has its reply finds its request here.
    requests.send(recorded).ok()?;
    let _ = stream.write_all(reply);
    Some(())
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    body.len() >= length.unwrap_or(0)
}
