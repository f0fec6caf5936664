//! Target: sessions of TLS, fed with garbage, and with sessions that are cut and damaged.

/// Takes the input as bytes of a peer, or as what to change of a session: none may
/// panic, keep much, or show text that was not sent.
pub fn tls(data: &[u8]) {
    brunt_proto::tls::fuzz_tls(data);
}
