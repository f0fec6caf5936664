//! `--redact` of a run that is stored already: its URLs lose their queries.

use brunt_load::redact_queries;
use brunt_measure::{Evidence, Run, ServerScope};

/// Makes the queries of all URLs in the run unreadable.
pub(crate) fn redact(run: &mut Run) {
    let hide = |text: &mut String| *text = redact_queries(text);
    hide(&mut run.plan.url);
    let first = &mut run.plan.requests.first.path;
    if let Some((before, _)) = first.split_once('?') {
        *first = format!("{before}?redacted");
    }
    for name in &mut run.names {
        if let Some((before, _)) = name.name.split_once('?') {
            name.name = before.to_owned();
        }
    }
    run.agents
        .iter_mut()
        .for_each(|agent| redact_evidence(&mut agent.evidence));
}

fn redact_evidence(evidence: &mut Evidence) {
    let hide = |text: &mut String| *text = redact_queries(text);
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
