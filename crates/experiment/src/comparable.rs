//! Whether two stored runs can be compared: they had the same load, by the same client on the same
//! machine.

use brunt_load::Plan;
use brunt_record::{Run, leaf_differences};
use serde_json::{Value, json};

/// What two plans may differ in: where the server is, how long it was loaded, how long brunt waited
/// for it, and what brunt chooses by itself. What it chose is compared elsewhere, or accused by the
/// verdict.
const MAY_DIFFER: &str = "\
    target.url target.host target.port target.authority target.path target.unix_socket \
    further_targets load.warmup_ns load.halves_warmup load.stop load.drain_limit_ns \
    traffic.requests.first.path connection.tls.server_name connection.tls.roots \
    connection.tls.roots_der connection.source_addresses limits workers.count workers.placement \
    workers.backend workers.held_beside_bytes observation.watch observation.server_counter \
    observation.link_bits_per_s observation.keeps_errors observation.logged_requests_max \
    observation.logged_responses_max";
/// The kernel does not show quite the same memory after each start.
const MEMORY_DIFFERS: f64 = 0.01;

/// In what two runs differ that makes them no comparison, each with both values.
pub fn differences(first: &Run, other: &Run) -> serde_json::Result<Vec<String>> {
    let mut found = Vec::new();
    let seeded = first.plan.clone().with_seeds_of(&other.plan);
    let (ours, theirs) = (
        view(first, &seeded, other)?,
        view(other, &other.plan, first)?,
    );
    let leaves = leaf_differences("", [&ours, &theirs], &may_differ).into_iter();
    found.extend(leaves.map(|(name, ours, theirs)| format!("{name} is {ours} and {theirs}")));
    // Those of a script are what it happened to send.
    let mut names = (1..).zip(first.names.iter().zip(&other.names));
    if !first.is_generated()
        && let Some((number, (ours, theirs))) = names.find(|(_, (a, b))| a.name != b.name)
    {
        let (ours, theirs) = (&ours.name, &theirs.name);
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
    let mut outline = plan.traffic.requests.outline();
    if outline.first.is_some() {
        outline.first_name.clear();
    }
    let mut of_plan = serde_json::to_value(plan)?;
    of_plan["traffic"]["requests"] = serde_json::to_value(outline)?;
    of_plan["traffic"]["order"] = plan.traffic.requests.order().name().into();
    let (source, requests) = if run.is_generated() {
        ("made by a script or a session log", 0)
    } else {
        ("those of the plan", run.names.len())
    };
    let mut view = json!({
        "plan": of_plan,
        "what is requested": source,
        "the number of requests": requests,
        "the number of agents": run.agents.len(),
    });
    for (place, agent) in run.agents.iter().enumerate() {
        let beside = other
            .agents
            .get(place)
            .and_then(|agent| agent.machine.as_ref());
        let mut machine = agent.machine.clone().filter(|_| beside.is_some());
        if let (Some(own), Some(beside)) = (&mut machine, beside)
            && let (Some(ours), Some(theirs)) = (own.memory_bytes, beside.memory_bytes)
            && ours.abs_diff(theirs) as f64 <= MEMORY_DIFFERS * ours.max(theirs) as f64
        {
            own.memory_bytes = None;
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

fn may_differ(path: &str, _: &Value, _: &Value) -> bool {
    let field = path.strip_prefix("plan.");
    field.is_some_and(|field| MAY_DIFFER.split(' ').any(|name| name == field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_server_is_and_how_long_it_is_loaded_may_differ() {
        for (path, is_free) in [
            ("plan.target.url", true),
            ("plan.traffic.requests.first.path", true),
            ("plan.load.stop", true),
            ("plan.load.connections", false),
            ("plan.traffic.requests.first.method", false),
            ("machine", false),
        ] {
            assert_eq!(may_differ(path, &json!(1), &json!(2)), is_free, "{path}");
        }
    }
}
