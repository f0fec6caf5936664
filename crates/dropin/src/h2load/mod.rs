//! h2load, of nghttp2.

mod options;
mod plan;
mod report;
mod times;
mod tls;
mod typed;
mod uri;
mod uris;
mod values;
mod wrong;

pub use options::{Options, shown};
pub use report::{heading, log_lines, report, unreached, unresolved};
pub use uris::Uris;
