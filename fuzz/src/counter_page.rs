//! Target: pages of `--verify-url`, and the paths into them.

/// Takes the input as a path, a line end, and a page.
pub fn counter_page(data: &[u8]) {
    brunt_probe::fuzz_counter_page(data);
}
