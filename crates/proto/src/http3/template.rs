//! The run's request, encoded once before it.

use std::sync::Arc;

use bytes::Bytes;

use super::frame::{self, Kind};
use super::qpack;
use crate::fields::request::{Request, RequestError, fields, is_call};

/// A request, ready to be sent: the same bytes on every stream of every connection, since no
/// dynamic table is used.
#[derive(Clone, Debug)]
pub struct Template {
    wire: Arc<[u8]>,
    is_head: bool,
    is_call: bool,
}

impl Template {
    /// Encodes a request (RFC 9114 section 4.3.1).
    ///
    /// Only what HTTP/3 asks for is added, since each field is work for the server: the
    /// pseudo-headers, and `content-length` where there is a body or the method is `POST`, `PUT`
    /// or `PATCH`, unless the user's headers hold it.
    ///
    /// # Errors
    ///
    /// A part that cannot be HTTP/3, or that would make the server see another request.
    pub fn new(request: &Request<'_>) -> Result<Self, RequestError> {
        let fields = fields(request)?;
        let mut wire = Vec::new();
        frame::write_head(&mut wire, |out| {
            for field in &fields {
                let (name, value) = (field.name.as_bytes(), field.value.as_bytes());
                qpack::encode_field(out, name, value, field.is_secret());
            }
        });
        if !request.body.is_empty() {
            frame::write_header(&mut wire, Kind::Data, request.body.len() as u64);
            wire.extend_from_slice(request.body);
        }
        Ok(Self {
            wire: wire.into(),
            is_head: request.method == "HEAD",
            is_call: is_call(request),
        })
    }

    /// All bytes of the request's stream: a HEADERS frame, and a DATA frame where there is a body.
    #[inline]
    pub fn wire(&self) -> &Arc<[u8]> {
        &self.wire
    }

    /// Whether the reply has no body, whatever its head says.
    #[inline]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// The bytes of this request, for one worker.
    pub fn of_worker(&self) -> WorkerTemplate {
        WorkerTemplate {
            wire: Bytes::from_owner(Arc::clone(&self.wire)),
            is_head: self.is_head,
            is_call: self.is_call,
        }
    }
}

/// A request, as one worker sends it: the bytes are those of all workers, but who uses them is
/// counted by each for itself.
#[derive(Clone, Debug)]
pub struct WorkerTemplate {
    pub(super) wire: Bytes,
    pub(super) is_head: bool,
    pub(super) is_call: bool,
}

#[cfg(test)]
mod tests {
    use super::super::message::{RequestPart, RequestReader};
    use super::super::qpack::Bytes;
    use super::*;
    use crate::test_support::{self, owned};

    const PLAIN: Request<'_> = Request {
        scheme: "https",
        ..test_support::PLAIN
    };

    /// The fields and the body of a request, as a server reads them.
    fn read(template: &Template) -> (String, Vec<u8>) {
        let (mut reader, mut fields, mut body) = (RequestReader::default(), String::new(), vec![]);
        let mut rest = &template.wire()[..];
        while let Some(part) = reader.receive(&mut rest, 100_000).unwrap() {
            match part {
                RequestPart::Head(section) => {
                    qpack::decode::<Bytes>(section, &mut Vec::new(), |(name, value), _| {
                        let (name, value) = (name.escape_ascii(), value.escape_ascii());
                        fields += &format!("{name}: {value}|");
                    })
                    .unwrap();
                }
                RequestPart::Content(content) => body.extend_from_slice(content),
                RequestPart::Trailers(_) => unreachable!("a template has no trailers"),
                RequestPart::Framing => {}
            }
        }
        assert_eq!(reader.end(), Ok(()));
        assert_eq!(reader.wire_bytes(), template.wire().len() as u64);
        (fields, body)
    }

    #[test]
    fn a_plain_request_is_a_few_bytes() {
        let template = Template::new(&PLAIN).unwrap();
        // `:method: GET`, `:scheme: https`, `:path: /` of the static table, and an authority.
        let expected = [
            &[0x01, 0x40, 0x0f, 0, 0, 0xd1, 0xd7, 0x50, 0x88][..],
            &[0x2f, 0x91, 0xd3, 0x5d, 0x05, 0x5c, 0xf6, 0x4d],
            &[0xc1],
        ];
        assert_eq!(template.wire()[..], expected.concat());
        assert!(!template.is_head());
    }

    #[test]
    fn servers_read_what_was_asked() {
        let long = "!".repeat(20_000);
        let headers = owned(&[
            ("X-Long", &long),
            ("Authorization", "Basic YTpi"),
            ("accept", " */* "),
            ("cookie", "a=b"),
        ]);
        let request = Request {
            method: "POST",
            headers: &headers,
            body: &[b'x'; 70_000],
            ..PLAIN
        };
        let (fields, body) = read(&Template::new(&request).unwrap());
        let expected = format!(
            ":method: POST|:scheme: https|:authority: example.org|:path: /|x-long: {long}|\
             authorization: Basic YTpi|accept: */*|cookie: a=b|content-length: 70000|"
        );
        assert_eq!((fields, &body[..]), (expected, request.body));

        let head = Template::new(&Request {
            method: "HEAD",
            ..PLAIN
        });
        assert!(head.unwrap().is_head());
    }

    /// As literals that no intermediary may put into a table: names 84 and 5 of the static one.
    #[test]
    fn secrets_are_never_indexed() {
        let headers = owned(&[("authorization", "x"), ("cookie", "a=b")]);
        let template = Template::new(&Request {
            headers: &headers,
            ..PLAIN
        })
        .unwrap();
        for name in [&[0x7f, 84 - 15][..], &[0x75]] {
            let mut parts = template.wire().windows(name.len());
            assert!(parts.any(|part| part == name), "{name:x?}");
        }
    }
}
