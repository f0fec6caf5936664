//! `--redact` of what is stored already: its URLs lose their queries.

use brunt_load::redact_queries;
use brunt_measure::{
    Capacity, Environment, Evidence, PlanDescription, RoundRecord, Run, ServerScope,
};
use brunt_report::Experiment;

/// Makes the queries of all URLs in the run unreadable.
pub(crate) fn redact(run: &mut Run) {
    redact_plan(&mut run.plan);
    for name in &mut run.names {
        if let Some((before, _)) = name.name.split_once('?') {
            name.name = before.to_owned();
        }
    }
    for agent in &mut run.agents {
        redact_evidence(&mut agent.evidence);
        agent.command.iter_mut().flatten().for_each(hide);
    }
}

/// The same in an experiment.
pub(crate) fn redact_experiment(experiment: &mut Experiment) {
    match experiment {
        Experiment::Sweep(sweep) => {
            hide(&mut sweep.plan.url);
            redact_environment(&mut sweep.environment);
            sweep.load.iter_mut().for_each(redact_plan);
            let rounds = sweep.rounds.iter_mut();
            rounds.for_each(|round| redact_round(&mut round.record));
        }
        Experiment::Comparison(compared) => {
            compared.load.iter_mut().for_each(redact_plan);
            redact_environment(&mut compared.environment);
            for side in &mut compared.sides {
                hide(&mut side.url);
                side.rounds.iter_mut().for_each(redact_round);
                side.capacity.iter_mut().for_each(redact_capacity);
            }
        }
        Experiment::Capacity(capacity) => redact_capacity(capacity),
    }
}

fn redact_capacity(capacity: &mut Capacity) {
    hide(&mut capacity.plan.url);
    redact_environment(&mut capacity.environment);
    capacity.load.iter_mut().for_each(redact_plan);
    for step in &mut capacity.steps {
        hide(&mut step.because);
        redact_round(&mut step.record);
    }
}

fn redact_environment(environment: &mut Environment) {
    environment.command.iter_mut().flatten().for_each(hide);
}

fn redact_round(round: &mut RoundRecord) {
    hide(&mut round.because);
    round.missing.values_mut().for_each(hide);
}

fn redact_plan(plan: &mut PlanDescription) {
    hide(&mut plan.url);
    if let Some(first) = &mut plan.requests.first
        && let Some((before, _)) = first.path.split_once('?')
    {
        first.path = format!("{before}?redacted");
    }
}

fn hide(text: &mut String) {
    *text = redact_queries(text);
}

fn redact_evidence(evidence: &mut Evidence) {
    evidence.missing.values_mut().for_each(hide);
    let counts = [&mut evidence.server_count, &mut evidence.server_sent];
    for count in counts.into_iter().flatten() {
        hide(&mut count.url);
    }
    if let Some(server) = &mut evidence.server {
        match &mut server.scope {
            ServerScope::ExporterProcess { url } | ServerScope::ExporterHost { url } => hide(url),
            ServerScope::Processes { .. } | ServerScope::OwnThreads => {}
        }
    }
}
