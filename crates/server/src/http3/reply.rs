//! The bytes of replies of HTTP/3: frames with their field sections.

use brunt_proto::http3::frame::{self, Kind};
use brunt_proto::http3::qpack::encode_field;

use crate::answer::Says;

/// The null answer: HEADERS with `:status: 200` and `content-length: 0`, both from the static table
/// (RFC 9204 appendix A).
const NULL: [u8; 6] = [0x01, 4, 0, 0, 0xc0 | 25, 0xc0 | 4];

pub(super) fn write_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&NULL);
}

/// Appends a reply's head.
pub(super) fn write_head(out: &mut Vec<u8>, status: u16, says: Says) {
    frame::write_head(out, |out| {
        put_number(out, b":status", u64::from(status));
        match says {
            Says::Nothing => {}
            Says::Length(bytes) => put_number(out, b"content-length", bytes),
            Says::RetryLater => {
                put_number(out, b"content-length", 0);
                put_number(out, b"retry-after", 1);
            }
            Says::Trailer => encode_field(out, b"trailer", b"brunt-length", false),
            Says::Link => encode_field(out, b"link", b"</style.css>; rel=preload", false),
        }
    });
}

/// Appends the header of a DATA frame.
pub(super) fn write_data_header(out: &mut Vec<u8>, bytes: u64) {
    frame::write_header(out, Kind::Data, bytes);
}

/// Appends the trailers of `/chunked`.
pub(super) fn write_trailers(out: &mut Vec<u8>, bytes: u64) {
    frame::write_head(out, |out| put_number(out, b"brunt-length", bytes));
}

fn put_number(out: &mut Vec<u8>, name: &[u8], number: u64) {
    let mut digits = itoa::Buffer::new();
    encode_field(out, name, digits.format(number).as_bytes(), false);
}

#[cfg(test)]
mod tests {
    use brunt_proto::http3::qpack::{Bytes, decode};

    use super::*;

    #[test]
    fn the_null_answer_says_what_a_head_says() {
        let fields = |bytes: &[u8]| {
            let mut fields = Vec::new();
            decode::<Bytes>(bytes, &mut Vec::new(), |(name, value), _| {
                fields.push((name.to_vec(), value.to_vec()));
            })
            .unwrap();
            fields
        };
        let (mut null, mut head) = (Vec::new(), Vec::new());
        write_null(&mut null);
        write_head(&mut head, 200, Says::Length(0));
        // Behind type and length, the latter in two bytes.
        assert_eq!(usize::from(null[1]), null.len() - 2);
        assert_eq!(fields(&null[2..]), fields(&head[3..]));
    }
}
