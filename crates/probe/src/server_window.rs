//! What the reference server counts of streams at the edges of the window, by its own clock: a
//! thread that reads its page twice.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_io::clock;
use brunt_io::threads;
use brunt_io::tls_config::PageTls;
use brunt_load::ServerCounter;
use brunt_record::{ServerWindow, Window};
use serde_json::Value;

use crate::fetch::Page;
use crate::server_count::ServerCountError;

/// Limit of one reading, nanoseconds: one that is later says little about the edge.
const LIMIT_NS: u64 = 1_000_000_000;
/// How long an end of the window that an interrupt sets may go unnoticed, at most.
const NOTICE_NS: u64 = 100_000_000;

/// One reading of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowReading {
    clock_ns: u64,
    bytes_received: u64,
    bytes_sent: u64,
}

/// Reads the page.
#[derive(Debug)]
pub struct WindowReader {
    page: Page,
}

impl WindowReader {
    /// A reader of the server's window at a page; resolves its host and connects to nothing.
    ///
    /// # Errors
    ///
    /// The page cannot be asked for.
    pub fn new(counter: &ServerCounter, tls: &PageTls) -> Result<Self, ServerCountError> {
        Ok(Self {
            page: Page::new(&counter.target, tls)?,
        })
    }

    /// A reading of the page. Absent where it cannot be read, or is not one of the reference server
    /// with raw TCP.
    fn read(&self) -> Option<WindowReading> {
        find(&self.page.get(LIMIT_NS).ok()?)
    }
}

pub(crate) fn find(page: &str) -> Option<WindowReading> {
    let page: Value = serde_json::from_str(page).ok()?;
    let tcp = page.get("tcp")?;
    let number = |name| tcp.get(name)?.as_u64();
    Some(WindowReading {
        clock_ns: number("clock_ns")?,
        bytes_received: number("bytes_received")?,
        bytes_sent: number("bytes_sent")?,
    })
}

fn between(first: WindowReading, second: WindowReading) -> Option<ServerWindow> {
    Some(ServerWindow {
        interval_ns: second
            .clock_ns
            .checked_sub(first.clock_ns)
            .filter(|ns| *ns > 0)?,
        bytes_received: second.bytes_received.checked_sub(first.bytes_received)?,
        bytes_sent: second.bytes_sent.checked_sub(first.bytes_sent)?,
    })
}

/// The handle on the reading thread, which ends when this is dropped.
#[derive(Debug)]
pub struct EdgesReader {
    orders: Sender<Window>,
    thread: JoinHandle<Option<ServerWindow>>,
}

impl EdgesReader {
    /// Starts the thread, which waits for [`Self::begin`]. `end_ns` gives the end of the window
    /// that an interrupt has set, `u64::MAX` for none.
    ///
    /// # Errors
    ///
    /// The system refuses another thread.
    pub fn start(
        reader: WindowReader,
        end_ns: impl Fn() -> u64 + Send + 'static,
    ) -> io::Result<Self> {
        let (orders, window) = mpsc::channel();
        let body = move || follow(&reader, &window, &end_ns);
        let thread = threads::spawn("brunt-edges", body)?;
        Ok(Self { orders, thread })
    }

    /// Publishes the window.
    pub fn begin(&self, window: Window) {
        // A thread that is gone has read nothing, which is what it gives.
        let _ = self.orders.send(window);
    }

    /// The window is over, or never came: what was read at its edges. Absent where either could
    /// not be read.
    pub fn finish(self) -> Option<ServerWindow> {
        drop(self.orders);
        self.thread.join().ok().flatten()
    }
}

/// The thread's body. Whoever gives up the window has left for good.
fn follow(
    reader: &WindowReader,
    orders: &Receiver<Window>,
    cut_ns: &dyn Fn() -> u64,
) -> Option<ServerWindow> {
    threads::precise_timers();
    let window = orders.recv().ok()?;
    let mut has_left = false;
    let mut wait_until = |edge_ns: &dyn Fn() -> u64| {
        while !has_left {
            let Some(left_ns) = edge_ns().checked_sub(clock::now_ns()) else {
                return;
            };
            let pause = Duration::from_nanos(left_ns.min(NOTICE_NS));
            has_left = orders.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected);
        }
    };
    wait_until(&|| window.start_ns);
    if clock::now_ns() < window.start_ns {
        return None;
    }
    let first = reader.read()?;
    // Where the workers are done before, so is the window.
    wait_until(&|| window.end_ns.min(cut_ns()));
    between(first, reader.read()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::tests::{ok, serve, target};

    fn page(clock_ns: u64, bytes: u64) -> String {
        format!(
            r#"{{"requests":1,"tcp":{{"bytes_received":{bytes},"bytes_sent":7,"messages":0,
            "clock_ns":{clock_ns}}}}}"#
        )
    }

    fn reader(pages: &[String]) -> WindowReader {
        let address = serve(pages.iter().map(|page| ok(page)).collect());
        let counter = ServerCounter {
            target: target(address),
            path: None,
        };
        WindowReader::new(&counter, &PageTls::default()).expect("a page")
    }

    #[test]
    fn two_readings_make_a_window() {
        let reader = reader(&[page(1_000, 5_000), page(3_000, 9_000)]);
        let edges = EdgesReader::start(reader, || u64::MAX).expect("a thread");
        let now_ns = clock::now_ns();
        edges.begin(Window {
            start_ns: now_ns,
            end_ns: now_ns + 20_000_000,
        });
        let expected = ServerWindow {
            interval_ns: 2_000,
            bytes_received: 4_000,
            bytes_sent: 0,
        };
        // The thread comes to its end by itself, or is told to.
        assert_eq!(edges.finish(), Some(expected));
    }

    #[test]
    fn what_is_no_window_gives_none() {
        let now_ns = clock::now_ns();
        let far_ns = now_ns + 3_600_000_000_000;
        let good = [page(1_000, 5_000), page(3_000, 9_000)];
        // (pages, start of the window, end)
        for (pages, window) in [
            (&good[..], None),
            (&good[..], Some((far_ns, far_ns))),
            (&["{}".to_owned(), page(1, 1)][..], Some((now_ns, now_ns))),
            // The server was started anew, or its clock stands.
            (&[page(2, 1), page(1, 1)][..], Some((now_ns, now_ns))),
            (&[page(2, 1), page(2, 1)][..], Some((now_ns, now_ns))),
            (&[page(1, 2), page(2, 1)][..], Some((now_ns, now_ns))),
        ] {
            let edges = EdgesReader::start(reader(pages), || u64::MAX).expect("a thread");
            if let Some((start_ns, end_ns)) = window {
                edges.begin(Window { start_ns, end_ns });
            }
            assert_eq!(edges.finish(), None, "{pages:?}");
        }
    }
}
