//! Which statuses the simulated server answers with.

/// The statuses of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Ok,
    /// 429, with `Retry-After`.
    TooManyRequests,
    /// 503.
    Unavailable,
}
