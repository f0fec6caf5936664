//! A simulated run as brunt and as the server counted it: where the two counts differ.

use brunt_judge::RunFigures;
use brunt_load::{LoadModel, Plan};
use brunt_record::{ArrivalCounts, FailureKind, Protocol, Run};
use brunt_testkit::SimCounts;

use crate::common::{failed, lifetime};

/// The checks that fail.
pub(super) fn mismatches(plan: &Plan, run: &Run, counts: &SimCounts) -> Vec<String> {
    let mut checks = of_the_server(run, counts);
    if run.protocol() != Protocol::HTTP2 {
        checks.extend(of_the_network(run, counts));
    }
    checks.extend(of_one_way_streams(run, counts));
    checks.extend(of_the_window(run));
    checks.extend(of_arrivals(plan, run, counts));
    checks.extend(of_the_machine(run));
    checks
        .into_iter()
        .filter(|&(_, holds)| !holds)
        .map(|(words, _)| words.to_owned())
        .collect()
}

type Check = (&'static str, bool);

fn of_the_server(run: &Run, counts: &SimCounts) -> Vec<Check> {
    let lifetime = lifetime(run);
    let replies = lifetime.replies.total();
    let in_flight = run.summary().in_flight_at_end;
    let is_clean = failed(run) + in_flight + lifetime.sent_again == 0;
    vec![
        (
            "no more requests than were sent",
            counts.requests <= lifetime.sends(),
        ),
        ("no more replies than answers", replies <= counts.replies),
        (
            "where nothing failed the counts are equal",
            !is_clean || (replies, replies) == (counts.requests, counts.replies),
        ),
        (
            "refused connections agree",
            lifetime.failures.get(FailureKind::ConnectRefused) <= counts.connections_refused,
        ),
        (
            "attempts without a socket agree",
            lifetime.failures.get(FailureKind::ConnectNoDescriptor)
                == counts.connections_impossible,
        ),
        (
            "no more connections than the server took",
            lifetime.connections_opened <= counts.connections_accepted,
        ),
        (
            "sent = replies + failed + in flight",
            lifetime.requests_sent == replies + failed(run) + in_flight,
        ),
    ]
}

/// Checks of what the simulated network finds by itself in what brunt sends, as it does with
/// HTTP/1.1 and messages.
fn of_the_network(run: &Run, counts: &SimCounts) -> Vec<Check> {
    let lifetime = lifetime(run);
    let replies = lifetime.replies.total();
    let held = u64::from(run.plan.load.connections.get().max(run.summary().live.max));
    // Of what TLS had not decrypted when the run ended there is no count: at most a flight of a
    // handshake, or a record, per connection.
    let in_records = match run.agents[0].negotiated.tls {
        None => 0,
        Some(_) => 17_000 * held,
    };
    vec![
        (
            "sent = received + lost",
            counts.requests_sent == counts.requests + counts.requests_lost,
        ),
        (
            "received = answered + faults + abandoned",
            counts.requests == counts.replies + counts.faults() + counts.abandoned,
        ),
        (
            "requests sent agree",
            lifetime.sends() == counts.requests_sent,
        ),
        ("bytes sent agree", lifetime.bytes_sent == counts.bytes_sent),
        (
            "bytes received agree",
            lifetime.bytes_received <= counts.bytes_delivered
                && counts.bytes_delivered - lifetime.bytes_received <= in_records,
        ),
        (
            "connections agree",
            lifetime.connections_opened == counts.connections_established
                && counts.connections_established <= counts.connections_accepted,
        ),
        (
            "no more replies than answers that were taken",
            replies <= counts.replies_delivered && counts.replies_delivered <= counts.replies,
        ),
    ]
}

/// Checks of streams. The server may have read what was on its way when brunt ended them.
fn of_one_way_streams(run: &Run, counts: &SimCounts) -> Vec<Check> {
    let Some(found) = run.bandwidth() else {
        return Vec::new();
    };
    let records = || run.workers().filter_map(|worker| worker.streams.as_ref());
    let in_order: u64 = records().map(|record| record.ended_in_order).sum();
    let unacknowledged: u64 = records().map(|record| record.unacknowledged_bytes).sum();
    let acked = found.lifetime.bytes_acked;
    let (read, received) = (counts.stream_bytes_read, lifetime(run).bytes_received);
    let ended_all = in_order == lifetime(run).connections_opened;
    vec![
        ("what was read was sent", read <= acked + unacknowledged),
        (
            "what was received was sent by the server",
            received <= counts.stream_bytes_sent,
        ),
        (
            "where all streams ended in order the counts are equal",
            !ended_all || (read == acked && received == counts.stream_bytes_sent),
        ),
    ]
}

fn of_the_window(run: &Run) -> Vec<Check> {
    let population = run.summary().population;
    let latencies = &run.latencies;
    vec![
        (
            "issued = recorded + failed + censored",
            population.issued == population.recorded + population.failed + population.censored,
        ),
        (
            "each recorded one has a response time",
            population.recorded == latencies.response.count() + latencies.response_error.count(),
        ),
    ]
}

fn of_arrivals(plan: &Plan, run: &Run, counts: &SimCounts) -> Vec<Check> {
    let summary = run.summary();
    let (window, all) = (summary.arrivals, summary.arrivals_all);
    let lifetime = &summary.lifetime;
    let mut checks = vec![
        (
            "planned arrivals of the window have one outcome",
            adds_up(window),
        ),
        ("planned arrivals have one outcome", adds_up(all)),
    ];
    match &plan.load.model {
        LoadModel::Closed { .. } => {
            checks.push(("nothing is planned", all == ArrivalCounts::default()));
        }
        LoadModel::Held { .. } => {
            let sent = lifetime.requests_sent;
            checks.push(("nothing is planned", all == ArrivalCounts::default()));
            checks.push(("nothing is sent", sent == 0));
        }
        LoadModel::Open {
            connections_max, ..
        } => {
            checks.extend([
                (
                    "planned requests are sent once",
                    all.sent == summary.lifetime.requests_sent,
                ),
                (
                    "those of the window, too",
                    window.sent == summary.population.issued,
                ),
                (
                    "response and service times come in pairs",
                    run.latencies.response.count() == run.latencies.service.count(),
                ),
                (
                    "no more connections than allowed",
                    summary.live.max <= connections_max.get(),
                ),
            ]);
        }
        LoadModel::Sessions { .. } => {
            let attempts = counts.connections_impossible
                + counts.connections_accepted
                + counts.connections_refused
                + counts.connections_unanswered;
            checks.extend([
                (
                    "planned connections are attempted once",
                    all.sent == attempts,
                ),
                (
                    "no more connections than allowed",
                    summary.live.max <= plan.load.connections.get(),
                ),
                (
                    "no more first replies than connections",
                    run.latencies.first_reply.count() <= window.sent,
                ),
            ]);
        }
    }
    if let Some(planned) = planned(plan, run) {
        checks.push((
            "every arrival of the schedule was planned",
            all.planned == planned,
        ));
    }
    checks
}

/// Checks of a machine that was read.
fn of_the_machine(run: &Run) -> Vec<Check> {
    let evidence = &run.agents[0].evidence;
    let cpus = &evidence.host.cpus;
    let read = run.agents[0]
        .workers
        .iter()
        .filter(|worker| worker.thread.is_some());
    let mut checks = vec![(
        "each worker has a CPU that is read, or none has",
        cpus.len() == read.count(),
    )];
    for (cpu, worker) in cpus.iter().zip(&run.agents[0].workers) {
        let thread = worker.thread.unwrap_or_default();
        let waited_ns = thread.run_queue_wait_ns.unwrap_or(0);
        checks.extend([
            (
                "each nanosecond of a CPU is spent once",
                cpu.total_ns() == thread.interval_ns,
            ),
            (
                "no worker is read for longer than the machine",
                thread.interval_ns <= evidence.interval_ns,
            ),
            (
                "a worker runs when its CPU is busy",
                thread.cpu_user_ns <= cpu.busy_ns,
            ),
            (
                "the window is a part of a life",
                thread.cpu_user_ns <= worker.cpu_user_ns,
            ),
            (
                "a worker runs, waits, or sleeps",
                thread.cpu_user_ns + waited_ns + cpu.steal_ns <= thread.interval_ns,
            ),
        ]);
    }
    if let Some(server) = &evidence.server {
        let cpus_ns = server.cpus.unwrap_or(0.0) * server.interval_ns as f64;
        checks.push((
            "a server uses no more CPUs than it has",
            server.cpu_ns() as f64 <= cpus_ns,
        ));
    }
    checks
}

fn adds_up(arrivals: ArrivalCounts) -> bool {
    arrivals.waited <= arrivals.sent
        && arrivals.planned
            == arrivals.sent + arrivals.skipped_full + arrivals.skipped_late + arrivals.unsent
}

/// How many arrivals the schedule has up to the end of the window. Absent without a schedule, and
/// where a count of requests ends it.
fn planned(plan: &Plan, run: &Run) -> Option<u64> {
    let schedule = plan
        .load
        .model
        .schedule()?
        .clone()
        .after(plan.load.warmup_ns);
    if plan.load.stop.requests.is_some() {
        return None;
    }
    let warmup_start_ns = run.agents[0].clock.edges.warmup_start.get()?;
    let length_ns = run.window_ns + brunt_record::after_ns(warmup_start_ns, 0);
    let workers = plan.workers.count.get();
    let of_worker = |worker| {
        let arrivals = schedule.arrivals(worker, workers);
        arrivals.take_while(|&at_ns| at_ns < length_ns).count() as u64
    };
    Some((0..workers).map(of_worker).sum())
}
