//! The reports of known runs, seen from outside.

mod experiments;
mod fixtures;
mod golden;
mod hdr;
mod hostile;
mod html;
mod read;
#[cfg(feature = "schema")]
mod schema;
mod summary;
