//! Target: the reference server's request reader.

/// Reads the input as requests, at once and in pieces: the pieces must not matter.
pub fn server_request(data: &[u8]) {
    brunt_server::fuzz_requests(data);
}
