//! What tests of several protocols need.

use std::fmt::Debug;

use crate::fields::request::Request;

/// A request of HTTP/2 or HTTP/3 to start from.
pub(crate) const PLAIN: Request<'_> = Request {
    method: "GET",
    scheme: "http",
    authority: "example.org",
    path: "/",
    headers: &[],
    body: b"",
};

/// What comes of `bytes` as a whole, and just so in two pieces cut anywhere and byte by byte.
pub(crate) fn at_every_cut<T: PartialEq + Debug>(bytes: &[u8], of: impl Fn(&[&[u8]]) -> T) -> T {
    let whole = of(&[bytes]);
    for cut in 0..=bytes.len() {
        let (left, right) = bytes.split_at(cut);
        let text = bytes.escape_ascii();
        assert_eq!(of(&[left, right]), whole, "{text} at {cut}");
    }
    let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
    let text = bytes.escape_ascii();
    assert_eq!(of(&bytewise), whole, "{text} byte by byte");
    whole
}

/// The bytes of hexadecimal digits, between which other characters are passed over.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// Names and values of fields, or of headers.
pub(crate) fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    fields.iter().map(owned).collect()
}

/// Fields that are written as `name: value|name: value`.
pub(crate) fn fields_of(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('|').map(|field| field.split_once(": ").unwrap());
    owned(&pairs.collect::<Vec<_>>())
}

/// What `write` appends.
pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}
