//! The harness: the binary, the servers that it loads, and a small HTTP client, all bounded in
//! time.

pub(crate) mod aioquic;
pub(crate) mod caddy;
pub(crate) mod certificates;
pub(crate) mod chromium;
pub(crate) mod documents;
pub(crate) mod foreign;
pub(crate) mod haproxy;
pub(crate) mod hostile;
pub(crate) mod http;
pub(crate) mod keeping;
pub(crate) mod kosoku;
pub(crate) mod listener;
pub(crate) mod malformed;
pub(crate) mod nats;
pub(crate) mod nghttpd;
pub(crate) mod nghttpx;
pub(crate) mod nginx;
pub(crate) mod process;
pub(crate) mod recorder;
pub(crate) mod redis;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod simulated;
pub(crate) mod sshd;
pub(crate) mod stored;
pub(crate) mod websocket;

use std::time::{Duration, Instant};

/// Longest life of anything that a test starts or waits for: generous, so that a loaded machine
/// does not matter, and short enough that a hang is reported as one.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How often something that is waited for is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Both kernel interfaces.
pub(crate) const BACKENDS: [&str; 2] = ["uring", "epoll"];

/// Waits until `ready` gives something; fails the test when that takes too long.
pub(crate) fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK);
    }
}

/// Does `each` for all of `items` at once: for what mostly waits. A panic is passed on.
pub(crate) fn at_once<T: Send>(items: impl IntoIterator<Item = T>, each: impl Fn(T) + Sync) {
    let each = &each;
    std::thread::scope(|scope| {
        let items = items.into_iter();
        let threads: Vec<_> = items.map(|item| scope.spawn(move || each(item))).collect();
        for thread in threads {
            if let Err(reason) = thread.join() {
                std::panic::resume_unwind(reason);
            }
        }
    });
}

/// The only row of a CSV report, by column.
pub(crate) fn csv_row(text: &str) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let columns = reader.headers().expect("a header").clone();
    let rows: Vec<_> = reader
        .records()
        .map(|row| row.expect("a whole row"))
        .collect();
    assert_eq!(rows.len(), 1, "{text}");
    let cells = columns.iter().zip(&rows[0]);
    cells
        .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
        .collect()
}
