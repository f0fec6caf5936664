//! What the server said in its errors, and of calls that failed.

use brunt_record::{ErrorBody, Run};

use crate::foreign::printable;
use crate::page::{Page, Tone};

/// A row for each error status of which a body was kept, as the first worker met it, and one for
/// the first call of gRPC that failed with a message.
pub(super) fn rows(run: &Run, page: &mut Page) {
    let mut kept: Vec<&ErrorBody> = Vec::new();
    for body in run.workers().flat_map(|worker| &worker.error_bodies) {
        if kept.iter().all(|one| one.status != body.status) {
            kept.push(body);
        }
    }
    kept.sort_by_key(|body| body.status);
    for body in kept {
        // On one line: markup and JSON are still read that way.
        let words: Vec<_> = body.text.split_whitespace().collect();
        let text = printable(&words.join(" ")).into_owned();
        let shown = match (text.is_empty(), body.is_cut) {
            (true, _) => "(an empty body)".to_owned(),
            (false, false) => text,
            (false, true) => format!("{text} ..."),
        };
        page.row(&format!("  {}", body.status), &[shown], Tone::Plain);
    }
    let mut messages = run
        .workers()
        .filter_map(|worker| worker.unexpected.as_deref());
    if let Some(message) = messages.next().filter(|_| run.protocol().has_statuses) {
        let shown = [printable(message).into_owned()];
        page.row("  grpc-message", &shown, Tone::Plain);
    }
}
