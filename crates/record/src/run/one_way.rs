//! What connections carry and what their sockets are, where it is not requests alone, as stored.

use serde::{Deserialize, Serialize};

/// One-way streams in place of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamsDescription {
    /// Brunt sends.
    pub sends: bool,
    /// The server sends.
    pub receives: bool,
    /// Bits per second that the kernel lets brunt send at most, all connections together; null for
    /// no limit.
    pub paced_bits_per_s: Option<u64>,
    /// Bytes that one buffer of a socket of the server holds at most, where the server is on this
    /// machine and its kernel says so (tcp_rmem, tcp_wmem, rmem_max, wmem_max); null elsewhere.
    #[serde(default)]
    pub server_buffer_bytes_max: Option<u64>,
}

/// Options of the sockets of TCP connections, of which at least one is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketsDescription {
    /// Whether small writes are sent at once (TCP_NODELAY).
    pub is_nodelay: bool,
    /// Bytes of the send buffer; null where the kernel adapts it.
    pub send_buffer_bytes: Option<u32>,
    /// Bytes of the receive buffer; null where the kernel adapts it.
    pub receive_buffer_bytes: Option<u32>,
    /// Most bytes of payload in a segment; null where the kernel finds it.
    pub segment_bytes: Option<u32>,
    /// The algorithm of congestion control; null for that of the machine.
    pub congestion: Option<String>,
}
