//! The agents of a merged run: who they were, and whether what they did is one load.

use brunt_judge::{InvariantStatus, Judged, Summary};
use brunt_record::{AgentRecord, Run};

use super::layout::{Page, Tone};
use crate::units::{self, counted};

/// Characters of an id that are shown: enough to tell a few apart.
const ID_CHARS: usize = 8;

/// The rows of the agents; none where there is one.
/// `verbose`: with what they ran on, and from when on.
pub(crate) fn rows(judged: &Judged<'_>, verbose: bool, page: &mut Page) {
    let run = judged.run;
    let Some(overlap) = run.overlap() else {
        return;
    };
    let is_broken = judged.with_status(InvariantStatus::Broken).next().is_some();
    let (words, tone) = match overlap.is_one_load() {
        true => ("one load: rates are sums", Tone::Plain),
        false => ("NOT one load: there is no rate of all", Tone::Warning),
    };
    let items = [
        units::count(run.agents.len() as u64),
        format!("windows overlapped by {}", units::percent(overlap.share)),
        words.to_owned(),
    ];
    page.row("agents", &items, tone);
    for (number, agent) in (1..).zip(run.agents.chunks(1)) {
        let items = of_agent(run, agent, is_broken, verbose || !overlap.is_one_load());
        page.row(&format!("  agent {number}"), &items, Tone::Plain);
    }
}

fn start_unix_ms(agent: &AgentRecord) -> u64 {
    agent.clock.window_start_unix_ms
}

fn of_agent(run: &Run, one: &[AgentRecord], is_broken: bool, verbose: bool) -> Vec<String> {
    let (agent, summary) = (&one[0], Summary::of(run, one));
    let id: String = agent.id.chars().take(ID_CHARS).collect();
    let mut items = vec![
        id,
        counted(agent.share.connections.into(), "connection", "connections"),
        counted(agent.share.workers.into(), "worker", "workers"),
    ];
    let successes = units::count(summary.window.replies.successes());
    if verbose {
        items.push(agent.backend.name().to_owned());
        let (start_ms, first_ms) = (start_unix_ms(agent), start_unix_ms(run.first()));
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
    if agent.interrupted {
        items.push("interrupted".to_owned());
    }
    items
}
