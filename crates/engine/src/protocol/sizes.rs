//! How many bytes a run sends, and holds of that.

/// Bytes of what a run sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    /// Of one request, the largest: in HTTP/2 of any but the first of a connection. Of messages the
    /// longest, of streams what they send at a time.
    pub(crate) request: usize,
    /// The same of a request that is the last one on its connection.
    pub(crate) last_request: usize,
    /// Further copies of a request that may follow itself on a connection.
    pub(crate) copies: usize,
    /// What each connection has beside those at most: of a request that is filled in, and of such
    /// as follow each other and do not lie so.
    pub(crate) of_connection: usize,
    /// What is held of them all.
    pub(crate) held: usize,
}

impl Sizes {
    /// Of requests of which the last one is as long as the others.
    pub(super) fn of(request: usize, held: usize) -> Self {
        Self {
            request,
            last_request: request,
            held,
            ..Self::default()
        }
    }
}
