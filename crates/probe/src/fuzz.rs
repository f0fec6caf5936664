//! What fuzzing calls: the parsers of pages beside the load, and of the kernel's files. Each takes
//! any bytes and panics when a rule is broken.

use crate::{cgroup, fetch, prometheus, server, server_count, server_window, sock_diag};

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
        server_count::fuzz_page(page, path);
        server_window::fuzz_page(page);
    }
}

/// Takes the input as a reply that is fetched beside the load. Whole, byte by byte and cut in the
/// middle, it is the same body or the same refusal, and no longer than what came.
pub fn fuzz_page(data: &[u8]) {
    fetch::fuzz_reply(data);
}

/// Takes the input as tables of sockets: `/proc/net/tcp`, `/proc/net/unix`, and netlink's.
pub fn fuzz_socket_tables(data: &[u8]) {
    server::fuzz_socket_tables(data);
    sock_diag::fuzz_messages(data);
}

/// Takes the input as files of a cgroup.
pub fn fuzz_cgroup(data: &[u8]) {
    cgroup::fuzz_files(&String::from_utf8_lossy(data));
}
