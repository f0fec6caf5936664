//! The requests of a list, each stored once: their names in one text, and what many of them have in
//! common (method, header fields, body) apart from it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::request_spec::{RequestRef, RequestSpec};

/// What requests hold beside their paths.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    /// The request without its path. Its body is left out where its text ends with it.
    request: RequestSpec,
    /// Bytes of the text that are the body.
    text_body_bytes: usize,
}

impl Shape {
    fn of(mut request: RequestSpec) -> Self {
        request.path = String::new();
        let text = request.text.as_ref();
        let mut text_body_bytes = 0;
        if text.is_some_and(|text| text.ends_with(&request.body)) {
            text_body_bytes = std::mem::take(&mut request.body).len();
        }
        Self {
            request,
            text_body_bytes,
        }
    }

    fn body(&self) -> &[u8] {
        match &self.request.text {
            Some(text) if self.text_body_bytes > 0 => &text[text.len() - self.text_body_bytes..],
            _ => &self.request.body,
        }
    }
}

/// A request: the end of its name in the text, and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    end: u32,
    shape: u32,
}

/// Requests in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestTable {
    /// The names, one after the other: the path, behind the method unless that is GET.
    names: String,
    entries: Vec<Entry>,
    shapes: Vec<Arc<Shape>>,
}

impl RequestTable {
    /// Most requests of a table.
    pub const REQUESTS_MAX: usize = 1 << 18;
    /// Most bytes that are sent for all requests of a table together.
    pub const BYTES_MAX: usize = 1 << 30;
}

/// A table has no room for a request: with it, there would be more than
/// [`RequestTable::REQUESTS_MAX`], or more than [`RequestTable::BYTES_MAX`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

/// Makes a table, request by request.
#[derive(Debug, Default)]
pub struct RequestTableBuilder {
    table: RequestTable,
    places: HashMap<Arc<Shape>, u32>,
    bytes: u64,
}

impl RequestTableBuilder {
    /// Adds a request.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    pub fn push(&mut self, request: RequestSpec) -> Result<(), TableFull> {
        self.bytes = self.bytes.saturating_add(request.view().sent_bytes());
        if self.table.entries.len() == RequestTable::REQUESTS_MAX
            || self.bytes > RequestTable::BYTES_MAX as u64
        {
            return Err(TableFull);
        }
        self.add(request);
        Ok(())
    }

    fn add(&mut self, request: RequestSpec) {
        self.table.names += &request.name();
        let shape = self.place_of(Shape::of(request));
        self.table.entries.push(Entry {
            // There is room for it: it is a part of what is sent.
            end: self.table.names.len() as u32,
            shape,
        });
    }

    /// Most requests are like the one before them.
    fn place_of(&mut self, shape: Shape) -> u32 {
        let last = self.table.entries.last().map(|entry| entry.shape);
        if let Some(last) = last
            && *self.table.shapes[last as usize] == shape
        {
            return last;
        }
        if let Some(&place) = self.places.get(&shape) {
            return place;
        }
        let place = self.table.shapes.len() as u32;
        let shape = Arc::new(shape);
        self.places.insert(Arc::clone(&shape), place);
        self.table.shapes.push(shape);
        place
    }

    /// Bytes that the requests so far take on the wire, beside what is the same for all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        self.table.entries.len()
    }

    /// The table.
    pub fn finish(mut self) -> RequestTable {
        self.table.names.shrink_to_fit();
        self.table.entries.shrink_to_fit();
        self.table
    }
}

impl RequestTable {
    /// A table of these requests; absent where they are too many.
    pub(super) fn of(requests: Vec<RequestSpec>) -> Option<Self> {
        let mut builder = RequestTableBuilder::default();
        for request in requests {
            builder.push(request).ok()?;
        }
        Some(builder.finish())
    }

    /// A table of one request.
    pub(super) fn one(request: RequestSpec) -> Self {
        let mut builder = RequestTableBuilder::default();
        builder.add(request);
        builder.finish()
    }

    /// How many requests there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that it takes in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let shapes = self.shapes.iter().map(|shape| {
            let fields = shape.request.headers.iter();
            let fields = fields
                .map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
            let text = shape.request.text.as_ref().map_or(0, Vec::len);
            size_of::<Shape>() + fields.sum::<usize>() + shape.request.body.len() + text
        });
        self.names.len() + size_of_val(&self.entries[..]) + shapes.sum::<usize>()
    }

    /// The methods of all, each once.
    pub(super) fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for shape in &self.shapes {
            let method = &*shape.request.method;
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        methods
    }

    /// The name of a request, by its number.
    pub(super) fn name(&self, index: usize) -> &str {
        let before = index.checked_sub(1);
        let start = before.map_or(0, |before| self.entries[before].end);
        &self.names[start as usize..self.entries[index].end as usize]
    }

    /// A request, by its number.
    pub(super) fn request(&self, index: usize) -> RequestRef<'_> {
        let name = self.name(index);
        let shape = &self.shapes[self.entries[index].shape as usize];
        let path = match &*shape.request.method {
            "GET" => name,
            method => &name[method.len() + 1..],
        };
        RequestRef {
            path,
            body: shape.body(),
            ..shape.request.view()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_out_as_they_went_in() {
        let mut post = RequestSpec::get("/b?c=d");
        post.method = "POST".to_owned();
        post.body = b"body".to_vec();
        post.headers = vec![("a".to_owned(), "b".to_owned())];
        let mut options = RequestSpec::get("*");
        options.method = "OPTIONS".to_owned();
        let mut text = RequestSpec::get("/t");
        text.text = Some(b"GET /t HTTP/1.0\r\n\r\n".to_vec());
        let mut text_with_body = post.clone();
        text_with_body.text =
            Some(b"POST /b?c=d HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody".to_vec());
        let all = [
            RequestSpec::get("/"),
            post.clone(),
            options,
            post.clone(),
            text,
            text_with_body,
            RequestSpec::get(""),
        ];
        let mut builder = RequestTableBuilder::default();
        for request in &all {
            assert_eq!(builder.push(request.clone()), Ok(()));
        }
        let table = builder.finish();
        assert_eq!(table.count(), all.len());
        for (index, request) in all.iter().enumerate() {
            assert_eq!(table.request(index).to_spec(), *request);
            assert_eq!(
                RequestTable::one(request.clone()).request(0),
                request.view()
            );
        }
        // Two of the same shape share it.
        assert_eq!(table.shapes.len(), 5);
    }

    #[test]
    fn a_body_that_a_text_has_is_held_once() {
        let mut large = RequestSpec::get("/");
        large.body = vec![b'x'; 1 << 20];
        large.text = Some([b"POST / HTTP/1.1\r\n\r\n", &large.body[..]].concat());
        let table = RequestTable::one(large.clone());
        assert_eq!(table.request(0), large.view());
        let held_bytes = table.held_bytes();
        assert!(held_bytes < (1 << 20) + 1_000, "{held_bytes}");
    }

    #[test]
    fn a_table_is_bounded() {
        let mut builder = RequestTableBuilder::default();
        let mut large = RequestSpec::get("/");
        large.body = vec![0; RequestTable::BYTES_MAX / 2];
        assert_eq!(builder.push(large.clone()), Ok(()));
        assert_eq!(builder.push(large), Err(TableFull));
        let mut builder = RequestTableBuilder::default();
        for _ in 0..RequestTable::REQUESTS_MAX {
            assert_eq!(builder.push(RequestSpec::get("/")), Ok(()));
        }
        assert_eq!(builder.push(RequestSpec::get("/")), Err(TableFull));
    }
}
