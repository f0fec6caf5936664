//! `--redact` of a run that is stored already: its URLs lose their queries.

use brunt_load::redact_queries;
use brunt_measure::{Run, ServerScope};

/// Makes the queries of all URLs in the run unreadable.
pub(crate) fn redact(run: &mut Run) {
    let hide = |text: &mut String| *text = redact_queries(text);
    hide(&mut run.load.target);
    let evidence = &mut run.evidence;
    evidence.missing.values_mut().for_each(hide);
    if let Some(count) = &mut evidence.server_count {
        hide(&mut count.url);
    }
    if let Some(server) = &mut evidence.server {
        match &mut server.scope {
            ServerScope::ExporterProcess { url } | ServerScope::ExporterHost { url } => hide(url),
            ServerScope::Processes { .. } | ServerScope::OwnThreads => {}
        }
    }
}
