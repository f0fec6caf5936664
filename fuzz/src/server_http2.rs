//! Target: a connection of the reference server that speaks HTTP/2.

/// Takes the input as what a client sends, at once and in pieces: the pieces must not matter.
pub fn server_http2(data: &[u8]) {
    brunt_server::fuzz_http2(data);
}
