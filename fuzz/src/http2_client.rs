//! Target: the client of HTTP/2.

/// Takes the first two bytes as what the client is to do, and the others as those of a server,
/// whole and in pieces: the pieces must not matter, and every byte must be accounted for.
pub fn http2_client(data: &[u8]) {
    brunt_proto::http2::fuzz_http2(data);
}
