//! Target: field sections of HTTP/3 (QPACK).

/// Takes the input as a field section. What gives whole fields and what gives their meaning alone
/// must agree, and fields that were read must come back when they are written.
pub fn qpack(data: &[u8]) {
    brunt_proto::http3::fuzz_qpack(data);
}
