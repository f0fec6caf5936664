//! Requests that are given byte by byte: what their text means.

use brunt_load::RequestSpec;
use brunt_proto::http1::{RequestKind, RequestTextError, TextParts, TextRequest, scan_requests};
use thiserror::Error;

/// Why a text is not what is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum VerbatimError {
    /// The text is not one of requests.
    #[error(transparent)]
    Text(#[from] RequestTextError),
    /// The text holds several requests.
    #[error("it holds {0} requests; give each as a text of its own")]
    Several(usize),
}

/// The requests that `text` holds, in order, each to be sent exactly as it is there. They have the
/// method, path, header fields and body that their texts say.
///
/// # Errors
///
/// The first fault in the text, in wrk's words.
pub fn verbatim_requests(text: &[u8]) -> Result<Vec<RequestSpec>, RequestTextError> {
    let requests = scan_requests(text)?;
    Ok(requests.iter().map(|request| spec(text, request)).collect())
}

fn spec(text: &[u8], request: &TextRequest) -> RequestSpec {
    let parts = TextParts::of(text, request);
    let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    RequestSpec {
        method: word(parts.method),
        path: word(parts.url),
        headers: parts
            .fields()
            .map(|(name, value)| (word(name), word(value)))
            .collect(),
        body: parts.body.to_vec(),
        text: Some(text[request.range.clone()].to_vec()),
    }
}

/// What the response to the one request of `text` depends on.
pub(super) fn kind_of(text: &[u8]) -> Result<RequestKind, VerbatimError> {
    match &scan_requests(text)?[..] {
        [only] => Ok(only.kind),
        several => Err(VerbatimError::Several(several.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_into_its_requests() {
        let text =
            b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 1\r\n\r\nz";
        let [a, b] = &verbatim_requests(text).expect("requests")[..] else {
            panic!("two requests");
        };
        assert_eq!(
            (a.name(), b.name()),
            ("/a".to_owned(), "POST /b".to_owned())
        );
        assert_eq!(a.headers, [("Host".to_owned(), "x".to_owned())]);
        assert_eq!(b.body, b"z");
        let texts = [a, b].map(|spec| spec.text.clone().expect("given"));
        assert_eq!(texts.concat(), text);
        let error = kind_of(text).expect_err("two");
        assert_eq!(
            error.to_string(),
            "it holds 2 requests; give each as a text of its own"
        );
    }
}
