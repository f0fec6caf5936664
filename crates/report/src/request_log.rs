//! The log of a run as CSV: a header, and a row for each request that came to an end.

use std::io::{self, BufWriter, Write};

use brunt_record::{LoggedEnd, RequestLog};

use crate::{ReportError, foreign};

/// Writes the log of a run; `name` gives what the request of a number is called. Instants count
/// from the start of the window.
///
/// # Errors
///
/// When `out` refuses the bytes.
pub fn write_request_log(
    log: &RequestLog,
    name: &dyn Fn(u32) -> String,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(out));
    writer
        .write_record([
            "due_ns",
            "sent_ns",
            "first_byte_ns",
            "done_ns",
            "status",
            "failure",
            "head_bytes",
            "body_bytes",
            "connection",
            "opening_us",
            "request",
        ])
        .map_err(io::Error::from)?;
    for request in log.requests() {
        let (status, failure) = match request.end {
            LoggedEnd::Reply(outcome) => (outcome.status(), ""),
            LoggedEnd::Failure(kind) => (None, kind.label()),
        };
        let first_byte_ns = match request.end {
            LoggedEnd::Reply(_) => request.first_byte_ns.to_string(),
            LoggedEnd::Failure(_) => String::new(),
        };
        let or_empty = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
        let name = name(request.request);
        let row = [
            &request.due_ns.to_string(),
            &request.sent_ns.to_string(),
            &first_byte_ns,
            &request.done_ns.to_string(),
            &or_empty(status.map(u64::from)),
            failure,
            &request.head_bytes.to_string(),
            &request.body_bytes.to_string(),
            &request.connection.to_string(),
            &or_empty(request.opening_us()),
            &foreign::cell(&name),
        ];
        writer.write_record(row).map_err(io::Error::from)?;
    }
    Ok(writer.flush()?)
}
