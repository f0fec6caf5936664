//! `brunt compare OLD.json NEW.json`: stored runs, of which each is compared with the first.

use std::path::Path;

use anyhow::{Context, Result, bail};
use brunt_judge::{
    ChangeLimit, ComparedRounds, ComparedSide, Judged, RoundRecord, SIDES_MAX, SingleRun,
};
use brunt_load::Plan;
use brunt_record::{MachineDescription, Run, ServerDescription};
use serde_json::{Value, json};

use crate::commands::CompareArguments;
use crate::compared::{check_limits, compared, labels, new_comparison};
use crate::output::is_standard;
use crate::redact::redact;
use crate::refusals::Given;
use crate::stored::{read as read_stored, refuse_standard_twice, shown};

/// Options that have an effect on what is stored already.
const WITH_STORED: &str = "url behind_url fail_if output format label quiet verbose redact";
/// What two plans may differ in: where the server is, how long it was loaded, how long brunt waited
/// for it, and what brunt chooses by itself. What it chose is compared elsewhere, or accused by the
/// verdict.
const MAY_DIFFER: &str = "\
    target.url target.host target.port target.authority target.path target.unix_socket \
    further_targets requests.first.path tls.server_name tls.roots tls.roots_der placement \
    source_addresses watch server_counter link_bits_per_s held_beside_bytes halves_warmup \
    keeps_errors logged_requests_max logged_responses_max stop warmup_ns timeout_ns \
    setup_timeout_ns connect_timeout_ns drain_limit_ns workers backend";
/// Differences that a message names.
const NAMED_MAX: usize = 8;
/// The kernel does not show quite the same memory after each start.
const MEMORY_DIFFERS: f64 = 0.01;

/// Whether what is to be compared is stored: all of it, or none.
pub(crate) fn are_stored(words: &[&String]) -> Result<bool> {
    let is_stored = |word: &&&String| {
        let path = Path::new(word);
        let is_named_so = path.extension().is_some_and(|ending| ending == "json");
        is_standard(path) || !word.contains("://") && (is_named_so || path.is_file())
    };
    match words.iter().filter(is_stored).count() {
        0 => Ok(false),
        count if count == words.len() => Ok(true),
        _ => bail!(
            "stored runs are compared with stored runs, and servers with servers; store a run of \
             the server with brunt -o FILE.json URL, or give URLs alone"
        ),
    }
}

/// Reads the runs and puts them side by side.
pub(crate) fn read(
    arguments: &CompareArguments,
    given: &Given,
    files: &[&String],
) -> Result<ComparedRounds> {
    if let Some(option) = given.first_besides(WITH_STORED) {
        bail!("{option} is about load that is made, and stored runs are compared; leave it out");
    }
    if !(2..=SIDES_MAX).contains(&files.len()) {
        bail!("give 2 to {SIDES_MAX} stored runs, as in brunt compare OLD.json NEW.json");
    }
    let files: Vec<&Path> = files.iter().map(|file| Path::new(file.as_str())).collect();
    refuse_standard_twice(&files)?;
    let mut runs = Vec::with_capacity(files.len());
    for file in &files {
        let mut run = read_stored(file)?;
        if arguments.typed.load.output.redact {
            redact(&mut run);
        }
        runs.push(run);
    }
    let (first, others) = runs.split_first().context("there are no runs")?;
    for (other, file) in others.iter().zip(&files[1..]) {
        check_comparable(first, other, (files[0], file))?;
    }
    let is_closed = first.plan.model.schedule().is_none();
    check_limits(&arguments.fail_if, is_closed, false)?;
    let mut found = side_by_side(&runs, &files, &arguments.fail_if);
    let urls: Vec<String> = runs.iter().map(|run| run.plan.urls()).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let labels = labels(arguments, &urls)?;
    for (side, label) in found.sides.iter_mut().zip(labels) {
        side.label = label;
    }
    Ok(found)
}

fn side_by_side(runs: &[Run], files: &[&Path], limits: &[ChangeLimit]) -> ComparedRounds {
    let plan = runs.first().map(|run| run.plan.clone());
    let has_schedule = plan
        .as_ref()
        .is_some_and(|plan| plan.model.schedule().is_some());
    let mut found = new_comparison(compared(has_schedule, limits), limits);
    found.environment.machine = MachineDescription::default();
    if let Some(first) = runs.first() {
        let machine = first.first().machine.clone();
        found.environment.machine = machine.unwrap_or_default();
        found.environment.add(first);
    }
    found.load = plan;
    found.sides = runs
        .iter()
        .zip(files)
        .map(|(run, file)| {
            let judged = Judged::of(run);
            ComparedSide {
                label: None,
                url: run.plan.urls(),
                server: ServerDescription::of(run),
                rounds: vec![RoundRecord::of(&judged)],
                capacity: None,
                single_run: Some(SingleRun::of(&judged, shown(file))),
            }
        })
        .collect();
    found
}

/// Runs are compared that had the same load, by the same client on the same machine.
fn check_comparable(first: &Run, other: &Run, (of_first, of_other): (&Path, &Path)) -> Result<()> {
    let (first_name, other_name) = (shown(of_first), shown(of_other));
    let ids = |run: &Run| -> Vec<String> { run.agents.iter().map(|it| it.id.clone()).collect() };
    if ids(first) == ids(other) {
        bail!("{first_name} and {other_name} hold the same run; give two that were made apart");
    }
    let differences = differences(first, other)?;
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(NAMED_MAX);
    let mut named = differences;
    named.truncate(NAMED_MAX);
    let mut named = named.join("; ");
    if more > 0 {
        named.push_str(&format!("; and {more} more"));
    }
    let remedy = match &first.first().command {
        Some(words) => format!(
            "repeat one of them as the other was made ({first_name}: {})",
            words.join(" ")
        ),
        None => "repeat one of them as the other was made".to_owned(),
    };
    bail!("{first_name} and {other_name} cannot be compared: {named}. {remedy}")
}

/// In what two runs differ that makes them no comparison, each with both values.
fn differences(first: &Run, other: &Run) -> serde_json::Result<Vec<String>> {
    let mut found = Vec::new();
    let seeded = first.plan.clone().with_seeds_of(&other.plan);
    let (ours, theirs) = (
        view(first, &seeded, other)?,
        view(other, &other.plan, first)?,
    );
    leaves("", &ours, &theirs, &mut found);
    // Those of a script are what it happened to send.
    let mut names = first
        .names
        .iter()
        .zip(&other.names)
        .filter(|_| !first.is_generated());
    if let Some(place) = names.position(|(ours, theirs)| ours.name != theirs.name) {
        let name = |run: &Run| run.names[place].name.to_string();
        let (ours, theirs) = (name(first), name(other));
        let number = place + 1;
        found.push(format!(
            "request {number} of the list is `{ours}` and `{theirs}`"
        ));
    }
    for (ours, theirs) in first.agents.iter().zip(&other.agents) {
        if ours.machine.is_none() || theirs.machine.is_none() {
            found.push("machine is not known of both".to_owned());
        }
    }
    Ok(found)
}

/// What of a run with this plan has to be alike in one that is compared with it.
fn view(run: &Run, plan: &Plan, other: &Run) -> serde_json::Result<Value> {
    // Of each request its path may differ.
    let mut outline = plan.requests.outline();
    if outline.first.is_some() {
        outline.first_name.clear();
    }
    let mut of_plan = serde_json::to_value(plan)?;
    of_plan["requests"] = serde_json::to_value(outline)?;
    of_plan["order"] = plan.requests.order().name().into();
    if plan.model.name() != other.plan.model.name() {
        of_plan["model"] = plan.model.name().into();
    }
    let mut view = json!({
        "plan": of_plan,
        "what is requested": match run.is_generated() {
            true => "made by a script or a session log",
            false => "those of the plan",
        },
        "the number of requests": if run.is_generated() { 0 } else { run.names.len() },
        "the number of agents": run.agents.len(),
    });
    for (place, agent) in run.agents.iter().enumerate() {
        let beside = other.agents.get(place).and_then(|it| it.machine.as_ref());
        let mut machine = agent.machine.clone().filter(|_| beside.is_some());
        if let (Some(own), Some(beside)) = (&mut machine, beside) {
            let bytes = own.memory_bytes.zip(beside.memory_bytes);
            let is_as_large = |(own, beside): (u64, u64)| {
                own.abs_diff(beside) as f64 <= MEMORY_DIFFERS * own.max(beside) as f64
            };
            own.memory_bytes = own.memory_bytes.filter(|_| !bytes.is_some_and(is_as_large));
        }
        let of = match run.agents.len() {
            1 => String::new(),
            _ => format!("agents[{place}]."),
        };
        view[format!("{of}backend")] = agent.backend.name().into();
        view[format!("{of}machine")] = serde_json::to_value(machine)?;
    }
    Ok(view)
}

/// The leaves of two JSON values that differ.
fn leaves(name: &str, first: &Value, other: &Value, found: &mut Vec<String>) {
    let may_differ = name
        .strip_prefix("plan.")
        .is_some_and(|field| MAY_DIFFER.split(' ').any(|it| it == field));
    if first == other || may_differ {
        return;
    }
    match (first, other) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for field in names {
                let path = match name {
                    "" => field.clone(),
                    name => format!("{name}.{field}"),
                };
                let null = &Value::Null;
                let (ours, theirs) = (ours.get(field), theirs.get(field));
                leaves(&path, ours.unwrap_or(null), theirs.unwrap_or(null), found);
            }
        }
        _ => found.push(format!("{name} is {first} and {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_leaf_by_leaf() {
        let plan = json!({
            "target": {"url": "http://a/"}, "connections": 64, "stop": {"duration_ns": 1},
            "requests": {"first": {"method": "GET", "path": "/"}, "list": null},
            "model": {"kind": "closed", "connect_per_s": null},
        });
        let found = |change: fn(&mut Value)| {
            let mut other = plan.clone();
            change(&mut other);
            let mut found = Vec::new();
            leaves("plan", &plan, &other, &mut found);
            found
        };
        assert!(found(|_| ()).is_empty());
        let same = found(|plan| {
            plan["target"]["url"] = json!("http://b/x");
            plan["requests"]["first"]["path"] = json!("/x");
            plan["stop"] = json!({"requests": 7});
        });
        assert!(same.is_empty(), "{same:?}");
        let others = found(|plan| {
            plan["connections"] = json!(128);
            plan["requests"]["first"]["method"] = json!("POST");
            plan["requests"]["list"] = json!({"requests": 2});
            plan["model"] = json!({"kind": "open", "schedule": 1});
        });
        assert_eq!(
            others,
            [
                "plan.connections is 64 and 128",
                "plan.model.kind is \"closed\" and \"open\"",
                "plan.model.schedule is null and 1",
                "plan.requests.first.method is \"GET\" and \"POST\"",
                "plan.requests.list is null and {\"requests\":2}",
            ]
        );
    }

    #[test]
    fn files_and_servers_are_told_apart() {
        let is = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            are_stored(&words.iter().collect::<Vec<_>>())
        };
        assert!(is(&["a.json", "-"]).unwrap());
        assert!(
            is(&["Cargo.toml", "b.json"]).unwrap(),
            "a file that is there"
        );
        assert!(!is(&["http://a/x.json", "localhost:80"]).unwrap());
        assert!(!is(&[]).unwrap());
        let error = is(&["a.json", "http://b/"]).unwrap_err().to_string();
        assert!(error.contains("-o FILE.json"), "{error}");
    }
}
