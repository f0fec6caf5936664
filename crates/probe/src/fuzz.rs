//! What fuzzing calls: the parsers of pages beside the load, and of the kernel's files. Each takes
//! any bytes and panics when a rule is broken.

use std::path::Path;

use crate::fetch::{Failure, ReplyReader};
use crate::server::listener;
use crate::{cgroup, prometheus, server_count, server_window, sock_diag};

/// Takes the input as a selector, a line end, and a page of metrics: samples have names and labels
/// of the page, and a sum has samples.
pub fn fuzz_prometheus(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (typed, page) = text.split_once('\n').unwrap_or(("", &text));
    for sample in prometheus::samples_of(page, |_| true) {
        assert!(!sample.name.is_empty() && page.contains(sample.name));
        for (name, value) in &sample.labels {
            assert!(page.contains(name) && value.len() <= page.len());
        }
    }
    for typed in [typed, "a", "a{b=\"c\"}"] {
        let Some(selector) = prometheus::Selector::parse(typed) else {
            continue;
        };
        let name_end = typed.find('{').unwrap_or(typed.len());
        let name = typed[..name_end].trim();
        if selector.sum(page).is_some() {
            assert!(prometheus::samples_of(page, |found| found == name).count() > 0);
        }
    }
}

/// Takes the input as the path of a value, a line end, and the page of `--verify-url`: what is
/// found there is a count, and what is wrong is said in words of a bounded number.
pub fn fuzz_counter_page(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (path, page) = text.split_once('\n').unwrap_or(("", &text));
    for path in [None, Some(path), Some("a"), Some("a.0"), Some("requests")] {
        match server_count::find(page, path, "http://h/") {
            Ok(reading) => assert!(reading.own_reads <= 1),
            Err(error) => {
                let asked = path.map_or(0, str::len);
                let words = error.to_string();
                let named = server_count::NAMED_MAX * 4 * (server_count::PATH_MAX + 5);
                assert!(words.len() <= 400 + asked + named, "{words}");
            }
        }
        let _ = server_window::find(page);
    }
}

/// Takes the input as a reply that is fetched beside the load. Whole, byte by byte and cut in the
/// middle, it is the same body or the same refusal, and no longer than what came.
pub fn fuzz_page(data: &[u8]) {
    let whole = body_in_pieces(data, data.len().max(1));
    for length in [1, 7, data.len() / 2 + 1] {
        assert_eq!(body_in_pieces(data, length), whole, "pieces of {length}");
    }
    if let Ok(body) = whole {
        assert!(body.len() <= data.len());
    }
}

/// The body of a reply that comes in pieces of this length, or the kind of failure.
fn body_in_pieces(data: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let mut reader = ReplyReader::default();
    for piece in data.chunks(length).chain([&[][..]]) {
        match reader.receive(piece) {
            Ok(Some(body)) => return Ok(body),
            Ok(None) => {}
            Err(Failure::Link(_)) => return Err("lost".to_owned()),
            Err(failure) => return Err(format!("{failure:?}")),
        }
    }
    Err("the end of the connection is no end".to_owned())
}

/// Takes the input as tables of sockets: `/proc/net/tcp`, `/proc/net/unix`, and netlink's.
pub fn fuzz_socket_tables(data: &[u8]) {
    let listeners = listener::parse_tcp(data);
    assert!(listeners.len() <= listener::LINES_MAX);
    for address in [([127, 0, 0, 1], 80).into(), ([0; 16], 8_080).into()] {
        let best = listener::best_matches(&listeners, address);
        assert!(best.len() <= listeners.len());
    }
    let paths = listener::parse_unix(data, Path::new("/run/x"));
    assert!(paths.len() <= listener::LINES_MAX);
    let link = String::from_utf8_lossy(data);
    if let Some(inode) = listener::socket_inode(Path::new(&*link)) {
        assert!(link.contains(&inode.to_string()) || link.contains('+') || link.contains("[0"));
    }
    messages(data);
}

/// Takes the input as what the kernel sent.
pub(crate) fn messages(data: &[u8]) {
    let mut sockets = 0;
    let _ = sock_diag::parse(data, &mut |_| sockets += 1);
    let least = sock_diag::HEADER_BYTES + sock_diag::MESSAGE_BYTES;
    assert!(sockets <= data.len() / least);
}

/// Takes the input as files of a cgroup.
pub fn fuzz_cgroup(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let stat = cgroup::parse_stat(text);
    assert!(cgroup::since(stat, stat) == Default::default());
    let (first, second) = text.split_once(' ').unwrap_or((text, ""));
    if let Some(cpus) = cgroup::quota_cpus(first, second) {
        assert!(cpus.is_finite() && cpus > 0.0, "{cpus}");
    }
    if let Some(rest) = cgroup::below(first, second) {
        assert!(first.ends_with(rest.trim_end_matches('/')) || first.contains(rest));
        assert!(!rest.starts_with('/') && rest.split('/').all(|name| name != ".."));
    }
}
