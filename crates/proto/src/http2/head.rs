//! What a client needs of a reply's head.

/// The latest head and what it meant; one per worker. Servers send the same head over and over,
/// and equal bytes that depend on no state of the connection mean an equal head.
#[derive(Debug, Default)]
pub struct KnownHead {}
