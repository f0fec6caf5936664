//! The running server over real sockets, with each protocol and each backend.

mod http1;
mod http2_tls;
mod http3;
mod tcp;
