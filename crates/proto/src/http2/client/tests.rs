//! Tests of the client.

use crate::http2::{Request, Template};

pub(super) fn get(path: &str) -> Template {
    Template::new(&Request {
        method: "GET",
        scheme: "http",
        authority: "example.org",
        path,
        headers: &[],
        body: b"",
    })
    .unwrap()
}
