//! What ab looks at in replies: the server's name, the length of the first one and whether the
//! others have it, whether connections are kept.

use std::sync::{Arc, Mutex, PoisonError};

use brunt_load::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse,
    RequestGenerator, ResponseParts,
};

/// What was seen in the replies of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The `Server` field of the first reply; empty without one.
    pub(super) server: String,
    /// Bytes of the content of the first reply; absent before it.
    pub(super) document_bytes: Option<u64>,
    /// Replies whose content had another length.
    pub(super) other_lengths: u64,
    /// Bytes of all contents.
    pub(super) content_bytes: u64,
    /// Replies that keep their connection.
    pub(super) kept: u64,
}

impl Seen {
    /// What asks for `request` over and over and looks at the replies; and where it leaves what it
    /// has seen when it is dropped.
    pub fn watching(request: Vec<u8>) -> (Box<dyn RequestGenerator>, Arc<Mutex<Self>>) {
        let place = Arc::new(Mutex::new(Self::default()));
        let watcher = Watcher {
            request,
            is_given: false,
            seen: Self::default(),
            place: Arc::clone(&place),
        };
        (Box::new(watcher), place)
    }

    fn take(&mut self, response: &GeneratorResponse<'_>) {
        let bytes = response.body.len() as u64;
        let value_of = |wanted: &str| {
            let mut fields = response.headers.iter();
            fields
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()))
                .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        match self.document_bytes {
            None => {
                self.document_bytes = Some(bytes);
                self.server = value_of("Server").unwrap_or_default();
            }
            Some(first) if first != bytes => self.other_lengths += 1,
            Some(_) => {}
        }
        self.content_bytes += bytes;
        let connection = value_of("Connection").unwrap_or_default();
        if connection.eq_ignore_ascii_case("keep-alive") {
            self.kept += 1;
        }
    }
}

/// Sends the same request over and over.
#[derive(Debug)]
struct Watcher {
    request: Vec<u8>,
    is_given: bool,
    seen: Seen,
    place: Arc<Mutex<Seen>>,
}

impl RequestGenerator for Watcher {
    fn delays(&self) -> bool {
        false
    }

    fn delay_ns(&mut self, _connection: ConnectionNumber) -> Result<u64, GeneratorError> {
        Ok(0)
    }

    fn next(
        &mut self,
        _connection: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError> {
        let (tag, name) = (BatchTag::default(), None);
        if self.is_given {
            return Ok(Batch::Same { tag, name });
        }
        self.is_given = true;
        text.extend_from_slice(&self.request);
        Ok(Batch::New { tag, name })
    }

    fn wanted(&self) -> ResponseParts {
        ResponseParts::Body
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        self.seen.take(response);
        Ok(())
    }

    fn ended(&mut self, _connection: ConnectionNumber, _tag: BatchTag, _outcome: BatchOutcome) {}

    fn is_stopped(&self) -> bool {
        false
    }

    fn names(&self) -> &[String] {
        &[]
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = std::mem::take(&mut self.seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_compared_with_the_first() {
        let (mut watcher, place) = Seen::watching(b"GET".to_vec());
        let mut text = Vec::new();
        let connection = ConnectionNumber(0);
        let batches =
            [(); 2].map(|()| watcher.next(connection, &mut text).expect("it cannot fail"));
        assert!(matches!(batches, [Batch::New { .. }, Batch::Same { .. }]));
        assert_eq!(text, b"GET");
        for (server, body) in [("a", "four"), ("b", "four"), ("b", "fiver")] {
            let headers = [
                (&b"server"[..], server.as_bytes()),
                (&b"Connection"[..], &b"Keep-Alive"[..]),
            ];
            let response = GeneratorResponse {
                status: 200,
                headers: &headers,
                body: body.as_bytes(),
                ..GeneratorResponse::default()
            };
            watcher.response(&response).expect("it cannot fail");
        }
        drop(watcher);
        let seen = place.lock().expect("nobody panics").clone();
        let expected = Seen {
            server: "a".to_owned(),
            document_bytes: Some(4),
            other_lengths: 1,
            content_bytes: 13,
            kept: 3,
        };
        assert_eq!(seen, expected);
    }
}
