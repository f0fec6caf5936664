//! What fuzzing calls: the parser of replies that are fetched beside the load. It takes any bytes,
//! and panics when a rule is broken.

use crate::fetch::{FetchFault, ReplyReader};

/// Takes the input as a reply that is fetched beside the load. Whole, byte by byte and cut in the
/// middle, it is the same body or the same refusal, and no longer than what came.
pub fn fuzz_page(data: &[u8]) {
    let whole = body_in_pieces(data, data.len().max(1));
    for length in [1, 7, data.len() / 2 + 1] {
        assert_eq!(body_in_pieces(data, length), whole, "pieces of {length}");
    }
    if let Ok(body) = whole {
        assert!(body.len() <= data.len());
    }
}

/// The body of a reply that comes in pieces of this length, or the kind of failure.
fn body_in_pieces(data: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let mut reader = ReplyReader::default();
    for piece in data.chunks(length).chain([&[][..]]) {
        match reader.receive(piece) {
            Ok(Some(body)) => return Ok(body),
            Ok(None) => {}
            Err(FetchFault::Lost(_)) => return Err("lost".to_owned()),
            Err(failure) => return Err(format!("{failure:?}")),
        }
    }
    Err("the end of the connection is no end".to_owned())
}
