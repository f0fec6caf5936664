//! Target: field blocks of HTTP/2 (HPACK).

/// Takes the input as field blocks, each after a byte with its length. What keeps whole fields and
/// what keeps their meaning alone must agree, and fields that were read must come back when they
/// are written.
pub fn hpack(data: &[u8]) {
    brunt_proto::http2::fuzz_hpack(data);
}
