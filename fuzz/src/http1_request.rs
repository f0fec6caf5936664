//! Target: the encoding of HTTP/1.1 requests, read back by another parser.

use brunt_proto::http1::Request;

/// Splits the input: no UTF-8 text holds it.
const SEPARATOR: u8 = 0xff;

/// Takes the input as method, path, host, body and then names and values of header fields, with a
/// byte 255 between them. What is encoded must read back as one request of these parts and
/// nothing else.
pub fn http1_request(data: &[u8]) {
    let mut parts = data.split(|&byte| byte == SEPARATOR);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (method, path, host, body) = (text(), text(), text(), text());
    let mut headers = Vec::new();
    while let Some(name) = parts.next() {
        let value = parts.next().unwrap_or_default();
        headers.push((
            String::from_utf8_lossy(name).into_owned(),
            String::from_utf8_lossy(value).into_owned(),
        ));
    }
    for close in [false, true] {
        let request = Request {
            method: &method,
            path: &path,
            host: &host,
            headers: &headers,
            body: body.as_bytes(),
            close,
        };
        if let Ok(wire) = request.encode() {
            check(&request, &wire);
        }
    }
}

fn check(request: &Request<'_>, wire: &[u8]) {
    let mut places = vec![httparse::EMPTY_HEADER; request.headers.len() + 8];
    let mut parsed = httparse::Request::new(&mut places);
    let head_len = match parsed.parse(wire) {
        Ok(httparse::Status::Complete(head_len)) => head_len,
        other => panic!("encoded as what is not a request: {other:?}"),
    };
    let (head, body) = wire.split_at(head_len);
    assert_eq!(body, request.body);
    assert_eq!(parsed.method, Some(request.method));
    assert_eq!(parsed.path, Some(request.path));
    assert_eq!(parsed.version, Some(1));

    // No line beside the request line, the fields and the empty line.
    let line_feeds = head.iter().filter(|&&byte| byte == b'\n').count();
    let returns = head.iter().filter(|&&byte| byte == b'\r').count();
    assert_eq!(
        (line_feeds, returns),
        (parsed.headers.len() + 2, parsed.headers.len() + 2)
    );
    assert_eq!(
        head.windows(2).filter(|pair| pair == b"\r\n").count(),
        line_feeds
    );

    let values = |name: &str| -> Vec<&[u8]> {
        let same_name = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
        parsed
            .headers
            .iter()
            .filter(same_name)
            .map(|field| field.value)
            .collect()
    };
    // The user's fields, in order, and known ones besides.
    let mut user_fields = request.headers.iter().peekable();
    for field in parsed.headers.iter() {
        let is_next = |(name, value): &&(String, String)| {
            name == field.name && value.trim_matches([' ', '\t']).as_bytes() == field.value
        };
        if user_fields.next_if(is_next).is_none() {
            let known = ["Host", "Content-Length", "Connection"];
            assert!(
                known.contains(&field.name),
                "a field that nobody asked for: {field:?}"
            );
        }
    }
    assert_eq!(user_fields.next(), None, "a field was left out");

    assert_eq!(values("Host").len(), 1);
    let length = request.body.len().to_string();
    let lengths = values("Content-Length");
    if values("Transfer-Encoding").is_empty() {
        assert!(
            !lengths.is_empty() || request.body.is_empty(),
            "a body without its length"
        );
        // A user may write leading zeros.
        let is_length = |value: &&[u8]| {
            let digits = value.trim_ascii();
            let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
            digits[zeros..] == *length.trim_start_matches('0').as_bytes()
        };
        assert!(
            lengths.iter().all(is_length),
            "a length that is not the body's"
        );
    } else {
        assert!(lengths.is_empty(), "two framings");
    }
    if request.close {
        let asks_close = |value: &[u8]| {
            value
                .split(|&byte| byte == b',')
                .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
        };
        assert!(values("Connection").into_iter().any(asks_close));
    }
}
