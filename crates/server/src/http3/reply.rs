//! The bytes of replies of HTTP/3: frames with their field sections.

use brunt_proto::http3::frame::{self, Kind};
use brunt_proto::http3::qpack::encode_field;

use crate::answer::{Says, TRAILER};

/// The null answer: HEADERS with `:status: 200` and `content-length: 0`, both from the static table
/// (RFC 9204 appendix A).
const NULL: [u8; 6] = [0x01, 4, 0, 0, 0xc0 | 25, 0xc0 | 4];

pub(super) fn write_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&NULL);
}

/// Appends a reply's head.
pub(super) fn write_head(out: &mut Vec<u8>, status: u16, says: Says) {
    frame::write_head(out, |out| {
        says.fields(status, |name, value| encode_field(out, name, value, false));
    });
}

/// Appends the header of a DATA frame.
pub(super) fn write_data_header(out: &mut Vec<u8>, bytes: u64) {
    frame::write_header(out, Kind::Data, bytes);
}

/// Appends the trailers of `/chunked`.
pub(super) fn write_trailers(out: &mut Vec<u8>, bytes: u64) {
    let length = bytes.to_string();
    frame::write_head(out, |out| {
        encode_field(out, TRAILER, length.as_bytes(), false)
    });
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
