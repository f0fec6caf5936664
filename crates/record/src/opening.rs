//! The opening of a connection, as far as a response time does not hold it.

/// When a connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The attempt began.
    pub from_ns: u64,
    /// When the connection could carry requests: TCP, TLS and HTTP/2 settings were through.
    pub to_ns: u64,
}

impl Opening {
    /// How much of it a response time that counts from `due_ns` does not hold, nanoseconds. A
    /// request that was due while its connection was being opened has waited for the rest.
    pub(crate) fn before_ns(&self, due_ns: u64) -> u64 {
        self.to_ns.min(due_ns).saturating_sub(self.from_ns)
    }
}
