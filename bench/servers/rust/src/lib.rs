//! What the servers have in common: the body, and the address from the command line.

/// The body of every reply.
pub const HUNDRED: &str = "\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// The loopback address with the port that is the first argument.
pub fn address() -> (&'static str, u16) {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    ("127.0.0.1", port.expect("usage: SERVER PORT"))
}
