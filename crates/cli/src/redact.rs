//! `--redact` of a run: its URLs lose their queries, and what was typed as a message is not shown.

use brunt_judge::{Capacity, RoundRecord};
use brunt_load::{Plan, message_name, redact_queries};
use brunt_record::{Evidence, Run};
use brunt_report::Experiment;

use crate::command_line;

/// The name of a request without the query that it may have.
pub(crate) fn without_query(name: &str) -> &str {
    name.split_once('?').map_or(name, |(before, _)| before)
}

/// Makes what may be secret in the run unreadable.
pub(crate) fn redact(run: &mut Run) {
    let has_messages = !run.protocol().carries_http;
    run.plan.redact();
    for (number, name) in (1..).zip(&mut run.names) {
        if has_messages {
            name.name = message_name(number);
        } else if name.name.contains('?') {
            name.name = without_query(&name.name).into();
        }
    }
    for lost in &mut run.lost_agents {
        hide(&mut lost.reason);
    }
    for agent in &mut run.agents {
        redact_evidence(&mut agent.evidence);
        redact_command(&mut agent.command);
        for worker in &mut agent.workers {
            worker.error_bodies.clear();
            worker.unexpected = None;
        }
    }
}

fn redact_command(command: &mut Option<Vec<String>>) {
    if let Some(words) = command {
        *words = command_line::redacted(words);
    }
}

/// Makes what may be secret in the experiment unreadable.
pub(crate) fn redact_experiment(experiment: &mut Experiment) {
    match experiment {
        Experiment::Sweep(sweep) => {
            hide(&mut sweep.plan.url);
            redact_command(&mut sweep.environment.command);
            sweep.load.iter_mut().for_each(Plan::redact);
            let rounds = sweep.rounds.iter_mut();
            rounds.for_each(|round| redact_round(&mut round.record));
        }
        Experiment::Comparison(compared) => {
            compared.load.iter_mut().for_each(Plan::redact);
            // Where none was given, the command that starts a side stands for it.
            let words = compared.environment.command.iter().flatten();
            let are_typed = words.into_iter().any(|word| word.starts_with("--label"));
            redact_command(&mut compared.environment.command);
            for side in &mut compared.sides {
                hide(&mut side.url);
                side.label = side.label.take().filter(|_| are_typed);
                side.rounds.iter_mut().for_each(redact_round);
                side.capacity.iter_mut().for_each(redact_capacity);
            }
        }
        Experiment::Capacity(capacity) => redact_capacity(capacity),
    }
}

fn redact_capacity(capacity: &mut Capacity) {
    hide(&mut capacity.plan.url);
    redact_command(&mut capacity.environment.command);
    capacity.load.iter_mut().for_each(Plan::redact);
    for step in &mut capacity.steps {
        hide(&mut step.because);
        redact_round(&mut step.record);
    }
}

fn redact_round(round: &mut RoundRecord) {
    hide(&mut round.because);
    round.missing.values_mut().for_each(hide);
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
}
