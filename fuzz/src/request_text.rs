//! Target: requests given as text, read back by another parser.

use brunt_proto::http1::{MethodKind, TextParts, scan_requests};

/// Takes the input as a text of requests. Those found must cover it without a gap, each must be
/// found alone, and read back as what was found; and no part of the text but the whole requests at
/// its start is found in what is cut off it.
pub fn request_text(data: &[u8]) {
    let found = match scan_requests(data) {
        Ok(found) => found,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1);
            let lines = data.iter().filter(|&&byte| byte == b'\n').count();
            assert!(error.line <= lines + 1 && error.column <= data.len() + 1);
            return;
        }
    };
    assert!(!found.is_empty());
    let mut at = 0;
    for (place, request) in found.iter().enumerate() {
        assert_eq!(request.range.start, at);
        assert!(request.body_start > at && request.body_start <= request.range.end);
        at = request.range.end;
        assert!(!request.closes || place + 1 == found.len());
        check(data, request);
        let alone = scan_requests(&data[request.range.clone()]);
        let Ok([alone]) = alone.as_deref() else {
            panic!("not found alone: {alone:?}");
        };
        assert_eq!((alone.kind, alone.closes), (request.kind, request.closes));
    }
    assert_eq!(at, data.len());
}

/// Reads the head of a request back.
fn check(text: &[u8], request: &brunt_proto::http1::TextRequest) {
    let head = &text[request.range.start..request.body_start];
    let mut places = vec![httparse::EMPTY_HEADER; head.len() / 2];
    let mut parsed = httparse::Request::new(&mut places);
    let Ok(httparse::Status::Complete(bytes)) = parsed.parse(head) else {
        // It is stricter with bytes of a URL that are not ASCII, and with spaces.
        return;
    };
    assert_eq!(bytes, head.len());
    let parts = TextParts::of(text, request);
    let method = parsed.method.map(str::as_bytes);
    assert_eq!(method, Some(parts.method));
    assert_eq!(parsed.path.map(str::as_bytes), Some(parts.url));
    assert_eq!(parsed.version == Some(0), request.kind.is_http_1_0);
    assert_eq!(
        request.kind.method,
        match parts.method {
            b"HEAD" => MethodKind::Head,
            b"CONNECT" => MethodKind::Connect,
            _ => MethodKind::Other,
        }
    );
    let fields: Vec<(&[u8], &[u8])> = parts.fields().collect();
    let expected: Vec<(&[u8], &[u8])> = parsed
        .headers
        .iter()
        .map(|field| (field.name.as_bytes(), field.value))
        .collect();
    assert_eq!(fields, expected);
}
