//! The figures of a run that reports print, each present or absent with a reason.

use crate::Figure;
use brunt_record::{
    AgentRecord, ArrivalCounts, Backend, CarriedIn, HostUse, LiveConnections, Population, Run,
    Series, Tally,
};

/// The figures derived from a run. Rates are counts in the window divided by its length.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Successful replies (status below 400) per second: the headline.
    pub successes_per_s: Figure,
    /// Sends of requests per second, those of requests sent again among them, whatever became of
    /// them.
    pub attempts_per_s: Figure,
    /// Arrivals planned in the window per second. Absent in a closed loop.
    pub planned_per_s: Figure,
    /// Share (0 to 1) of the arrivals planned in the window that found no connection free, whether
    /// sent later or never. Absent in a closed loop.
    pub waited_share: Figure,
    /// Bytes read from sockets per second.
    pub bytes_received_per_s: Figure,
    /// Bytes of requests, and in HTTP/2 of all frames, handed to the kernel per second of the
    /// window; without what TLS adds.
    pub bytes_sent_per_s: Figure,
    /// Mean of the open connections.
    pub live_mean: Figure,
    /// Mean of the requests in flight.
    pub in_flight_mean: Figure,
    /// Requests in flight times nanoseconds over the window, all workers.
    pub in_flight_ns: u64,
    /// Of that, the time in which requests waited to be sent again, on no connection.
    pub awaiting_again_ns: u64,
    /// CPU of the process (user and system) per complete reply, nanoseconds. Absent when the
    /// process also held the server, in simulation, and when no CPU time was read.
    pub cpu_ns_per_reply: Figure,
    /// Counters of the window, all workers.
    pub window: Tally,
    /// Counters of all phases, all workers.
    pub lifetime: Tally,
    /// The outcome of the requests issued in the window, all workers.
    pub population: Population,
    /// The outcome of the requests that were in flight when the window began, all workers. Absent
    /// where a worker did not count them.
    pub carried_in: CarriedIn,
    /// The outcome of the arrivals planned in the window, all workers; all 0 in a closed loop.
    pub arrivals: ArrivalCounts,
    /// The outcome of the arrivals planned in all phases, all workers; all 0 in a closed loop.
    pub arrivals_all: ArrivalCounts,
    /// Requests of any phase still in flight at the end of drain, all workers.
    pub in_flight_at_end: u64,
    /// Requests of `--requests` that were never sent.
    pub unsent: u64,
    /// Time that all workers spent polling without result, whole life, nanoseconds.
    pub spun_ns: u64,
    /// Kernel stamps that were moved into what is possible, all workers.
    pub stamps_clamped: u64,
    /// Clamped stamps that lay before the request was sent.
    pub stamps_before_send: u64,
    /// Open connections over the window, all workers.
    pub live: LiveConnections,
    /// Figures over time, all workers.
    pub series: Series,
}

impl Summary {
    /// Why figures of requests are absent in a run of streams.
    pub(crate) const NO_REQUESTS: &str = "streams carry no requests";

    /// Requests of the plan that were answered in time for the plan: those recorded, but no more
    /// than were answered within the window and are in flight at any instant, for what is answered
    /// in drain was not kept up with.
    pub(crate) fn answered_of_plan(&self) -> u64 {
        let in_flight = self.in_flight_mean.known().unwrap_or(0.0).ceil() as u64;
        let in_window = self.window.replies.total().saturating_add(in_flight);
        self.population.recorded.min(in_window)
    }
}

impl Summary {
    /// Adds up the workers of `agents`, which are some of `run`, and derives the figures.
    pub fn of(run: &Run, agents: &[AgentRecord]) -> Self {
        const NO_WINDOW: &str = "the measure phase has no length";
        let window_s = run.window_ns as f64 / 1e9;
        let not_one_load = match agents.len() {
            1 => None,
            _ => run.not_one_load(),
        };
        // What is per second, or at once, is so of one load only.
        let of_load = |figure: Figure| match &not_one_load {
            Some(reason) => Figure::Absent(reason.clone()),
            None => figure,
        };
        let per_s = |count: u64| of_load(Figure::ratio(count as f64, window_s, NO_WINDOW));
        let of_requests = |figure: Figure| match run.is_streams() {
            true => Figure::Absent(Self::NO_REQUESTS.to_owned()),
            false => figure,
        };
        let mean = |sum_ns: u64| {
            of_load(Figure::ratio(
                sum_ns as f64,
                run.window_ns as f64,
                NO_WINDOW,
            ))
        };
        let (mut window, mut lifetime) = (Tally::default(), Tally::default());
        let mut population = Population::default();
        let mut carried_in = CarriedIn::default();
        let (mut arrivals, mut arrivals_all) = (ArrivalCounts::default(), ArrivalCounts::default());
        let mut live = LiveConnections::default();
        let mut series = Series::default();
        let (mut spun_ns, mut stamps_clamped) = (0_u64, 0_u64);
        let mut stamps_before_send = 0_u64;
        let (mut in_flight_at_end, mut unsent, mut in_flight_ns) = (0_u64, 0_u64, 0_u64);
        let mut awaiting_again_ns = 0_u64;
        for worker in agents.iter().flat_map(|agent| &agent.workers) {
            window.merge(&worker.tallies.measure);
            lifetime.merge(&worker.tallies.lifetime());
            population.merge(&worker.population);
            carried_in.merge(&worker.carried_in);
            arrivals.merge(&worker.arrivals);
            arrivals_all.merge(&worker.arrivals_all);
            spun_ns = spun_ns.saturating_add(worker.spun_ns);
            stamps_clamped = stamps_clamped.saturating_add(worker.stamps_clamped);
            stamps_before_send = stamps_before_send.saturating_add(worker.stamps_before_send);
            live.merge(&worker.live);
            series.merge(&worker.series);
            in_flight_ns = in_flight_ns.saturating_add(worker.in_flight_ns);
            awaiting_again_ns = awaiting_again_ns.saturating_add(worker.awaiting_again_ns);
            in_flight_at_end = in_flight_at_end.saturating_add(worker.in_flight_at_end);
            unsent = unsent.saturating_add(worker.unsent);
        }
        let (mut cpu_ns, mut is_read) = (0.0, true);
        for HostUse {
            cpu_user_ns,
            cpu_system_ns,
            cpu_interval_ns,
            ..
        } in agents.iter().map(|agent| agent.host)
        {
            let of_agent_ns = cpu_user_ns as f64 + cpu_system_ns as f64;
            is_read &= of_agent_ns > 0.0 && cpu_interval_ns > 0;
            cpu_ns += of_agent_ns;
        }
        let cpu_ns_per_reply = if agents.iter().any(|agent| agent.own_server) {
            Figure::Absent("the process also held the reference server".to_owned())
        } else if agents.iter().any(|agent| agent.backend == Backend::Sim) {
            Figure::Absent("the network was simulated".to_owned())
        } else if !is_read {
            Figure::Absent("no CPU time was read".to_owned())
        } else {
            Figure::ratio(
                cpu_ns,
                window.replies.total() as f64,
                "no complete reply in the window",
            )
        };
        let planned_per = |denominator: f64, numerator: u64, reason| {
            if run.plan.model.schedule().is_none() {
                return Figure::Absent("a closed loop plans no arrivals".to_owned());
            }
            Figure::ratio(numerator as f64, denominator, reason)
        };
        let planned_per_s = of_load(planned_per(window_s, arrivals.planned, NO_WINDOW));
        let found_none_free = arrivals
            .planned
            .saturating_sub(arrivals.sent.saturating_sub(arrivals.waited));
        let waited_share = planned_per(
            arrivals.planned as f64,
            found_none_free,
            "no arrival was planned in the window",
        );
        Self {
            planned_per_s,
            waited_share,
            arrivals,
            arrivals_all,
            spun_ns,
            stamps_clamped,
            stamps_before_send,
            successes_per_s: of_requests(per_s(window.replies.successes())),
            attempts_per_s: of_requests(per_s(window.sends())),
            bytes_received_per_s: per_s(window.bytes_received),
            bytes_sent_per_s: per_s(window.bytes_sent),
            live_mean: mean(live.connection_ns),
            in_flight_mean: of_requests(mean(in_flight_ns)),
            in_flight_ns,
            awaiting_again_ns,
            cpu_ns_per_reply,
            window,
            lifetime,
            population,
            carried_in,
            in_flight_at_end,
            unsent,
            live,
            series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunFigures;
    use crate::invariants::sample::{open_run, run, sessions_run};

    #[test]
    fn a_plan_has_its_figures() {
        let mut run = open_run();
        run.agents[0].workers[1].spun_ns = 7;
        run.agents[0].workers[1].stamps_clamped = 3;
        run.agents[0].workers[0].arrivals.sent -= 15;
        run.agents[0].workers[0].arrivals.skipped_full += 5;
        run.agents[0].workers[0].arrivals.skipped_late += 4;
        run.agents[0].workers[0].arrivals.unsent += 6;
        let summary = run.summary();
        assert_eq!(summary.planned_per_s, Figure::Known(2_000.0));
        // Two waited and were sent, 15 never were; of 4,000.
        assert_eq!(summary.arrivals.waited, 2);
        assert_eq!(summary.waited_share, Figure::Known(17.0 / 4_000.0));
        assert_eq!(summary.arrivals.planned, 4_000);
        assert_eq!(summary.arrivals_all.planned, 4_400);
        assert_eq!((summary.spun_ns, summary.stamps_clamped), (7, 3));
        assert_eq!((summary.live.asked, summary.live.most), (8, 8));
        let sessions = sessions_run().summary();
        assert_eq!(sessions.planned_per_s, Figure::Known(200.0));
        assert_eq!((sessions.live.asked, sessions.live.most), (0, 8));
    }

    #[test]
    fn what_was_not_planned_has_none() {
        let closed = run().summary();
        for figure in [&closed.planned_per_s, &closed.waited_share] {
            assert!(matches!(figure, Figure::Absent(reason) if reason.contains("closed loop")));
        }
        let mut nothing = open_run();
        nothing.agents[0].workers.clear();
        let nothing = nothing.summary();
        assert_eq!(nothing.planned_per_s, Figure::Known(0.0));
        assert_eq!(nothing.waited_share.known(), None);
    }
}
