//! The agents of a merged run: who they were, and whether what they did is one load.

use brunt_judge::{Judged, Summary};
use brunt_record::{AgentRecord, FleetAgent, Run};

use crate::foreign::printable;
use crate::page::{Page, Tone};
use crate::units::{self, counted};

/// Characters of an id that are shown: enough to tell a few apart.
const ID_CHARS: usize = 8;

/// The rows of the agents; none where there is one. On a full page with what they ran on, and from
/// when on.
pub(super) fn rows(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    for lost in &run.lost_agents {
        let items = [
            printable(&lost.name).into_owned(),
            printable(&lost.reason).into_owned(),
            counted(lost.workers.into(), "worker", "workers"),
            "no result".to_owned(),
        ];
        page.row("lost agent", &items, Tone::Warning);
    }
    let Some(overlap) = run.overlap() else {
        return;
    };
    let is_broken = !judged.is_valid();
    let (words, tone) = if overlap.is_one_load() {
        ("one load: rates are sums", Tone::Plain)
    } else {
        ("NOT one load: there is no rate of all", Tone::Warning)
    };
    let items = [
        units::count(run.agents.len() as u64),
        format!("windows overlapped by {}", units::percent(overlap.share)),
        words.to_owned(),
    ];
    page.row("agents", &items, tone);
    for (number, agent) in (1..).zip(run.agents.chunks(1)) {
        let is_full = page.is_full() || !overlap.is_one_load();
        let items = of_agent(run, agent, is_broken, is_full);
        page.row(&format!("  agent {number}"), &items, Tone::Plain);
    }
}

fn of_agent(run: &Run, one: &[AgentRecord], is_broken: bool, is_full: bool) -> Vec<String> {
    let (agent, summary) = (&one[0], Summary::of(run, one));
    let name = match &agent.fleet {
        Some(fleet) => printable(&fleet.name).into_owned(),
        None => agent.id.chars().take(ID_CHARS).collect(),
    };
    let start_ms = |agent: &AgentRecord| agent.clock.window_start_unix_ms;
    let mut items = vec![
        name,
        counted(agent.share.connections.into(), "connection", "connections"),
        counted(agent.share.workers.into(), "worker", "workers"),
    ];
    let successes = units::count(summary.window.replies.successes());
    if is_full {
        items.push(agent.backend.name().to_owned());
        let (start_ms, first_ms) = (start_ms(agent), start_ms(run.first()));
        items.push(match start_ms.saturating_sub(first_ms) {
            0 => format!("from {}", units::date_time(start_ms)),
            later_ms => {
                let later = units::duration(later_ms.saturating_mul(1_000_000));
                format!("{later} after agent 1")
            }
        });
        items.push(format!("{successes} ok in its window"));
    } else {
        items.push(format!("{successes} ok"));
    }
    let rate = summary.successes_per_s.known().filter(|_| !is_broken);
    items.extend(rate.map(|rate| format!("{} {}", units::rate(rate), run.unit().per_s)));
    if let Some(fleet) = &agent.fleet {
        items.extend(of_fleet(fleet).into_iter().filter(|_| !is_broken));
        items.extend(cpus_busy(agent));
        let bounds = fleet.clock.iter();
        let bounds = bounds.map(|it| it.start_bound_ns.max(it.end_bound_ns));
        items.extend(bounds.map(|ns| format!("clock to {}", units::duration(ns))));
    }
    if agent.interrupted {
        items.push("interrupted".to_owned());
    }
    items
}

/// What its coordinator found of its part alone.
fn of_fleet(fleet: &FleetAgent) -> Vec<String> {
    let mut items = Vec::new();
    if let Some(ns) = fleet.response_p99_ns {
        items.push(format!("p99 {}", units::duration(ns)));
    }
    if let Some(share) = fleet.own_share {
        items.push(format!("own share {}", units::percent(share)));
    }
    items.push(printable(&fleet.verdict).into_owned());
    items
}

/// The CPUs that it used, on average over the window.
fn cpus_busy(agent: &AgentRecord) -> Option<String> {
    let host = &agent.host;
    let used_ns = host.cpu_user_ns.saturating_add(host.cpu_system_ns);
    let is_known = host.cpu_interval_ns > 0;
    is_known.then(|| {
        let share = used_ns as f64 / host.cpu_interval_ns as f64;
        format!("CPU {}", units::percent(share))
    })
}
