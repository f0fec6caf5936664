//! Target: replies that are fetched beside the load, and their chunks.

/// Takes the input as the bytes of a connection.
pub fn page(data: &[u8]) {
    brunt_probe::fuzz_page(data);
}
