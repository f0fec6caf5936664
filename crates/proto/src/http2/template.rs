//! The run's request, encoded once before it.

use super::frame::{self, HEADER_BYTES, PAYLOAD_BYTES};
use super::hpack::{
    FIELD_OVERHEAD_BYTES, Indexing, STATIC_TABLE, TABLE_BYTES, encode_field, encode_indexed,
};
use crate::fields::request::{Field, Request, RequestError, fields, is_call};

/// A request, ready to be copied onto a connection: what changes from one to the next is the
/// stream alone.
///
/// All requests of one connection must come from the same template, or from those of one
/// [`list`](Template::list): they count on what the earlier ones left in the server's dynamic
/// table.
#[derive(Clone, Debug)]
pub struct Template {
    /// Uses no dynamic table.
    stateless: EncodedHead,
    /// Inserts fields into the server's dynamic table, which must have room for `table_bytes`.
    inserting: EncodedHead,
    /// Refers to the fields that `inserting` left there.
    indexed: EncodedHead,
    /// Size of those fields in the table; 0: there are none.
    table_bytes: u32,
    body: Box<[u8]>,
    is_head: bool,
    is_call: bool,
}

/// A head in one of its encodings.
#[derive(Clone, Debug)]
pub(super) struct EncodedHead {
    /// The field block.
    pub(super) block: Vec<u8>,
    /// The block in frames, of stream 0.
    wire: Vec<u8>,
}

impl EncodedHead {
    fn new(block: Vec<u8>, end_stream: bool) -> Self {
        let mut wire = Vec::new();
        frame::write_head(&mut wire, 0, &block, end_stream, PAYLOAD_BYTES);
        Self { block, wire }
    }

    /// Appends the frames, as of this stream.
    #[inline]
    pub(super) fn write(&self, out: &mut Vec<u8>, stream: u32) {
        /// Bytes of a frame before the stream's identifier.
        const BEFORE_STREAM: usize = 5;
        /// All frames but the last have the largest payload.
        const FRAME_BYTES: usize = HEADER_BYTES + PAYLOAD_BYTES as usize;
        let start = out.len();
        out.extend_from_slice(&self.wire);
        for frame in out[start..].chunks_mut(FRAME_BYTES) {
            if let Some(id) = frame.get_mut(BEFORE_STREAM..HEADER_BYTES) {
                id.copy_from_slice(&stream.to_be_bytes());
            }
        }
    }
}

fn table_bytes(field: &Field) -> usize {
    field.name.len() + field.value.len() + FIELD_OVERHEAD_BYTES as usize
}

fn is_static(field: &Field) -> bool {
    STATIC_TABLE.contains(&(field.name.as_bytes(), field.value.as_bytes()))
}

fn encode(field: &Field, out: &mut Vec<u8>, indexing: Indexing) {
    let indexing = if field.is_secret() {
        Indexing::Never
    } else {
        indexing
    };
    encode_field(out, field.name.as_bytes(), field.value.as_bytes(), indexing);
}

impl Template {
    /// Encodes a request (RFC 9113 section 8.3.1).
    ///
    /// Only what HTTP/2 asks for is added, since each field is work for the server: the
    /// pseudo-headers, and `content-length` where there is a body or the method is `POST`, `PUT`
    /// or `PATCH`, unless the user's headers hold it.
    ///
    /// # Errors
    ///
    /// A part that cannot be HTTP/2, or that would make the server see another request.
    pub fn new(request: &Request<'_>) -> Result<Self, RequestError> {
        let fields = fields(request)?;
        Ok(Self::encode(request, &fields, |_| true))
    }

    /// Encodes the requests of a list. What all of them have in common goes into the server's
    /// dynamic table, and the rest does not, so that they may come in any order.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new), with the number of the request, from 0.
    pub fn list(requests: &[Request<'_>]) -> Result<Vec<Self>, (usize, RequestError)> {
        let mut fields_of = Vec::with_capacity(requests.len());
        for (number, request) in requests.iter().enumerate() {
            fields_of.push(fields(request).map_err(|error| (number, error))?);
        }
        let first = fields_of.first().map_or(&[][..], Vec::as_slice);
        let mut common: Vec<&Field> = first.iter().collect();
        for fields in &fields_of {
            common.retain(|field| fields.contains(field));
        }
        // The table's entries are known by their places: each request has to insert them in the
        // same order.
        let is_common = |field: &&Field| common.contains(field);
        if !fields_of
            .iter()
            .all(|fields| fields.iter().filter(is_common).eq(common.iter().copied()))
        {
            common.clear();
        }
        let encode = |(request, fields): (_, &Vec<Field>)| {
            Self::encode(request, fields, |field| common.contains(&field))
        };
        Ok(requests.iter().zip(&fields_of).map(encode).collect())
    }

    /// Encodes `fields`, of which those that are `wanted` go into the server's dynamic table, as
    /// many as fit the one that a server has by default.
    fn encode(request: &Request<'_>, fields: &[Field], wanted: impl Fn(&Field) -> bool) -> Self {
        let end_stream = request.body.is_empty();
        let mut table_bytes = 0;
        let is_inserted: Vec<bool> = fields
            .iter()
            .map(|field| {
                let after = table_bytes + self::table_bytes(field);
                let is_inserted = wanted(field)
                    && !field.is_secret()
                    && !is_static(field)
                    && after <= TABLE_BYTES as usize;
                if is_inserted {
                    table_bytes = after;
                }
                is_inserted
            })
            .collect();

        let (mut stateless, mut inserting, mut indexed) = (Vec::new(), Vec::new(), Vec::new());
        let mut later = is_inserted.iter().filter(|&&inserted| inserted).count();
        for (field, &is_inserted) in fields.iter().zip(&is_inserted) {
            encode(field, &mut stateless, Indexing::Without);
            if is_inserted {
                // The table's first entry is the one inserted last.
                later -= 1;
                encode(field, &mut inserting, Indexing::Insert);
                encode_indexed(&mut indexed, STATIC_TABLE.len() + 1 + later);
            } else {
                encode(field, &mut inserting, Indexing::Without);
                encode(field, &mut indexed, Indexing::Without);
            }
        }
        Self {
            stateless: EncodedHead::new(stateless, end_stream),
            inserting: EncodedHead::new(inserting, end_stream),
            indexed: EncodedHead::new(indexed, end_stream),
            table_bytes: table_bytes as u32,
            body: request.body.into(),
            is_head: request.method == "HEAD",
            is_call: is_call(request),
        }
    }

    /// Bytes of a request on the wire, frame headers and body included, in the form that all but
    /// the first of a connection have; a server that allows no dynamic table gets more.
    pub fn request_bytes(&self) -> usize {
        self.bytes_with(&self.indexed)
    }

    /// As [`request_bytes`](Self::request_bytes), in the form that has most.
    pub fn request_bytes_max(&self) -> usize {
        let forms = self.forms().map(|form| self.bytes_with(form));
        forms.into_iter().max().unwrap_or(0)
    }

    /// Bytes of memory that its encodings and its body take.
    pub fn held_bytes(&self) -> usize {
        let heads = self.forms().map(|form| form.block.len() + form.wire.len());
        size_of::<Self>() + heads.iter().sum::<usize>() + self.body.len()
    }

    fn forms(&self) -> [&EncodedHead; 3] {
        [&self.stateless, &self.inserting, &self.indexed]
    }

    fn bytes_with(&self, head: &EncodedHead) -> usize {
        let frames = self.body.len().div_ceil(PAYLOAD_BYTES as usize);
        head.wire.len() + frames * HEADER_BYTES + self.body.len()
    }

    /// The head for a server whose table may have `table_bytes_max` bytes, and whether the fields
    /// are in it afterwards; `is_filled`: they are in it now.
    #[inline]
    pub(super) fn form(&self, table_bytes_max: u32, is_filled: bool) -> (&EncodedHead, bool) {
        if self.table_bytes == 0 || self.table_bytes > table_bytes_max {
            (&self.stateless, false)
        } else if is_filled {
            (&self.indexed, true)
        } else {
            (&self.inserting, true)
        }
    }

    /// Size of its fields in the server's table.
    pub(super) fn table_bytes(&self) -> u32 {
        self.table_bytes
    }

    #[inline]
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Replies have no body.
    #[inline]
    pub(super) fn is_head(&self) -> bool {
        self.is_head
    }

    /// It is a call of gRPC.
    #[inline]
    pub(super) fn is_call(&self) -> bool {
        self.is_call
    }
}

#[cfg(test)]
mod tests {
    use super::super::hpack::{Bytes, Decoder};
    use super::*;
    use crate::http1;
    use crate::test_support::{PLAIN, owned as headers};

    fn decode(decoder: &mut Decoder<Bytes>, form: &EncodedHead) -> String {
        let mut fields = String::new();
        decoder
            .decode(&form.block, &mut Vec::new(), |(name, value), _| {
                let [name, value] = [name, value].map(|text| str::from_utf8(text).unwrap());
                fields += &format!("{name}: {value}|");
            })
            .unwrap();
        fields
    }

    /// The fields of a request, which must be the same in all of its forms.
    fn encoded(request: &Request<'_>) -> String {
        let template = Template::new(request).unwrap();
        let mut decoder = Decoder::new(TABLE_BYTES);
        let fields = decode(&mut decoder, &template.stateless);
        for form in [&template.inserting, &template.indexed, &template.indexed] {
            assert_eq!(decode(&mut decoder, form), fields);
        }
        fields
    }

    macro_rules! encoding_cases {
        ($($name:ident: { $($part:ident: $value:expr),* } $headers:expr => $fields:literal;)+) => {
            $(#[test]
            fn $name() {
                let headers = headers(&$headers);
                let request = Request { $($part: $value,)* headers: &headers, ..PLAIN };
                assert_eq!(encoded(&request), $fields);
            })+
        };
    }

    encoding_cases! {
        plain: {} []
            => ":method: GET|:scheme: http|:authority: example.org|:path: /|";
        other_parts: { method: "DELETE", scheme: "https", authority: "h:1", path: "/a?b" } []
            => ":method: DELETE|:scheme: https|:authority: h:1|:path: /a?b|";
        options_of_the_server: { method: "OPTIONS", path: "*" } []
            => ":method: OPTIONS|:scheme: http|:authority: example.org|:path: *|";
        names_are_in_lower_case: {} [("B-C", "D"), ("a", " e\t"), ("B-C", "")]
            => ":method: GET|:scheme: http|:authority: example.org|:path: /|b-c: D|a: e|b-c: |";
        a_host_is_the_authority: { authority: "" } [("X", "y"), ("HOST", " h ")]
            => ":method: GET|:scheme: http|:authority: h|:path: /|x: y|";
        body_with_length: { method: "POST", body: b"hello" } [("X", "y")]
            => ":method: POST|:scheme: http|:authority: example.org|:path: /|x: y|\
                content-length: 5|";
        put_without_body: { method: "PUT" } []
            => ":method: PUT|:scheme: http|:authority: example.org|:path: /|content-length: 0|";
        own_length: { body: b"hi" } [("Content-Length", "2")]
            => ":method: GET|:scheme: http|:authority: example.org|:path: /|content-length: 2|";
        trailers_may_come: {} [("TE", "Trailers")]
            => ":method: GET|:scheme: http|:authority: example.org|:path: /|te: Trailers|";
        static_fields: {} [("accept-encoding", "gzip, deflate")]
            => ":method: GET|:scheme: http|:authority: example.org|:path: /|\
                accept-encoding: gzip, deflate|";
        secrets: {} [("Authorization", "Basic YTpi"), ("cookie", "a=b"), ("x", "y")]
            => ":method: GET|:scheme: http|:authority: example.org|:path: /|\
                authorization: Basic YTpi|cookie: a=b|x: y|";
    }

    macro_rules! refusal_cases {
        ($($name:ident: { $($part:ident: $value:expr),* } $headers:expr => $error:expr;)+) => {
            $(#[test]
            fn $name() {
                let headers = headers(&$headers);
                let request = Request { $($part: $value,)* headers: &headers, ..PLAIN };
                assert_eq!(Template::new(&request).err(), Some($error));
            })+
        };
    }

    fn template(headers: &[(String, String)], body: &[u8]) -> Template {
        let request = Request {
            headers,
            body,
            ..PLAIN
        };
        Template::new(&request).unwrap()
    }

    fn specific(name: &str) -> RequestError {
        RequestError::ConnectionSpecific(name.into())
    }

    refusal_cases! {
        scheme_ftp: { scheme: "ftp" } [] => RequestError::Scheme("ftp".into());
        scheme_in_upper_case: { scheme: "HTTP" } [] => RequestError::Scheme("HTTP".into());
        connection: {} [("Connection", "close")] => specific("Connection");
        keep_alive: {} [("keep-alive", "1")] => specific("keep-alive");
        proxy_connection: {} [("Proxy-Connection", "close")] => specific("Proxy-Connection");
        upgrade: {} [("UPGRADE", "h2c")] => specific("UPGRADE");
        transfer_encoding: { body: b"0\r\n\r\n" } [("Transfer-Encoding", "chunked")]
            => specific("Transfer-Encoding");
        te_other_than_trailers: {} [("TE", "gzip")] => specific("TE");
        path_relative: { path: "a" } [] => http1::RequestError::Path("a".into()).into();
        authority_empty: { authority: "" } [] => http1::RequestError::Host("".into()).into();
    }

    #[test]
    fn secrets_are_in_no_table() {
        let short = headers(&[("authorization", "x"), ("cookie", "1234567890123456789")]);
        let long = headers(&[("cookie", "12345678901234567890")]);
        for (headers, is_inserted) in [(&short, false), (&long, true)] {
            let template = template(headers, b"");
            let host_bytes = 32 + ":authority".len() + "example.org".len();
            assert_eq!(template.table_bytes() as usize > host_bytes, is_inserted);
        }
        let template = template(&short, b"");
        for form in [&template.stateless, &template.inserting, &template.indexed] {
            // Never indexed, by the static table's names 23 and 32.
            assert!(form.block.windows(2).any(|bytes| bytes == [0x1f, 23 - 15]));
            assert!(form.block.windows(2).any(|bytes| bytes == [0x1f, 32 - 15]));
        }
    }

    /// What does not fit the server's table is sent as it is.
    #[test]
    fn large_fields_stay_out_of_the_table() {
        let value = |bytes| "v".repeat(bytes);
        let fields = headers(&[("a", &value(3_900)), ("b", &value(200)), ("c", &value(10))]);
        let request = Request {
            headers: &fields,
            ..PLAIN
        };
        encoded(&request);
        let template = Template::new(&request).unwrap();
        assert_eq!(template.table_bytes(), 53 + 3_933 + 43);
        let (form, is_filled) = template.form(template.table_bytes() - 1, true);
        assert_eq!((&form.block, is_filled), (&template.stateless.block, false));
    }

    #[test]
    fn nothing_to_insert_needs_no_table() {
        let headers = headers(&[("host", "")]);
        let template = template(&headers, b"");
        assert_eq!(template.table_bytes(), 0);
        assert!(!template.form(TABLE_BYTES, false).1);
    }

    #[test]
    fn the_bytes_of_a_request_hold_all_of_its_frames() {
        let fields = vec![("a".to_owned(), "!".repeat(40_000))];
        let body = vec![b'x'; 16_385];
        let template = template(&fields, &body);
        let mut head = Vec::new();
        template.indexed.write(&mut head, 0x0102_0305);
        assert_eq!(head.len(), template.indexed.block.len() + 3 * 9);
        // Two frames of DATA.
        assert_eq!(template.request_bytes(), head.len() + 2 * 9 + body.len());
    }
}
