//! What was counted in two ways adds up to the same: a table of sums. W6, L5, A4, A5, S1 and S2
//! are nothing else; of W5, L1, L2, L7, I4, I5, I7 and T1 a part is.

use brunt_load::Work;
use brunt_load::protocol::Greeting;
use brunt_record::{
    FailureKind, Latencies, NameRecord, Run, SeriesPoint, ServerCount, StreamRecord, Tally,
    WorkerRecord, after_ns, counted,
};

use crate::facts::Facts;
use crate::figures::Lost;
use crate::invariants::windows::WAKE_UP_NS;
use crate::invariants::{CheckOutcome, Checked, Problems, must, only_if};
use crate::units::exact::percent;

/// Granularity of CPU readings, nanoseconds.
pub(super) const CPU_READING_NS: u64 = 10_000_000;
/// What must hold of each worker: the invariant, two sums of terms, of which the first equals the
/// second or is no larger, and when that is so.
const OF_WORKERS: &[&str] = &[
    // The series is counted on its own way through the recorder: it is the second book.
    "W5: successes = successes over time",
    "W5: error replies = error replies over time",
    "W5: failures = failures over time",
    "W5: bytes received = bytes received over time",
    "W6: issued = recorded + failed + censored",
    "W6: issued = sent in the window",
    "W6: requests in all = sent in all",
    "W6: requests in all = answered in all + failed in all + in flight at the end",
    "W6: sent before the window = answered before it + failed before it + carried in",
    "W6: carried in = answered of those + failed of those + left of those",
    "W6: sent again = 0 if nothing may be sent again",
    "L1: open at most <= allowed",
    "L2: planned = sent + skipped for a full queue + skipped for waiting + unsent",
    "L2: planned in all = arrivals sent in all + full in all + late in all + unsent in all",
    "L7: time-outs <= requests without an answer",
    "L1: connections opened = full handshakes + resumed handshakes if over TLS",
    "I4: bytes received in all = heads + bodies + discarded + overhead",
    "I4: bytes that a reply has at least <= bytes of the smallest reply",
    "I4: bytes of as many of the smallest <= heads + bodies",
    // The kernel counts the FIN of a peer that has closed as one byte more.
    "I5: own bytes of sampled connections <= bytes of these by the kernel if there are no streams",
    "I5: bytes of these by the kernel <= own bytes of sampled connections + sampled connections if \
     there are no streams",
    // A thread runs on one CPU at a time.
    "I7: ns of CPU of its thread <= ns between its readings",
    "I7: ns of polling of its thread <= ns between its readings",
];

/// What must hold of the agents that are looked at.
const OF_ALL: &[&str] = &[
    "W6: requests asked for = issued, given up or left over if the count ended the run",
    "L1: connections asked for = connections dealt out to the workers",
    "L1: connections allowed = connections allowed to the workers",
    "L1: kept + opened = lost + open at the end if connections are held",
    "L2: arrivals planned = 0 if there is no schedule",
    "L2: opened <= arrivals + opened again for sessions if connections are planned",
    "L5: censored + never sent + in flight throughout + time-outs at least <= without an end",
    "L5: without an end <= censored + never sent + in flight throughout + time-outs at most",
    "A4: latencies = recorded",
    "A4: times to connect = opened",
    "A4: service times = service times due",
    "A4: response times over time = response times",
    "A4: issued by name = issued if there are names",
    "A4: recorded by name = recorded if there are names",
    "A4: failed by name = failed if there are names",
    "A4: censored by name = censored if there are names",
    "A4: sent by name = sent if there are names",
    // A generator may name its first request when others had responses.
    "A4: response times by name = response times if all requests have names",
    // Replies since the window began, but for those to requests that warm-up left in flight.
    "A5: response times <= successes since the window began",
    "A5: successes since the window began <= response times + left by warm-up",
    "A5: times of error replies <= error replies since the window began",
    "A5: error replies since the window began <= times of error replies + left by warm-up",
    "S1: ns of own shares = ns of own parts if sums are exact",
    "S1: ns of own shares + ns of rests = ns of parts if sums are exact",
    "S1: ns of parts = ns of response times if all of them are split",
    "S1: response times split <= response times",
    // Each arrival that was sent has a lag. Within connections, only some sends have one.
    "S1: arrivals sent <= schedule lags",
    "S1: schedule lags <= arrivals sent + sends that may have one",
    "S2: times to first byte = times of service",
    "S2: times of transfer = times of service",
    "S2: ns to first bytes + ns of transfers = ns of service if its sums are exact",
    "S2: times with connecting = response times if each reply had a connection",
    "S2: ns of response times <= ns with connecting if each reply had a connection",
    "A4: times of TLS handshakes = handshakes",
    "A4: times of first exchanges = first exchanges due",
    // Of streams: what was received was taken from their sockets, or waits in them.
    "I5: bytes received <= bytes by the kernel if there are streams",
    "I5: bytes by the kernel <= bytes received + in our sockets + not looked at if there are streams",
    // What a peer's kernel acknowledged was read, or is in its receive buffer. What was read was
    // acknowledged, or the acknowledgement is on its way: then it is still in our socket.
    "T1: bytes acknowledged <= bytes handed to the kernel",
    "T1: bytes read <= bytes acknowledged + not yet acknowledged if it counted on known streams",
    "T1: bytes acknowledged <= bytes read + in a buffer of each stream if the receiver counted",
    // What the server sent is in its send buffer, in our receive buffer, or was received.
    "T1: bytes received <= bytes sent by the server if the sender counted",
    "T1: bytes sent by the server <= bytes received + in two buffers of each stream if the sender \
     counted",
];

/// An invariant that is nothing but rows of the tables.
pub(super) fn hold(id: &str, facts: &Facts<'_>) -> Checked {
    Ok(CheckOutcome::held(add_up(id, facts)?))
}

/// What is equal by the rows of the invariant `id`, in words, that of workers added up; where
/// nothing was counted, the first row. `Err` where a row does not hold.
pub(super) fn add_up(id: &str, facts: &Facts<'_>) -> Result<String, CheckOutcome> {
    let mut problems = Problems::default();
    let mut found = Vec::new();
    for row in rows_of(id, OF_WORKERS, facts) {
        for worker in facts.workers() {
            let sums = row.read(|term| of_worker(term, facts, worker));
            problems.expect(row.holds(&sums), || {
                let words = row.words(&sums);
                format!("worker {}: {words} does not hold", worker.worker)
            });
        }
        let together = row.read(|term| {
            let values = facts.workers().map(|worker| of_worker(term, facts, worker));
            values.sum()
        });
        found.push((row, together));
    }
    for row in rows_of(id, OF_ALL, facts) {
        let sums = row.read(|term| of_all(term, facts));
        problems.expect(row.holds(&sums), || row.words(&sums) + " does not hold");
        found.push((row, sums));
    }
    problems.none()?;
    let is_shown =
        |(row, sums): &(Row, Sums)| row.relation == EQUAL && sums[0].iter().any(|&value| value > 0);
    if found.iter().any(is_shown) {
        found.retain(is_shown);
    } else {
        found.truncate(1);
    }
    let words: Vec<String> = found.iter().map(|(row, sums)| row.words(sums)).collect();
    Ok(words.join("; "))
}

/// A row of the tables: the terms of its two sums, and what stands between these.
struct Row {
    terms: [Vec<&'static str>; 2],
    relation: &'static str,
}

/// The values of the terms of a row.
type Sums = [Vec<u128>; 2];

const EQUAL: &str = " = ";
const AT_MOST: &str = " <= ";

/// The rows of an invariant that say something of this run.
fn rows_of(id: &str, table: &[&'static str], facts: &Facts<'_>) -> Vec<Row> {
    let rows = table.iter().filter_map(|words| {
        let row = words.strip_prefix(id)?.strip_prefix(": ")?;
        let (row, condition) = row.split_once(" if ").unwrap_or((row, ""));
        let relation = if row.contains(AT_MOST) {
            AT_MOST
        } else {
            EQUAL
        };
        let (left, right) = row.split_once(relation)?;
        let terms = [left, right].map(|side| side.split(" + ").collect());
        applies(condition, facts)?.then_some(Row { terms, relation })
    });
    rows.collect()
}

impl Row {
    fn read(&self, value: impl Fn(&str) -> Option<u128>) -> Sums {
        let values =
            |terms: &Vec<&str>| terms.iter().map(|term| value(term).unwrap_or(0)).collect();
        self.terms.each_ref().map(values)
    }

    fn holds(&self, sums: &Sums) -> bool {
        let [left, right] = sums.each_ref().map(|values| values.iter().sum::<u128>());
        left == right || self.relation == AT_MOST && left < right
    }

    fn words(&self, sums: &Sums) -> String {
        let side = |place: usize| {
            let terms = self.terms[place].iter().zip(&sums[place]);
            let terms = terms.map(|(&term, value)| match term {
                NOTHING => term.to_owned(),
                _ => format!("{term} {value}"),
            });
            terms.collect::<Vec<_>>().join(" + ")
        };
        [side(0), self.relation.to_owned(), side(1)].concat()
    }
}

/// The term that is nothing.
const NOTHING: &str = "0";

/// Whether a row with this condition says something. Absent where there is no such condition.
fn applies(condition: &str, facts: &Facts<'_>) -> Option<bool> {
    let (run, latencies) = (facts.run, &facts.run.latencies);
    let plan = &run.plan;
    let are_exact = parts_ns(latencies).is_some();
    Some(match condition {
        "" => true,
        "nothing may be sent again" => !plan.traffic.sends_again,
        "over TLS" => run.first().negotiated.tls.is_some(),
        "the count ended the run" => {
            facts.agent().share.requests.is_some() && facts.ended_by_count()
        }
        "connections are held" => run.work() == Work::Hold,
        "there is no schedule" => plan.load.model.schedule().is_none(),
        "connections are planned" => facts.is_sessions(),
        "there are names" => !run.names.is_empty(),
        "all requests have names" => !run.names.is_empty() && !run.is_generated(),
        "sums are exact" => are_exact,
        "all of them are split" => {
            are_exact && latencies.split.count() == latencies.response.count()
        }
        "there are streams" => run.work() == Work::Streams,
        "there are no streams" => run.work() != Work::Streams,
        "the receiver counted" => read_by_receiver(run).is_some(),
        "it counted on known streams" => {
            let mut streams = run.stream_records();
            read_by_receiver(run).is_some() && streams.all(|streams| streams.unread_accounts == 0)
        }
        "the sender counted" => sent_by_server(run).is_some(),
        "its sums are exact" => {
            let parts = [&latencies.first_byte, &latencies.transfer, facts.service()];
            parts.iter().all(|times| times.sum_ns() < u64::MAX)
        }
        "each reply had a connection" => {
            latencies.with_connect.count() > 0 && plan.requests_per_connection() == Some(1)
        }
        _ => return None,
    })
}

/// What a term is of a worker. Absent where no term has this name.
fn of_worker(term: &str, facts: &Facts<'_>, worker: &WorkerRecord) -> Option<u128> {
    let (before, window) = (&worker.tallies.before, &worker.tallies.measure);
    let all = || worker.tallies.lifetime();
    let work = facts.run.work();
    let (population, carried_in) = (&worker.population, &worker.carried_in);
    let (arrivals, all_arrivals) = (&worker.arrivals, &worker.arrivals_all);
    let over_time = |of: fn(&SeriesPoint) -> u64| sum(worker.series.points.iter().map(of));
    let smallest = worker.reply_bytes_min;
    Some(match term {
        NOTHING => 0,
        "successes" => window.replies.successes().into(),
        "successes over time" => over_time(|point| point.successes),
        "error replies" => window.replies.errors().into(),
        "error replies over time" => over_time(|point| point.errors),
        "failures" => sum(window.failures.iter().map(|(_, count)| count)),
        "failures over time" => over_time(|point| point.failures),
        "bytes received" => window.bytes_received.into(),
        "bytes received over time" => over_time(|point| point.bytes_received),
        "issued" => population.issued.into(),
        "recorded" => population.recorded.into(),
        "failed" => population.failed.into(),
        "censored" => population.censored.into(),
        // With a schedule of requests, one belongs to the window in which it was planned.
        "sent in the window" if facts.is_open() => arrivals.sent.into(),
        "sent in the window" => window.requests_sent.into(),
        "requests in all" => all().requests_sent.into(),
        "sent in all" if facts.is_open() => all_arrivals.sent.into(),
        "sent in all" => all().requests_sent.into(),
        "answered in all" => all().replies.total().into(),
        "failed in all" => all().failures.of_requests(work).into(),
        "in flight at the end" => worker.in_flight_at_end.into(),
        "sent before the window" => before.requests_sent.into(),
        "answered before it" => before.replies.total().into(),
        "failed before it" => before.failures.of_requests(work).into(),
        "carried in" => carried_in.in_flight.into(),
        "answered of those" => carried_in.answered.into(),
        "failed of those" => carried_in.failed.into(),
        "left of those" => carried_in.unanswered.into(),
        "sent again" => all().sent_again.into(),
        "open at most" => worker.live.max.into(),
        "allowed" => worker.live.most.into(),
        "planned" => arrivals.planned.into(),
        "planned in all" => all_arrivals.planned.into(),
        "sent" => arrivals.sent.into(),
        "arrivals sent in all" => all_arrivals.sent.into(),
        "skipped for a full queue" => arrivals.skipped_full.into(),
        "skipped for waiting" => arrivals.skipped_late.into(),
        "unsent" => arrivals.unsent.into(),
        "full in all" => all_arrivals.skipped_full.into(),
        "late in all" => all_arrivals.skipped_late.into(),
        "unsent in all" => all_arrivals.unsent.into(),
        "time-outs" => all().failures.get(FailureKind::TimedOut).into(),
        "requests without an answer" => all()
            .requests_sent
            .saturating_sub(all().replies.total())
            .into(),
        "connections opened" => all().connections_opened.into(),
        "full handshakes" => all().handshakes_full.into(),
        "resumed handshakes" => all().handshakes_resumed.into(),
        "bytes received in all" => all().bytes_received.into(),
        "heads" => all().reply_head_bytes.into(),
        "bodies" => all().reply_body_bytes.into(),
        "discarded" => all().discarded_bytes.into(),
        "overhead" => all().overhead_bytes.into(),
        "bytes that a reply has at least" if smallest.is_none() => all().replies.total().into(),
        "bytes that a reply has at least" => facts.run.protocol().reply_bytes_least.into(),
        "bytes of the smallest reply" => smallest.unwrap_or(0).into(),
        "bytes of as many of the smallest" => {
            u128::from(smallest.unwrap_or(0)) * u128::from(all().replies.total())
        }
        "sampled connections" => worker.kernel.connections.into(),
        "own bytes of sampled connections" => worker.kernel.own_bytes_received.into(),
        "bytes of these by the kernel" => worker.kernel.kernel_bytes_received.into(),
        "ns of CPU of its thread" => worker.thread.map_or(0, |thread| thread.cpu_ns()).into(),
        "ns of polling of its thread" => worker.thread.map_or(0, |thread| thread.spun_ns).into(),
        // Its two readings are not made in one call.
        "ns between its readings" => {
            let interval_ns = worker.thread.map_or(0, |thread| thread.interval_ns);
            sum([
                interval_ns,
                interval_ns / THREAD_READING_PART,
                CPU_READING_NS,
            ])
        }
        _ => return None,
    })
}

/// What a term is of the agents that are looked at. Absent where no term has this name.
fn of_all(term: &str, facts: &Facts<'_>) -> Option<u128> {
    let (run, lifetime, latencies) = (facts.run, &facts.summary.lifetime, &facts.run.latencies);
    let (share, population) = (&facts.agent().share, &facts.summary.population);
    let (response, split, lost) = (
        &latencies.response,
        &latencies.split,
        Lost::of(&facts.summary),
    );
    let by_name = |of: fn(&NameRecord) -> u64| sum(run.names.iter().map(of));
    let since = |of: fn(&Tally) -> u64| {
        facts.sum(|worker| of(&worker.tallies.measure).saturating_add(of(&worker.tallies.after)))
    };
    let timed_out = || since(|tally| tally.failures.get(FailureKind::TimedOut));
    let of_streams = |of: fn(&StreamRecord) -> u64| sum(run.stream_records().map(of));
    let count = |found: Option<ServerCount>| {
        let counted = found.and_then(|found| found.counted());
        counted.map_or(0, u128::from)
    };
    Some(match term {
        NOTHING => 0,
        "requests asked for" => share.requests.unwrap_or(0).into(),
        "issued, given up or left over" => facts.accounted_of_count().into(),
        "connections asked for" if facts.is_sessions() => 0,
        "connections asked for" => share.connections.into(),
        "connections dealt out to the workers" => facts.sum(|worker| worker.live.asked.into()),
        "connections allowed" if !facts.is_open() => share.connections.into(),
        "connections allowed" => share.connections_max.unwrap_or(share.connections).into(),
        "connections allowed to the workers" => facts.sum(|worker| worker.live.most.into()),
        "kept" => facts.sum(|worker| worker.connections_kept),
        "opened" => lifetime.connections_opened.into(),
        "lost" => sum([lost.closed, lost.given_up]),
        "open at the end" => facts.summary.live.at_end.unwrap_or(0).into(),
        "arrivals planned" => facts.summary.arrivals_all.planned.into(),
        "arrivals" => facts.summary.arrivals_all.sent.into(),
        "opened again for sessions" => {
            let used = run.generator_use().and_then(|(used, _)| used.sessions);
            used.map_or(0, |sessions| sessions.reconnected).into()
        }
        "without an end" => latencies.unfinished.count().into(),
        "never sent" if facts.is_open() => facts.never_sent(),
        "never sent" => 0,
        // With a schedule of requests, those of warm-up are no part of the plan's.
        "in flight throughout" if facts.is_open() || facts.no_window() => 0,
        "in flight throughout" => facts.summary.carried_in.unanswered.into(),
        // As many as failed at most, and all but those of requests that warm-up left at least.
        "time-outs at least" => timed_out().saturating_sub(facts.left_by_warmup()),
        "time-outs at most" => timed_out().min(population.failed.into()),
        "latencies" => sum(facts.latencies().map(|(_, all)| all.count())),
        "issued" => population.issued.into(),
        "recorded" => population.recorded.into(),
        "failed" => population.failed.into(),
        "censored" => population.censored.into(),
        "sent" => lifetime.requests_sent.into(),
        "times to connect" => latencies.connect.count().into(),
        "service times" => latencies.service.count().into(),
        // From the send, both are the same.
        "service times due" if !facts.is_open() => 0,
        "service times due" | "response times" => response.count().into(),
        "response times over time" => latencies.intervals.count().into(),
        "issued by name" => by_name(|name| name.population.issued),
        "recorded by name" => by_name(|name| name.population.recorded),
        "failed by name" => by_name(|name| name.population.failed),
        "censored by name" => by_name(|name| name.population.censored),
        "sent by name" => by_name(|name| name.requests_sent),
        "response times by name" => by_name(|name| name.response.count()),
        "successes since the window began" => since(|tally| tally.replies.successes()),
        "times of error replies" => latencies.response_error.count().into(),
        "error replies since the window began" => since(|tally| tally.replies.errors()),
        "left by warm-up" => facts.left_by_warmup(),
        "ns of own shares" => split.own.sum_ns().into(),
        "ns of rests" => split.rest.sum_ns().into(),
        "ns of parts" => parts_ns(latencies)?[0],
        "ns of own parts" => parts_ns(latencies)?[1],
        "ns of response times" => response.sum_ns().into(),
        "response times split" => split.count().into(),
        "schedule lags" => latencies.lag.count().into(),
        "arrivals sent" => facts.summary.arrivals.sent.into(),
        "sends that may have one" if facts.is_open() => 0,
        "sends that may have one" => population.issued.into(),
        "times to first byte" => latencies.first_byte.count().into(),
        "times of transfer" => latencies.transfer.count().into(),
        "times of service" => facts.service().count().into(),
        "ns to first bytes" => latencies.first_byte.sum_ns().into(),
        "ns of transfers" => latencies.transfer.sum_ns().into(),
        "ns of service" => facts.service().sum_ns().into(),
        "times with connecting" => latencies.with_connect.count().into(),
        "ns with connecting" => latencies.with_connect.sum_ns().into(),
        "times of TLS handshakes" => latencies.tls.count().into(),
        "handshakes" => sum([lifetime.handshakes_full, lifetime.handshakes_resumed]),
        "times of first exchanges" => latencies.greeting.count().into(),
        "first exchanges due" => match run.protocol().greeting {
            Greeting::Nothing => 0,
            Greeting::Planned if !run.plan.is_opened_by_message() => 0,
            Greeting::Planned | Greeting::Prescribed(_) => lifetime.connections_opened.into(),
        },
        "bytes received" => lifetime.bytes_received.into(),
        "bytes by the kernel" => of_streams(|streams| streams.lifetime.bytes_received),
        "in our sockets" => of_streams(|streams| streams.unread_bytes),
        // An end counts as a byte; what came as a stream ended otherwise is not looked at.
        "not looked at" => {
            let opened = u128::from(lifetime.connections_opened);
            opened + open_streams(facts) * u128::from(TAKEN_AT_ONCE)
        }
        "bytes acknowledged" => of_streams(|streams| streams.lifetime.bytes_acked),
        "not yet acknowledged" => of_streams(|streams| streams.unacknowledged_bytes),
        "bytes handed to the kernel" => lifetime.bytes_sent.into(),
        "bytes read" => count(read_by_receiver(run)),
        "bytes sent by the server" => count(sent_by_server(run)),
        "in a buffer of each stream" => open_streams(facts) * buffer_bytes_max(run),
        "in two buffers of each stream" => 2 * open_streams(facts) * buffer_bytes_max(run),
        _ => return None,
    })
}

/// Granularity of the CPU readings of one thread, as a part of the interval between them: one in so
/// many.
const THREAD_READING_PART: u64 = 50;
/// What one buffer of a server elsewhere may hold: the most that `tcp_rmem` says on any machine
/// that is set up for long and fast ways.
const BUFFER_BYTES_ELSEWHERE: u64 = 64 << 20;
/// What a buffer may hold beyond its limit: the last segments that it took, which the kernel does
/// not cut.
const BUFFER_BYTES_BEYOND: u64 = 128 << 10;
/// What one receive takes from a socket, at most.
const TAKEN_AT_ONCE: u64 = 1 << 20;

/// Bytes that one buffer of the server's sockets may hold, at most.
fn buffer_bytes_max(run: &Run) -> u128 {
    let agents = run.agents.iter();
    let known = agents.filter_map(|agent| agent.limits.server_buffer_bytes_max);
    let bytes_max = known.max().unwrap_or(BUFFER_BYTES_ELSEWHERE);
    bytes_max.saturating_add(BUFFER_BYTES_BEYOND).into()
}

/// Streams that did not end in order: of those that both sides ended, nothing is in any buffer.
fn open_streams(facts: &Facts<'_>) -> u128 {
    let in_order = facts
        .run
        .stream_records()
        .map(|streams| streams.ended_in_order);
    u128::from(facts.summary.lifetime.connections_opened).saturating_sub(sum(in_order))
}

/// The receiver's count of what it read, where brunt sent.
fn read_by_receiver(run: &Run) -> Option<ServerCount> {
    run.plan.one_way().filter(|one_way| one_way.sends)?;
    run.server_count().ok()?
}

/// The server's count of what it gave to its kernel, where brunt received.
fn sent_by_server(run: &Run) -> Option<ServerCount> {
    run.plan.one_way().filter(|one_way| one_way.receives)?;
    run.server_sent().ok()?
}

/// The parts of all response times that were split, and brunt's own parts, nanoseconds. Absent
/// where a sum has lost its exact value: those of histograms stop at what a `u64` holds.
fn parts_ns(latencies: &Latencies) -> Option<[u128; 2]> {
    let mut sums_ns = [0, 0];
    for bucket in latencies.split.buckets() {
        let (all_ns, own_ns) = bucket.sums.exact_sums();
        sums_ns = [sums_ns[0] + all_ns, sums_ns[1] + own_ns];
        if bucket.sums.is_saturated() {
            return None;
        }
    }
    let is_exact = sums_ns[0] < u64::MAX.into() && latencies.response.sum_ns() < u64::MAX;
    is_exact.then_some(sums_ns)
}

/// The sum, in a type that cannot overflow.
pub(super) fn sum(values: impl IntoIterator<Item = u64>) -> u128 {
    values.into_iter().map(u128::from).sum()
}

/// How far the rate and the sum of the workers' rates may differ.
const RATES_DIFFER: f64 = 0.01;

/// W5.
pub(super) fn workers_add_up(facts: &Facts<'_>) -> Checked {
    add_up("W5", facts)?;
    only_if(!facts.no_window(), "there is no window")?;
    let (mut sum_of_rates, mut shortest_ns) = (0.0, facts.run.window_ns);
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
    let rate = replies as f64 * 1e9 / facts.run.window_ns as f64;
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
    must(off <= tolerance, &words)?;
    Ok(CheckOutcome::held(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::sample::run;

    #[test]
    fn each_row_is_of_known_terms_and_conditions() {
        let run = run();
        let facts = Facts::of(&run);
        let worker = &run.agents[0].workers[0];
        type Value<'a> = &'a dyn Fn(&str) -> Option<u128>;
        let tables: [(&[&str], Value<'_>); 2] = [
            (OF_WORKERS, &|term| of_worker(term, &facts, worker)),
            (OF_ALL, &|term| of_all(term, &facts)),
        ];
        for (table, value) in tables {
            for row in table {
                let (_, sums) = row.split_once(": ").expect("an invariant");
                let (sums, condition) = sums.split_once(" if ").unwrap_or((sums, ""));
                assert!(applies(condition, &facts).is_some(), "{row}");
                let sides = sums.split_once(AT_MOST).or_else(|| sums.split_once(EQUAL));
                let (left, right) = sides.expect("two sums");
                let mut terms = left.split(" + ").chain(right.split(" + "));
                assert!(terms.all(|term| value(term).is_some()), "{row}");
            }
        }
        assert_eq!(of_all("another", &facts), None);
        assert_eq!(applies("another", &facts), None);
    }
}
