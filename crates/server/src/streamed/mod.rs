//! What HTTP/2 and HTTP/3 share, which carry each request on a stream of its own: what the fields
//! of a head mean, and what a stream sends as an answer.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod head;
pub(crate) mod says;
