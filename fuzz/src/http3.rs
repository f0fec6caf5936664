//! Target: streams of HTTP/3.

/// Takes the first two bytes as whose stream it is and what limits hold, and the others as the
/// stream, whole and in pieces: the pieces must not matter, and every byte must be accounted for.
pub fn http3(data: &[u8]) {
    brunt_proto::http3::fuzz_http3(data);
}
