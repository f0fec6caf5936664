//! W5 and W6: counts, bytes and requests add up.

use brunt_record::{after_ns, counted};

use super::outcome::{Checked, Problems, only_if};
use super::sums;
use super::windows::WAKE_UP_NS;
use crate::facts::Facts;
use crate::units::exact::percent;
use crate::units::plural;

/// How far the rate and the sum of the workers' rates may differ.
const RATES_DIFFER: f64 = 0.01;

/// W5.
pub(super) fn workers_add_up(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    sums::check("W5", facts, &mut problems);
    problems.none()?;
    only_if(!facts.no_window(), "there is no window")?;
    let (mut sum_of_rates, mut shortest_ns) = (0.0, facts.window_ns());
    for worker in facts.workers() {
        let edges = &worker.edges;
        // A worker without a window of its own is W4's finding.
        if let (Some(start_ns), Some(end_ns)) = (edges.window_start.get(), edges.window_end.get()) {
            let own_ns = after_ns(start_ns, end_ns).max(1);
            sum_of_rates += worker.tallies.measure.replies.total() as f64 * 1e9 / own_ns as f64;
            shortest_ns = shortest_ns.min(own_ns);
        }
    }
    let replies = facts.summary.window.replies.total();
    let rate = replies as f64 * 1e9 / facts.window_ns() as f64;
    let off = if replies == 0 {
        0.0
    } else {
        (sum_of_rates / rate - 1.0).abs()
    };
    // A late wake-up shortens a worker's own window without taking a reply from it.
    let tolerance = RATES_DIFFER.max(WAKE_UP_NS as f64 / shortest_ns as f64);
    let words = format!(
        "{} in the window: {rate:.1} per second; the workers' own rates make {sum_of_rates:.1} \
         ({} off)",
        counted(replies, "reply", "replies"),
        percent(off)
    );
    let mut problems = Problems::default();
    problems.expect(off <= tolerance, || words.clone());
    problems.or_held(words)
}

/// W6.
pub(super) fn every_request_accounted(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    sums::check("W6", facts, &mut problems);
    let (all, lifetime) = (&facts.summary.population, &facts.summary.lifetime);
    let again = lifetime.sent_again;
    problems.expect(facts.run.plan.sends_again || again == 0, || {
        format!("{again} sent again, though none may be")
    });
    // Only a run that went on until its count was reached must have reached it.
    let asked = facts.agent().share.requests;
    if let Some(asked) = asked.filter(|_| facts.ended_by_count()) {
        let accounted = facts.accounted_of_count();
        let beside = accounted - all.issued;
        problems.expect(accounted == asked, || {
            let asked = plural(asked, "request");
            let issued = all.issued;
            format!("{asked} asked for, {issued} issued and {beside} given up or left over")
        });
    }
    let again = match again {
        0 => String::new(),
        again => format!(" and {again} of them again"),
    };
    let carried_in = facts.summary.carried_in;
    problems.or_held(format!(
        "{} issued = {} recorded + {} failed + {} censored; {} sent in all phases{again}, \
         {} in flight at the end; {} in flight when the window began = {} answered + {} failed in \
         it + {} unanswered at its end",
        all.issued,
        all.recorded,
        all.failed,
        all.censored,
        lifetime.requests_sent,
        facts.summary.in_flight_at_end,
        carried_in.in_flight,
        carried_in.answered,
        carried_in.failed,
        carried_in.unanswered
    ))
}
