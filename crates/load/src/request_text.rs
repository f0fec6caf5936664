//! Requests that are given as text, byte by byte: what their texts mean.

use brunt_proto::holes::{Hole, TextWithHoles};
use brunt_proto::http1::{
    RawRequestsError, RequestKind, RequestTextError, TextParts, TextRequest, scan_filled_requests,
    scan_requests,
};

use crate::RequestSpec;

/// The requests that `text` holds, in order, in each of which `{{seq}}`, `{{rand LOW HIGH}}` and
/// `{{uuid}}` are filled in each time it is sent. Lengths in the text are those of what is sent.
///
/// # Errors
///
/// The first fault in the text, whose place is that in the text with numbers filled in.
pub fn raw_requests(text: &[u8]) -> Result<Vec<RequestSpec>, RawRequestsError> {
    let filled = TextWithHoles::parse(text)?;
    let written = |at| filled.written_at(at).ok_or(RawRequestsError::EndInHole);
    let requests = scan_filled_requests(&filled)?.into_iter().map(|request| {
        let is_within = |hole: &Hole| request.range.contains(&(hole.at as usize));
        if !filled.holes.iter().any(is_within) {
            return Ok(spec(&filled.bytes, &request));
        }
        let request = TextRequest {
            range: written(request.range.start)?..written(request.range.end)?,
            body_start: written(request.body_start)?,
            ..request
        };
        Ok(RequestSpec {
            has_placeholders: true,
            ..spec(text, &request)
        })
    });
    requests.collect()
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
        has_placeholders: false,
    }
}

/// What the response to the one request of `text` depends on.
///
/// # Errors
///
/// The text is not one of requests, or holds several.
pub fn kind_of_text(text: &[u8]) -> Result<RequestKind, RawRequestsError> {
    match &scan_requests(text)?[..] {
        [only] => Ok(only.kind),
        several => Err(RawRequestsError::Several(several.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_text_is_split_where_its_filled_one_is() {
        let text = b"POST /a/{{rand 1 500}} HTTP/1.1\r\nContent-Length: 15\r\n\r\nid={{seq 10000}}\
            GET /\\{{b}} HTTP/1.1\r\n\r\nGET /\\{{c}}?{{seq}} HTTP/1.1\r\n\r\n";
        let requests = raw_requests(text).expect("three");
        let named: Vec<_> = requests
            .iter()
            .map(|request| (request.name(), request.has_placeholders))
            .collect();
        assert_eq!(
            named,
            [
                ("POST /a/{{rand 1 500}}".to_owned(), true),
                ("/{{b}}".to_owned(), false),
                ("/\\{{c}}?{{seq}}".to_owned(), true)
            ]
        );
        assert_eq!(requests[0].body, b"id={{seq 10000}}");
        let texts: Vec<u8> = requests
            .iter()
            .flat_map(|request| request.text.clone().expect("given"))
            .collect();
        let sent = String::from_utf8_lossy(text).replacen("\\", "", 1);
        assert_eq!(texts, sent.as_bytes());
        let short = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n{{seq 10000}}";
        for (text, words) in [
            (&short[..], "invalid HTTP method at 4:5"),
            (
                &b"POST / HTTP/1.1\r\ncontent-length: {{rand 1 1}}\r\n\r\nz"[..],
                "nothing is filled into content-length",
            ),
            (&b"GET /{{seq x}} HTTP/1.1\r\n\r\n"[..], "{{seq START}}"),
            (&b"GET /{{seq}} HTTP/1.1\r\n"[..], "incomplete request"),
        ] {
            let error = raw_requests(text).expect_err("no requests").to_string();
            assert!(error.contains(words), "{error}");
        }
    }

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
        let error = kind_of_text(text).expect_err("two");
        assert_eq!(
            error.to_string(),
            "it holds 2 requests; give each as a text of its own"
        );
    }
}
