//! The run's request, encoded once before it.

use super::frame::{self, HEADER_BYTES, PAYLOAD_BYTES};
use super::hpack::{
    FIELD_OVERHEAD_BYTES, Indexing, STATIC_TABLE, TABLE_BYTES, encode_field, encode_indexed,
};
use super::request::{Request, RequestError};
use crate::http1;

/// A request, ready to be copied onto a connection: what changes from one to the next is the
/// stream alone.
///
/// All requests of one connection must come from the same template: it counts on what the earlier
/// ones left in the server's dynamic table.
#[derive(Clone, Debug)]
pub struct Template {
    /// Uses no dynamic table.
    stateless: Form,
    /// Inserts fields into the server's dynamic table, which must be empty.
    inserting: Form,
    /// Refers to the fields that `inserting` left there.
    indexed: Form,
    /// Size of those fields in the table; 0: there are none.
    table_bytes: u32,
    body: Box<[u8]>,
    is_head: bool,
}

/// A head in one of its encodings.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The field block.
    pub(super) block: Vec<u8>,
    /// The block in frames, of stream 0.
    wire: Vec<u8>,
}

impl Form {
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

/// A field to be sent, its name in lower case.
struct Field {
    name: String,
    value: String,
}

impl Field {
    fn new(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    /// Not for any table: secrets that can be guessed from what compresses well (RFC 7541 section
    /// 7.1.3).
    fn is_secret(&self) -> bool {
        match self.name.as_str() {
            "authorization" | "proxy-authorization" => true,
            "cookie" => self.value.len() < 20,
            _ => false,
        }
    }

    fn table_bytes(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_OVERHEAD_BYTES as usize
    }

    fn is_static(&self) -> bool {
        STATIC_TABLE.contains(&(self.name.as_bytes(), self.value.as_bytes()))
    }

    fn encode(&self, out: &mut Vec<u8>, indexing: Indexing) {
        let indexing = if self.is_secret() {
            Indexing::Never
        } else {
            indexing
        };
        encode_field(out, self.name.as_bytes(), self.value.as_bytes(), indexing);
    }
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
        let end_stream = request.body.is_empty();

        // What is inserted: as many fields as fit the table that a server has by default.
        let mut table_bytes = 0;
        let is_inserted: Vec<bool> = fields
            .iter()
            .map(|field| {
                let after = table_bytes + field.table_bytes();
                let is_inserted =
                    !field.is_secret() && !field.is_static() && after <= TABLE_BYTES as usize;
                if is_inserted {
                    table_bytes = after;
                }
                is_inserted
            })
            .collect();

        let (mut stateless, mut inserting, mut indexed) = (Vec::new(), Vec::new(), Vec::new());
        let mut later = is_inserted.iter().filter(|&&inserted| inserted).count();
        for (field, &is_inserted) in fields.iter().zip(&is_inserted) {
            field.encode(&mut stateless, Indexing::Without);
            if is_inserted {
                // The table's first entry is the one inserted last.
                later -= 1;
                field.encode(&mut inserting, Indexing::Insert);
                encode_indexed(&mut indexed, STATIC_TABLE.len() + 1 + later);
            } else {
                field.encode(&mut inserting, Indexing::Without);
                field.encode(&mut indexed, Indexing::Without);
            }
        }
        Ok(Self {
            stateless: Form::new(stateless, end_stream),
            inserting: Form::new(inserting, end_stream),
            indexed: Form::new(indexed, end_stream),
            table_bytes: table_bytes as u32,
            body: request.body.into(),
            is_head: request.method == "HEAD",
        })
    }

    /// Bytes of a request on the wire, frame headers and body included, in the form that all but
    /// the first of a connection have; a server that allows no dynamic table gets more.
    pub fn request_bytes(&self) -> usize {
        let frames = self.body.len().div_ceil(PAYLOAD_BYTES as usize);
        self.indexed.wire.len() + frames * HEADER_BYTES + self.body.len()
    }

    /// The head for a server whose table may have `table_bytes_max` bytes, and whether the fields
    /// are in it afterwards; `is_filled`: they are in it now.
    #[inline]
    pub(super) fn form(&self, table_bytes_max: u32, is_filled: bool) -> (&Form, bool) {
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
}

/// The fields of a request, in the order in which they are sent.
fn fields(request: &Request<'_>) -> Result<Vec<Field>, RequestError> {
    if !matches!(request.scheme, "http" | "https") {
        return Err(RequestError::Scheme(request.scheme.to_owned()));
    }
    for (name, value) in request.headers {
        if is_connection_specific(name, value) {
            return Err(RequestError::ConnectionSpecific(name.clone()));
        }
    }
    // The rules for the parts are the same in all versions.
    http1::Request {
        method: request.method,
        path: request.path,
        host: request.authority,
        headers: request.headers,
        body: request.body,
        close: false,
    }
    .encode()?;

    let is_named =
        |name: &'static str| move |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
    let host = request.headers.iter().find(is_named("host"));
    let authority = host.map_or(request.authority, |(_, value)| trimmed(value));
    let mut fields = vec![
        Field::new(":method", request.method),
        Field::new(":scheme", request.scheme),
        Field::new(":authority", authority),
        Field::new(":path", request.path),
    ];
    for (name, value) in request.headers {
        if !name.eq_ignore_ascii_case("host") {
            fields.push(Field::new(&name.to_ascii_lowercase(), trimmed(value)));
        }
    }
    let wants_length =
        !request.body.is_empty() || matches!(request.method, "POST" | "PUT" | "PATCH");
    let has_length = request
        .headers
        .iter()
        .any(|field| is_named("content-length")(&field));
    if wants_length && !has_length {
        let length = request.body.len().to_string();
        fields.push(Field::new("content-length", &length));
    }
    Ok(fields)
}

/// RFC 9113 section 8.2.2.
fn is_connection_specific(name: &str, value: &str) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => true,
        "te" => !trimmed(value).eq_ignore_ascii_case("trailers"),
        _ => false,
    }
}

/// A value without the spaces around it, which are no part of it (RFC 9110 section 5.5).
fn trimmed(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}
