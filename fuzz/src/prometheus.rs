//! Target: pages of metrics, and what selects among them.

/// Takes the input as a selector, a line end, and a page.
pub fn prometheus(data: &[u8]) {
    brunt_probe::fuzz_prometheus(data);
}
