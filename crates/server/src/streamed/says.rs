//! What heads of replies say.

/// What a reply's head says besides its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Nothing,
    /// Content-Length.
    Length(u64),
    /// Content-Length of 0 and Retry-After: 1 (RFC 9110 section 10.2.3).
    RetryLater,
    /// Trailer: Brunt-Length.
    Trailer,
    /// Link.
    Link,
}

/// Status and fields of the interim reply with this number.
pub(crate) fn interim(number: u16) -> (u16, Says) {
    match number % 2 {
        0 => (100, Says::Nothing),
        _ => (103, Says::Link),
    }
}
