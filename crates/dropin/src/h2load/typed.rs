//! What is looked at when all options are known: one may depend on another that comes later.

/// What is looked at when all options are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    pub(super) requests: Option<u64>,
    pub(super) clients: u64,
    pub(super) threads: u64,
    pub(super) streams: u64,
    pub(super) rate: Option<u64>,
    pub(super) alpn: String,
    pub(super) ciphers: Option<String>,
    pub(super) ciphers_of_1_3: Option<String>,
    pub(super) groups: Option<String>,
    pub(super) has_windows: bool,
    pub(super) has_udp_payload: bool,
    pub(super) has_qlog: bool,
}
