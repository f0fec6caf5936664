//! HTTP/3 (RFC 9114): one connection's side of the server, from requests to answers, and the worker
//! that has its connections on one socket.
//!
//! Answers are those of HTTP/2. A request counts as noticed when the datagram with its last byte
//! came. QUIC bounds what a client may send and how long it may idle.

mod reply;
mod session;
mod streams;
#[cfg(test)]
mod tests;
pub(crate) mod worker;
