//! The requests of a list, each stored once: their names in one text, and what many of them have in
//! common (method, header fields, body) apart from it.

use std::collections::HashMap;
use std::sync::Arc;

use brunt_proto::holes::Notation;

use crate::request_spec::{RequestRef, RequestSpec};

/// What requests hold beside their paths.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    method: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    text: Option<Vec<u8>>,
    placeholders: Option<Notation>,
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
    names: Arc<String>,
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
    names: String,
    entries: Vec<Entry>,
    shapes: Vec<Arc<Shape>>,
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
        if self.entries.len() == RequestTable::REQUESTS_MAX
            || self.bytes > RequestTable::BYTES_MAX as u64
        {
            return Err(TableFull);
        }
        if request.method != "GET" {
            self.names.push_str(&request.method);
            self.names.push(' ');
        }
        self.names.push_str(&request.path);
        let shape = Shape {
            method: request.method,
            headers: request.headers,
            body: request.body,
            text: request.text,
            placeholders: request.placeholders,
        };
        let shape = self.place_of(shape);
        self.entries.push(Entry {
            // There is room for it: it is a part of what is sent.
            end: self.names.len() as u32,
            shape,
        });
        Ok(())
    }

    /// Most requests are like the one before them.
    fn place_of(&mut self, shape: Shape) -> u32 {
        let last = self.entries.last().map(|entry| entry.shape);
        if let Some(last) = last
            && *self.shapes[last as usize] == shape
        {
            return last;
        }
        if let Some(&place) = self.places.get(&shape) {
            return place;
        }
        let place = self.shapes.len() as u32;
        let shape = Arc::new(shape);
        self.places.insert(Arc::clone(&shape), place);
        self.shapes.push(shape);
        place
    }

    /// Bytes that the requests so far take on the wire, beside what is the same for all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many there are so far.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The table.
    pub fn finish(mut self) -> RequestTable {
        self.names.shrink_to_fit();
        self.entries.shrink_to_fit();
        RequestTable {
            names: Arc::new(self.names),
            entries: self.entries,
            shapes: self.shapes,
        }
    }
}

impl RequestTable {
    /// A table of one request.
    pub(super) fn one(request: RequestSpec) -> Self {
        let mut names = String::new();
        if request.method != "GET" {
            names = format!("{} ", request.method);
        }
        names.push_str(&request.path);
        Self {
            entries: vec![Entry {
                end: names.len() as u32,
                shape: 0,
            }],
            names: Arc::new(names),
            shapes: vec![Arc::new(Shape {
                method: request.method,
                headers: request.headers,
                body: request.body,
                text: request.text,
                placeholders: request.placeholders,
            })],
        }
    }

    /// How many requests there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that it takes in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let shapes = self.shapes.iter().map(|shape| {
            let fields = shape.headers.iter();
            let fields = fields
                .map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
            let text = shape.text.as_ref().map_or(0, Vec::len);
            size_of::<Shape>() + fields.sum::<usize>() + shape.body.len() + text
        });
        self.names.len() + size_of_val(&self.entries[..]) + shapes.sum::<usize>()
    }

    /// The methods of all, each once.
    pub(super) fn methods(&self) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        for shape in &self.shapes {
            if !methods.contains(&&*shape.method) {
                methods.push(&shape.method);
            }
        }
        methods
    }

    /// The names of all, one after the other.
    pub(super) fn names(&self) -> &Arc<String> {
        &self.names
    }

    /// Where the name of a request lies in [`RequestTable::names`].
    pub(super) fn name_range(&self, index: usize) -> (u32, u32) {
        let start = match index {
            0 => 0,
            _ => self.entries[index - 1].end,
        };
        (start, self.entries[index].end)
    }

    /// A request, by its number.
    pub(super) fn request(&self, index: usize) -> RequestRef<'_> {
        let (start, end) = self.name_range(index);
        let name = &self.names[start as usize..end as usize];
        let shape = &self.shapes[self.entries[index].shape as usize];
        let path = match &*shape.method {
            "GET" => name,
            method => &name[method.len() + 1..],
        };
        RequestRef {
            method: &shape.method,
            path,
            headers: &shape.headers,
            body: &shape.body,
            text: shape.text.as_deref(),
            placeholders: shape.placeholders,
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
        let all = [
            RequestSpec::get("/"),
            post.clone(),
            options,
            post.clone(),
            text,
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
        assert_eq!(table.shapes.len(), 4);
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
