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
    /// Options without effect over HTTP/3, in the order in which they were given.
    pub(super) idle_over_quic: Vec<Idle>,
}

/// An option without effect, and why it has none.
pub(super) type Idle = (&'static str, &'static str);

pub(super) const WINDOWS: Idle = ("-w and -W", "the windows of QUIC are brunt's own");
pub(super) const UDP_PAYLOADS: Idle = ("--max-udp-payload-size", "it is brunt's own");
pub(super) const QLOGS: Idle = ("--qlog-file-base", "brunt writes no qlog");

impl Typed {
    /// An option was given that has no effect over HTTP/3.
    pub(super) fn note_idle(&mut self, option: Idle) {
        if !self.idle_over_quic.contains(&option) {
            self.idle_over_quic.push(option);
        }
    }
}
