//! Target: the buckets of a stored histogram.

/// Takes the first byte as what the rest is: a text in base64, what it encodes, what that inflates
/// to, or counts alone.
pub fn hdr_v2(data: &[u8]) {
    brunt_record::fuzz_hdr_v2(data);
}
