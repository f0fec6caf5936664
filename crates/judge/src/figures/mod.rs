//! The figures of a run that reports print, each present or absent with a reason.

pub(crate) mod bandwidth;

use std::fmt;

use brunt_load::Work;
use brunt_record::{
    AgentRecord, ArrivalCounts, Backend, CarriedIn, FailureKind, FailureScope, LiveConnections,
    Population, Run, Series, Tally, WorkerRecord,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A figure, or why there is none. Never NaN, infinite, or 0 in place of unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure<T = f64> {
    /// The value of the figure.
    Known(T),
    /// Why it is undefined.
    Absent(String),
}

/// The one key under which the reason stands of a figure that is absent, as it serialises: whoever
/// writes it puts null in its place, and the reason beside it.
pub const ABSENT_KEY: &str = "absent\0";

impl Figure {
    /// `numerator / denominator`, or `reason` where that is undefined.
    pub fn ratio(numerator: f64, denominator: f64, reason: &str) -> Self {
        let value = numerator / denominator;
        let is_defined = value.is_finite() && denominator > 0.0;
        Self::of(is_defined.then_some(value), reason)
    }
}

impl<T> Figure<T> {
    /// `value`, or `reason` where there is none.
    pub fn of(value: Option<T>, reason: &str) -> Self {
        value.map_or_else(|| Self::Absent(reason.to_owned()), Self::Known)
    }

    /// The value, where there is one.
    pub fn known(&self) -> Option<T>
    where
        T: Copy,
    {
        match self {
            Self::Known(value) => Some(*value),
            Self::Absent(_) => None,
        }
    }

    /// The figure that `f` makes of the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Figure<U> {
        match self {
            Self::Known(value) => Figure::Known(f(value)),
            Self::Absent(reason) => Figure::Absent(reason),
        }
    }

    /// The figure that `f` gives for the value.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Figure<U>) -> Figure<U> {
        match self {
            Self::Known(value) => f(value),
            Self::Absent(reason) => Figure::Absent(reason),
        }
    }
}

/// The value, or `not known` with the reason.
impl<T: fmt::Display> fmt::Display for Figure<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(formatter),
            Self::Absent(reason) => write!(formatter, "not known: {reason}"),
        }
    }
}

impl<T, E: ToString> From<Result<T, E>> for Figure<T> {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(|reason| Self::Absent(reason.to_string()), Self::Known)
    }
}

impl<T: Serialize> Serialize for Figure<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Absent(reason) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(ABSENT_KEY, reason)?;
                map.end()
            }
        }
    }
}

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
        let no_requests = (run.work() == Work::Streams).then(|| Self::NO_REQUESTS.to_owned());
        let of_requests = |figure: Figure| no_requests.clone().map_or(figure, Figure::Absent);
        let window_ns = run.window_ns as f64;
        let mean = |sum_ns: u64| of_load(Figure::ratio(sum_ns as f64, window_ns, NO_WINDOW));
        let (mut window, mut lifetime) = (Tally::default(), Tally::default());
        let mut population = Population::default();
        let mut carried_in = CarriedIn::default();
        let (mut arrivals, mut arrivals_all) = (ArrivalCounts::default(), ArrivalCounts::default());
        let mut live = LiveConnections::default();
        let mut series = Series::default();
        let workers = || agents.iter().flat_map(|agent| &agent.workers);
        let sum = |of: fn(&WorkerRecord) -> u64| workers().map(of).fold(0, u64::saturating_add);
        for worker in workers() {
            window.merge(&worker.tallies.measure);
            lifetime.merge(&worker.tallies.lifetime());
            population.merge(&worker.population);
            carried_in.merge(&worker.carried_in);
            arrivals.merge(&worker.arrivals);
            arrivals_all.merge(&worker.arrivals_all);
            live.merge(&worker.live);
            series.merge(&worker.series);
        }
        let in_flight_ns = sum(|worker| worker.in_flight_ns);
        let (mut cpu_ns, mut is_read) = (0.0, true);
        for host in agents.iter().map(|agent| agent.host) {
            let of_agent_ns = host.cpu_user_ns as f64 + host.cpu_system_ns as f64;
            is_read &= of_agent_ns > 0.0 && host.cpu_interval_ns > 0;
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
            if run.plan.load.model.schedule().is_none() {
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
            spun_ns: sum(|worker| worker.spun_ns),
            stamps_clamped: sum(|worker| worker.stamps_clamped),
            stamps_before_send: sum(|worker| worker.stamps_before_send),
            successes_per_s: of_requests(per_s(window.replies.successes())),
            attempts_per_s: of_requests(per_s(window.sends())),
            bytes_received_per_s: per_s(window.bytes_received),
            bytes_sent_per_s: per_s(window.bytes_sent),
            live_mean: mean(live.connection_ns),
            in_flight_mean: of_requests(mean(in_flight_ns)),
            in_flight_ns,
            awaiting_again_ns: sum(|worker| worker.awaiting_again_ns),
            cpu_ns_per_reply,
            window,
            lifetime,
            population,
            carried_in,
            in_flight_at_end: sum(|worker| worker.in_flight_at_end),
            unsent: sum(|worker| worker.unsent),
            live,
            series,
        }
    }
}

/// Fewer connections than this tell nothing of what one takes of brunt's memory.
const SHOWN_LEAST: u64 = 1_000;
/// Why it is not told.
const UNREAD: &str = "not read, or too few connections to tell";

/// The figures of a run whose connections are only kept open.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Held {
    /// Connections that were to be held.
    pub asked: u64,
    /// Connections open at the end of the window.
    pub open_at_end: u64,
    /// Fewest at any instant of the window.
    pub open_min: u64,
    /// Most at any instant of the window.
    pub open_max: u64,
    /// Connections opened in all, those in place of lost ones included.
    pub opened: u64,
    /// Attempts to open one that failed.
    pub attempts_failed: u64,
    /// Open connections that the server closed or reset.
    pub closed_by_server: u64,
    /// Open connections that brunt gave up, for what the server sent breaks the protocol.
    pub given_up: u64,
    /// Time from the start of set-up until as many connections were open as could be, nanoseconds;
    /// of several agents that of the slowest one. Null where set-up did not end.
    pub set_up_ns: Figure<u64>,
    /// Resident memory of brunt's process at its most, beyond what it had before the connections,
    /// for each of them. Null where it was not read, and with fewer than 1,000 connections.
    pub client_bytes_per_connection: Figure<u64>,
}

impl Held {
    /// The figures of a run and its summary; absent where connections had something to carry.
    pub fn of(run: &Run, summary: &Summary) -> Option<Self> {
        if run.work() != Work::Hold {
            return None;
        }
        let lifetime = &summary.lifetime;
        let lost = Lost::of(summary);
        let asked = summary.live.asked.into();
        let set_up = run.agents.iter().filter_map(|agent| {
            let ready = agent
                .workers
                .iter()
                .filter_map(|worker| worker.edges.ready.get());
            let from_ns = agent.clock.edges.setup_start.get()?;
            Some(ready.max()?.saturating_sub(from_ns).max(0).cast_unsigned())
        });
        let beyond = run.agents.iter().map(|agent| {
            let before = agent.host.resident_before_bytes?;
            let peak = Some(agent.host.peak_resident_bytes).filter(|&bytes| bytes > 0)?;
            Some(peak.saturating_sub(before))
        });
        let beyond = beyond.sum::<Option<u64>>().filter(|_| asked >= SHOWN_LEAST);
        let each = beyond.map(|bytes| bytes / asked);
        Some(Self {
            asked,
            open_at_end: summary.live.at_end.unwrap_or(0).into(),
            open_min: summary.live.min.into(),
            open_max: summary.live.max.into(),
            opened: lifetime.connections_opened,
            attempts_failed: lifetime.failures.total(FailureScope::Connect),
            closed_by_server: lost.closed,
            given_up: lost.given_up,
            set_up_ns: Figure::of(set_up.max(), "set-up did not end"),
            client_bytes_per_connection: Figure::of(each, UNREAD),
        })
    }

    /// How many of those that were to be held are missing at the end.
    pub fn missing(&self) -> u64 {
        self.asked.saturating_sub(self.open_at_end)
    }
}

/// Connections that were open, and are no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) closed: u64,
    pub(crate) given_up: u64,
}

impl Lost {
    pub(crate) fn of(summary: &Summary) -> Self {
        let lifetime = &summary.lifetime;
        let reset = lifetime.failures.get(FailureKind::IdleReset);
        Self {
            closed: lifetime.connections_closed_idle.saturating_add(reset),
            given_up: lifetime.failures.get(FailureKind::UnexpectedBytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_record::Histogram;

    use crate::invariants::sample::{open_run, replaced_after, run, sessions_run};
    use crate::{Quantile, RunFigures};

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

    #[test]
    fn connecting_is_part_of_a_request_where_each_response_is_the_first() {
        /// What is done to a run whose responses were all the first of their connections.
        type Edit = fn(&mut Run);
        let cases: [(&str, bool, Edit); 5] = [
            ("a connection per request", true, |run| {
                run.plan.traffic.reuse = replaced_after(1)
            }),
            ("a server that closes", true, |run| {
                run.agents[0].workers[0].tallies.measure.connections_opened += 100
            }),
            ("as many requests as connections", false, |_| ()),
            ("one response that was not", false, |run| {
                run.plan.traffic.reuse = replaced_after(1);
                run.latencies.response.record(1_000);
            }),
            ("no response", false, |run| {
                run.plan.traffic.reuse = replaced_after(1);
                run.latencies.response = Histogram::default();
                run.latencies.with_connect = Histogram::default();
            }),
        ];
        for (what, expected, edit) in cases {
            let mut run = run();
            for worker in &mut run.agents[0].workers {
                worker.tallies.measure.connections_opened = 0;
            }
            run.latencies.with_connect = run.latencies.response.clone();
            edit(&mut run);
            assert_eq!(run.connects_per_request(), expected, "{what}");
        }
    }

    #[test]
    fn what_was_never_answered_counts_as_longer() {
        let mut run = run();
        run.latencies.with_connect = Histogram::default();
        run.latencies.unfinished = Histogram::default();
        (0..90).for_each(|_| run.latencies.with_connect.record(10));
        (0..10).for_each(|_| run.latencies.unfinished.record(110));
        assert_eq!(run.with_connect_quantile(0.5).known_ns(), Some(10));
        let bound = Quantile::AtLeast { ns: 110 };
        assert_eq!(run.with_connect_quantile(0.95), bound);
    }
}
