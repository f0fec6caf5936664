//! One client connection: its state, its reply parser, and the requests under way on it.

use brunt_proto::http1::ReplyParser;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not open; a new attempt is due at this instant (`u64::MAX`: never).
    Down {
        /// When.
        retry_ns: u64,
    },
    /// An attempt is under way since this instant.
    Connecting {
        /// When it began.
        since_ns: u64,
    },
    /// Open.
    Open,
}

/// One connection of a worker. The send instants of its requests under way are kept by the worker,
/// in a ring of `pipeline` places per connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: State,
    pub(crate) parser: ReplyParser,
    /// Requests sent and not yet answered.
    pub(crate) under_way: u32,
    /// Place of the oldest of them in the ring.
    pub(crate) oldest: u32,
    /// A send was not yet taken by the kernel in full.
    pub(crate) sending: bool,
    /// It was open once, or failed often enough that set-up no longer waits for it.
    pub(crate) settled: bool,
    /// Failed attempts in a row.
    pub(crate) attempts: u32,
    /// Requests that it may still carry.
    pub(crate) requests_left: u64,
    /// Bytes read from it since it was opened.
    pub(crate) received_bytes: u64,
    /// The deadline that is armed for it, `u64::MAX` for none.
    pub(crate) armed_ns: u64,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Down { retry_ns: u64::MAX },
            parser: ReplyParser::default(),
            under_way: 0,
            oldest: 0,
            sending: false,
            settled: false,
            attempts: 0,
            requests_left: 0,
            received_bytes: 0,
            armed_ns: u64::MAX,
        }
    }
}
