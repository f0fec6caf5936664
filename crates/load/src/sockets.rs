//! Options of the sockets that connections are made of.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

/// Options of TCP sockets. What is absent is left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// Whether small writes are sent at once (TCP_NODELAY).
    pub is_nodelay: bool,
    /// Bytes of payload that the send buffer is to hold (SO_SNDBUF). The kernel then no longer
    /// adapts its size.
    pub send_buffer_bytes: Option<NonZeroU32>,
    /// Bytes of payload that the receive buffer is to hold (SO_RCVBUF). The kernel then no longer
    /// adapts its size.
    pub receive_buffer_bytes: Option<NonZeroU32>,
    /// Most bytes of payload in a segment (TCP_MAXSEG).
    pub segment_bytes: Option<NonZeroU32>,
    /// The algorithm of congestion control (TCP_CONGESTION).
    pub congestion: Option<String>,
    /// Bytes per second that the kernel sends at most on one connection (SO_MAX_PACING_RATE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_bytes_per_s: Option<NonZeroU64>,
    /// Bytes that are to be there before the socket counts as readable, unless it ends
    /// (SO_RCVLOWAT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_bytes_min: Option<NonZeroU32>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            is_nodelay: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            segment_bytes: None,
            congestion: None,
            paced_bytes_per_s: None,
            receive_bytes_min: None,
        }
    }
}
