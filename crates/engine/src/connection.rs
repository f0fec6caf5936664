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

/// One connection of a worker. Its requests under way are kept by the worker, in a ring of
/// `pipeline` places per connection.
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
    /// Set-up does not wait for it: it was open once, failed often enough, or is not to be opened.
    pub(crate) settled: bool,
    /// It is in the list of what arrivals may take.
    pub(crate) is_offered: bool,
    /// A reply came since it was opened.
    pub(crate) has_replied: bool,
    /// When the first byte of the reply under way was received.
    pub(crate) reply_from_ns: u64,
    /// Since when it could take a request, by the kernel's stamp where there is one.
    pub(crate) free_ns: u64,
    /// When it was due, if it was planned and has not had a reply.
    pub(crate) session_due_ns: Option<u64>,
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
    /// A connection that is not open; set-up waits for it or not.
    pub(crate) fn new(is_awaited: bool) -> Self {
        Self {
            state: State::Down { retry_ns: u64::MAX },
            parser: ReplyParser::default(),
            under_way: 0,
            oldest: 0,
            sending: false,
            settled: !is_awaited,
            is_offered: false,
            has_replied: false,
            reply_from_ns: 0,
            free_ns: 0,
            session_due_ns: None,
            attempts: 0,
            requests_left: 0,
            received_bytes: 0,
            armed_ns: u64::MAX,
        }
    }
}
