//! Target: sessions of TLS, fed with garbage, and with conversations that are cut and damaged.

/// Takes the input as bytes of a peer, or as what to change of a conversation: no session may
/// panic, keep much, or show text that was not sent.
pub fn tls(data: &[u8]) {
    brunt_proto::tls::fuzz_tls(data);
}
