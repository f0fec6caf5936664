//! The reports of known runs, seen from outside.

mod experiments;
mod fixtures;
mod golden;
mod hdr;
mod hostile;
mod html;
mod read;
mod summary;
mod summary_schema;
