//! A server that keeps connections open and every request that it was sent, byte for byte, and
//! whose replies take a while: for comparing what two clients send.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the server takes for a reply.
const REPLY_TIME: Duration = Duration::from_millis(10);
const BODY: &str = "Hello, World!\n";

/// The server; it lives as long as the test process.
#[derive(Clone, Debug)]
pub(crate) struct Keeping {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<BTreeSet<String>>>,
    /// The requests by connections, in the order in which these were opened. The order of first
    /// requests would be the one in which the threads that serve them run.
    sequences: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Keeping {
    /// Starts it. What it answers follows from the path: `/500` an error, `/close` closes the
    /// connection behind the reply, `/silent` gets none.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let requests = Arc::new(Mutex::new(BTreeSet::new()));
        let server = Self {
            address,
            requests,
            sequences: Arc::default(),
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                let number = serving.add_connection();
                std::thread::spawn(move || serving.serve(number, stream));
            }
        });
        server
    }

    /// The URL of `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The different requests that came, with the server's address as `ADDRESS`.
    pub(crate) fn requests(&self) -> BTreeSet<String> {
        let requests = self.requests.lock();
        let requests = requests.unwrap_or_else(PoisonError::into_inner);
        let address = self.address.to_string();
        requests
            .iter()
            .map(|request| request.replace(&address, "ADDRESS"))
            .collect()
    }

    /// The requests of each connection that had any, in their order.
    pub(crate) fn sequences(&self) -> Vec<Vec<String>> {
        let mut sequences = self.lock_sequences().clone();
        sequences.retain(|requests| !requests.is_empty());
        sequences
    }

    /// The number of a connection that has been opened.
    fn add_connection(&self) -> usize {
        let mut sequences = self.lock_sequences();
        sequences.push(Vec::new());
        sequences.len() - 1
    }

    fn lock_sequences(&self) -> MutexGuard<'_, Vec<Vec<String>>> {
        let sequences = self.sequences.lock();
        sequences.unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, number: usize, mut stream: TcpStream) -> Option<()> {
        let mut received = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = end_of_head(&received) {
                    break end;
                }
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).ok().filter(|&count| count > 0)?;
                received.extend_from_slice(&buffer[..count]);
            };
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let end = end + length_of_body(&head);
            while received.len() < end {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).ok().filter(|&count| count > 0)?;
                received.extend_from_slice(&buffer[..count]);
            }
            let request: Vec<u8> = received.drain(..end).collect();
            let request = String::from_utf8_lossy(&request).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            self.lock_sequences()[number].push(request.clone());
            let mut requests = self.requests.lock();
            if let Ok(requests) = &mut requests {
                requests.insert(request);
            }
            drop(requests);
            if path == "/silent" {
                continue;
            }
            std::thread::sleep(REPLY_TIME);
            let status = if path == "/500" { "500 Oops" } else { "200 OK" };
            let is_old = head.contains(" HTTP/1.0\r\n");
            let is_kept = head.contains("\r\nConnection: Keep-Alive\r\n");
            let close = match path.as_str() {
                "/close" => "Connection: close\r\n",
                _ if is_old && is_kept => "Connection: keep-alive\r\n",
                _ => "",
            };
            let length = BODY.len();
            let body = if head.starts_with("HEAD ") { "" } else { BODY };
            let head = format!("HTTP/1.1 {status}\r\nServer: keeping/1\r\n");
            let reply = format!("{head}Content-Length: {length}\r\n{close}\r\n{body}");
            stream.write_all(reply.as_bytes()).ok()?;
            if path == "/close" || (is_old && !is_kept) {
                return None;
            }
        }
    }
}

fn length_of_body(head: &str) -> usize {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length
        .and_then(|(_, length)| length.parse().ok())
        .unwrap_or(0)
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let place = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    Some(place + 4)
}
