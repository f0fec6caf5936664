//! A Prometheus exporter that tells of a process that does not exist, and uses a quarter of a
//! second of CPU from each reading to the next.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::PATIENCE;

/// The exporter: one request per connection, one connection at a time.
#[derive(Debug)]
pub(crate) struct Exporter {
    address: SocketAddr,
}

impl Exporter {
    /// Memory that the process is said to have.
    pub(crate) const RESIDENT_BYTES: u64 = 12_345_678;

    /// Starts it; it lives as long as the test process.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            let mut readings = 0;
            for stream in listener.incoming().flatten() {
                readings += u64::from(serve(stream, readings).is_some());
            }
        });
        Self { address }
    }

    /// The URL of `path`; all have the same metrics.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Answers one request. None when nothing was asked.
fn serve(mut stream: TcpStream, readings: u64) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
    let metrics = format!(
        "# TYPE process_cpu_seconds_total counter\n\
         process_cpu_seconds_total {}\n\
         process_resident_memory_bytes {}\n\
         process_open_fds 12\n",
        10.0 + 0.25 * readings as f64,
        Exporter::RESIDENT_BYTES
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        metrics.len()
    );
    let _ = stream.write_all((head + &metrics).as_bytes());
    Some(())
}
