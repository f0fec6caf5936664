//! For fuzzing, and for the tests: requests in pieces of any length.

use super::request::{KnownHead, Malformed, Request, RequestFound, RequestReader};

/// Reads `data` as requests, at once and cut at every byte, and panics when the two differ.
pub fn fuzz_requests(data: &[u8]) {
    let whole = read_all(data, data.len());
    assert_eq!(whole, read_all(data, 1));
    assert_eq!(whole, read_all(data, 7));
}

/// Every request in `data`, arriving in pieces of `step` bytes, and how it ended.
pub(super) fn read_all(data: &[u8], step: usize) -> (Vec<Request>, Result<(), Malformed>) {
    let mut reader = RequestReader::default();
    let mut known = KnownHead::default();
    let mut input = Vec::new();
    let mut requests = Vec::new();
    for piece in data.chunks(step.max(1)) {
        input.extend_from_slice(piece);
        if let Err(error) = read_more(&mut reader, &mut known, &mut input, &mut requests) {
            return (requests, Err(error));
        }
    }
    // Garbage without a line end is looked at again only when it has doubled.
    reader.looked_at = 0;
    let end = read_more(&mut reader, &mut known, &mut input, &mut requests);
    (requests, end)
}

pub(super) fn read_more(
    reader: &mut RequestReader,
    known: &mut KnownHead,
    input: &mut Vec<u8>,
    requests: &mut Vec<Request>,
) -> Result<(), Malformed> {
    loop {
        let (taken, found) = reader.read(input, known)?;
        input.drain(..taken);
        match found {
            RequestFound::Request(request) => requests.push(request),
            RequestFound::ContinueWanted => {}
            RequestFound::Incomplete => return Ok(()),
        }
    }
}
