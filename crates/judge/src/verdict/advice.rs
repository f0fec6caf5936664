//! What to change or to try next, as options to type where there are such.

use std::ops::RangeInclusive;

use brunt_load::{LoadModel, Plan, Work};
use brunt_record::{FailureKind, GeneratorUse, Objective, Protocol, Run, ServerScope, cpu_list};

use super::Grade;
use super::SignalId as Id;
use super::facts::{RunFacts, ratio};
use crate::verdict::facts::{length, truncated};
use crate::verdict::signals::GradedSignals;
use crate::{Quantile, ResponseQuantiles};

/// Requests that a server that replaces connections did not process, per request sent, from which
/// on what to do about them comes before all other advice.
const NOT_PROCESSED_NOTICEABLE: f64 = 0.01;
/// Share of its workers' time from which on the script is named where brunt is slow [tuned].
const SCRIPT_SHOWN: f64 = 0.2;

const QUOTA: &str = "raise the CPU quota of brunt's cgroup (cpu.max)";
const LET_RUN: &str =
    "let brunt run: something stopped it (SIGSTOP, a frozen cgroup, a paused machine)";
const MORE_ROOM: &str = "keep connections alive, add --source-address, or raise \
                         net.ipv4.ip_local_port_range and ulimit -n";
const CHEAPER_SCRIPT: &str = "a cheaper script: texts made beforehand, response() without the \
                              parameters that it does not use";
/// Where others keep brunt from its CPUs, or wake it up late.
const CPUS_OF_ITS_OWN: &str = "give brunt CPUs that nothing else uses: taskset -c LIST brunt";
/// The length that advice gives at least to a run that is to be longer, nanoseconds.
const LONGER_LEAST_NS: u64 = 10_000_000_000;
/// The length that advice gives at least to a run that is to settle, nanoseconds.
const LONG_NS: u64 = 60_000_000_000;
/// A length that is calculated is told in whole seconds.
const SECOND_NS: u64 = 1_000_000_000;
/// Advice raises connections and rates by this factor.
const MORE: u64 = 2;
/// Processes of a server that a line of advice has room for.
const PIDS_SHOWN_MAX: usize = 16;
/// How to see what the server uses.
const WATCH: &str = "watch the server's process: --watch PID";
/// The client's advice names causes, not each of their signs.
const ADVICE_MAX: usize = 3;

pub(super) fn of_doubts(doubts: &[Id], plan: &Plan) -> Vec<String> {
    let advice = doubts.iter().map(|doubt| match *doubt {
        Id::Steal => {
            let longer = longer(plan, longer_ns(plan), "");
            format!("use a machine with CPUs of its own, or measure for longer: {longer}")
        }
        Id::Throttling => QUOTA.to_owned(),
        Id::Drift => {
            let longer = longer(plan, LONG_NS.max(longer_ns(plan)), " --warmup 10s");
            format!("let it settle first: {longer}")
        }
        _ => format!("a longer run: {}", longer(plan, longer_ns(plan), "")),
    });
    advice.collect()
}

/// How to have a run of this length, with a further option. Counts and stages end by themselves.
fn longer(plan: &Plan, ns: u64, option: &str) -> String {
    if has_stages(plan) {
        "longer --stages".to_owned()
    } else if plan.load.stop.requests.is_some() {
        format!("more {} (-n)", plan.unit().many)
    } else {
        format!("-d {}{option}", length(ns))
    }
}

/// Adds how to have replies enough for the quantiles that are asked for: first, since whatever
/// limited the run, they are not known.
pub(super) fn add_of_objectives(run: &Run, advice: &mut Vec<String>) {
    let asked = run.objectives.iter().filter_map(|objective| {
        let &Objective::ResponseQuantile { q, .. } = objective else {
            return None;
        };
        match run.response_quantile(q) {
            Quantile::TooFew { samples, needed } => ratio(needed as f64, samples as f64),
            _ => None,
        }
    });
    let Some(times) = asked.max_by(f64::total_cmp) else {
        return;
    };
    let ns = (run.window_ns as f64 * times) as u64;
    let seconds_ns = ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS);
    let longer = longer(&run.plan, seconds_ns, "");
    advice.insert(0, format!("for enough replies: {longer}"));
}

/// The sweep that shows what other numbers of connections do; absent where the load is none that a
/// sweep takes, or does not follow them.
fn of_other_connections(run: &Run) -> Option<String> {
    let plan = &run.plan;
    let is_of_requests =
        run.work() != Work::Streams && !run.is_generated() && !plan.traffic.has_equal_parts;
    let is_closed = matches!(plan.load.model, LoadModel::Closed { .. }) && !run.own_server();
    (run.is_plain() && is_of_requests && is_closed).then(|| {
        let now = u64::from(plan.load.connections.get());
        let more = now.saturating_mul(MORE);
        match now / MORE {
            0 => format!("brunt sweep -c {now},{more}"),
            half => format!("brunt sweep -c {half},{now},{more}"),
        }
    })
}

/// Whether the rate is planned to change.
fn has_stages(plan: &Plan) -> bool {
    let schedule = plan.load.model.schedule();
    schedule.is_some_and(|schedule| !schedule.stages().is_empty())
}

/// Twice the length of the run, 10 s at least.
fn longer_ns(plan: &Plan) -> u64 {
    let now_ns = plan.load.stop.duration_ns.unwrap_or(0);
    now_ns.saturating_mul(2).max(LONGER_LEAST_NS)
}

/// Advice to bind the server's processes, as a line to type, where they are known. Brunt then takes
/// CPUs that the server leaves.
pub(super) fn of_shared_host(facts: &RunFacts<'_>) -> Vec<String> {
    let elsewhere = "run brunt on another machine".to_owned();
    let Some(line) = server_bound(facts) else {
        let each = "or give each CPUs of its own: taskset -c 0 SERVER, taskset -c 1 brunt";
        return vec![elsewhere, each.to_owned()];
    };
    let placed = match facts.agent.bound_cpus() {
        Some(_) => "",
        None => ", and let brunt place its workers",
    };
    let own = format!("give the server CPUs of its own: {line}{placed}");
    vec![own, elsewhere]
}

/// `taskset` for the server's processes, with the CPUs that workers leave it, or all but one.
fn server_bound(facts: &RunFacts<'_>) -> Option<String> {
    let ServerScope::Processes { pids, .. } = &facts.server()?.scope else {
        return None;
    };
    let mut cpus = facts.server_cpus.clone();
    match facts.agent.bound_cpus() {
        Some(bound) => cpus.retain(|cpu| !bound.contains(cpu)),
        None => drop(cpus.pop_last()),
    }
    let list = Some(cpu_list(&cpus)).filter(|list| !list.is_empty())?;
    match pids.as_slice() {
        [] => None,
        [pid] => Some(format!("taskset -acp {list} {pid}")),
        pids if pids.len() <= PIDS_SHOWN_MAX => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            let pids = pids.join(" ");
            Some(format!("for p in {pids}; do taskset -acp {list} $p; done"))
        }
        _ => None,
    }
}

pub(super) fn of_client(graded: &GradedSignals<'_>) -> Vec<String> {
    let facts = graded.facts;
    let run = facts.run;
    let usable = facts.agent.host.usable_cpus;
    let (workers, connections) = (facts.agent.share.workers, facts.agent.share.connections);
    let mut advice = Vec::new();
    for grade in [Grade::Fail, Grade::Warn] {
        let shows = |ids: &[Id]| ids.iter().any(|&id| graded.grade(id) == grade);
        let is_late = shows(&[Id::OwnShare, Id::ScheduleLag]);
        let is_slow = is_late || shows(&[Id::WorkerIdle, Id::UnreadData]);
        let more = workers
            .saturating_mul(MORE as u32)
            .min(usable)
            .min(connections);
        let workers = if more > workers {
            format!("more workers: -t {more}")
        } else if run.depth() > 1 && connections < usable {
            let option = run.protocol().depth.option;
            format!("more workers, which need connections: -c {usable}, lower {option}")
        } else {
            "load from more CPUs or more machines".to_owned()
        };
        for (applies, words) in [
            (shows(&[Id::Throttling]), QUOTA),
            (shows(&[Id::Pauses]), LET_RUN),
            (shows(&[Id::ClientLimits]), MORE_ROOM),
            (shows(&[Id::RunQueueWait]), CPUS_OF_ITS_OWN),
            (is_slow && script_share(facts).is_some(), CHEAPER_SCRIPT),
            (is_slow, workers.as_str()),
            (shows(&[Id::SendBuffer]), "raise net.ipv4.tcp_wmem"),
        ] {
            if applies && advice.iter().all(|line| line != words) {
                advice.push(words.to_owned());
            }
        }
    }
    advice.truncate(ADVICE_MAX);
    advice
}

/// The share of the workers' time in a script, where that is what makes brunt slow.
pub(super) fn script_share(facts: &RunFacts<'_>) -> Option<f64> {
    let workers = facts.agent.workers.iter();
    let (used, workers) =
        GeneratorUse::sum(workers.filter_map(|worker| worker.generator.as_ref()))?;
    let share = used.share(workers, facts.run.window_ns)?;
    (share >= SCRIPT_SHOWN).then_some(share)
}

pub(super) fn of_planned_rate(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let line = of_capacity(run).or_else(|| {
        let more = match plan.load.model {
            _ if plan.work() == Work::Streams => "a higher --bandwidth",
            LoadModel::Sessions { .. } => "a higher --connection-rate",
            _ if has_stages(plan) => "higher rates in --stages",
            _ => "a higher -r",
        };
        Some(format!("for the capacity: {more}"))
    });
    Vec::from_iter(line)
}

/// The search for the capacity, by a bound of p99 that leaves room above what was found.
fn of_capacity(run: &Run) -> Option<String> {
    if !is_searchable(run) {
        return None;
    }
    let p99_ns = run.latencies.response.quantile_ns(0.99)?;
    let length = length(round_ns(p99_ns.saturating_mul(2)));
    Some(format!(
        "for its capacity: brunt find --objective 'p99 < {length}'"
    ))
}

/// Whether the load is one that a search can plan a rate for.
fn is_searchable(run: &Run) -> bool {
    let plan = &run.plan;
    let is_by_rate = match &plan.load.model {
        LoadModel::Closed { connect_per_s } => connect_per_s.is_none(),
        LoadModel::Open { schedule, .. } => schedule.rate_per_s().is_some(),
        LoadModel::Held { .. } | LoadModel::Sessions { .. } => false,
    };
    is_by_rate
        && plan.load.stop.requests.is_none()
        && plan.traffic.think_time_ns == 0
        && plan.work() != Work::Streams
        && !plan.traffic.has_equal_parts
        && !run.is_generated()
        && run.is_plain()
}

/// The next 1, 2 or 5 times a power of ten, 1 ms at least.
fn round_ns(ns: u64) -> u64 {
    let powers = (6..18).map(|exponent| 10_u64.pow(exponent));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|times| times * power));
    steps.find(|&step| step >= ns).unwrap_or(ns)
}

/// Response times that are brunt's, though all was sent and answered: what keeps it from being on
/// time.
pub(super) fn of_late(graded: &GradedSignals<'_>) -> Vec<String> {
    if !graded.all(RunFacts::workers_have_time) {
        return of_client(graded);
    }
    // Its workers wake up late.
    let no_sleep = "or no sleep between requests: --spin on".to_owned();
    vec![CPUS_OF_ITS_OWN.to_owned(), no_sleep]
}

/// `id`: the signal that decided.
pub(super) fn of_server(run: &Run, id: Id) -> Vec<String> {
    let more = match id {
        Id::ServerThrottling => "raise the server's CPU quota",
        Id::AcceptQueue => "a longer accept queue (listen backlog, net.core.somaxconn)",
        _ => return Vec::from_iter(of_capacity(run)),
    };
    vec![format!("for more: {more}")]
}

pub(super) fn of_concurrency(facts: &RunFacts<'_>) -> Vec<String> {
    let (run, plan) = (facts.run, &facts.run.plan);
    let option = match plan.load.model {
        LoadModel::Open { .. } => "--max-connections",
        _ => "-c",
    };
    let more = |now: u32| u64::from(now).saturating_mul(MORE);
    let now = facts.connections_most();
    let connections = format!("more connections: {option} {}", more(now));
    let mut advice = Vec::new();
    let depth = run.protocol().depth;
    match &run.first().negotiated.note {
        // The note says why there can be no more of them.
        Some(note) if depth.is_settled => {
            advice.push(format!("{connections}; {}", truncated(note)));
        }
        // What is beyond the requests that a connection carries would not be used.
        None if depth.is_settled
            && plan.keepalive()
            && plan.requests_per_connection().is_none() =>
        {
            let requests = more(run.depth());
            let deeper = format!("more {}: {} {requests}", depth.many, depth.option);
            advice.extend([deeper, connections]);
        }
        _ => advice.push(connections),
    }
    // A lock in the server, or another service behind it, looks the same from here.
    let sweep = of_other_connections(run).filter(|_| facts.elasticity.is_none() && now > 1);
    advice.extend(sweep.map(|line| format!("make sure that more connections give more: {line}")));
    advice
}

/// Adds what to do about requests that a server that replaces connections did not process,
/// whatever limited the run: first, where they are noticeable.
pub(super) fn add_of_replacements(facts: &RunFacts<'_>, advice: &mut Vec<String>) {
    let lifetime = &facts.summary.lifetime;
    let not_processed = lifetime.failures.get(FailureKind::NotProcessed);
    if not_processed == 0 {
        return;
    }
    let words = "the server replaces connections after some requests (nginx: \
                 keepalive_requests): raise that, or stay below it: --requests-per-connection";
    let share = ratio(not_processed as f64, lifetime.requests_sent as f64);
    let is_noticeable = share.is_some_and(|share| share >= NOT_PROCESSED_NOTICEABLE);
    let place = if is_noticeable { 0 } else { advice.len() };
    advice.insert(place, words.to_owned());
}

/// Replies per connection opened, from which and up to which a server closes after each.
const REPLIES_OF_ONE: RangeInclusive<f64> = 0.9..=1.1;
/// Share of the connections whose end took a request with it, from which on the server says
/// nothing: others may end just before the next request.
const CLOSED_SILENTLY: f64 = 0.5;
/// Fewer replies do not tell.
const REPLIES_LEAST: u64 = 20;

/// What to do about a server that closes each connection of HTTP/1.1 after one reply without saying
/// so: what was sent meanwhile is lost. Absent where it does not.
pub(super) fn of_silent_closes(facts: &RunFacts<'_>) -> Option<String> {
    let (run, window) = (facts.run, &facts.summary.window);
    let (plan, replies) = (&run.plan, window.replies.total());
    let is_kept = plan.keepalive() && plan.requests_per_connection().is_none();
    if run.protocol() != Protocol::HTTP1 || !is_kept || replies < REPLIES_LEAST {
        return None;
    }
    let failures = window.failures.iter();
    let cut = failures.filter_map(|(kind, count)| kind.is_cut().then_some(count));
    let unsaid = cut.fold(window.sent_again, u64::saturating_add);
    let opened = window.connections_opened as f64;
    let is_silent = ratio(unsaid as f64, opened).is_some_and(|share| share >= CLOSED_SILENTLY);
    let of_one = ratio(replies as f64, opened).is_some_and(|each| REPLIES_OF_ONE.contains(&each));
    (is_silent && of_one).then(|| {
        "the server closes each connection after one reply without saying so: have it say \
         Connection: close, or keep it alive, or load it with --no-keepalive"
            .to_owned()
    })
}

/// The experiments that would decide, as command lines, the most telling first.
pub(super) fn to_decide(graded: &GradedSignals<'_>) -> Vec<String> {
    let facts = graded.facts;
    let plan = &facts.run.plan;
    let more = plan.load.connections.get().saturating_mul(MORE as u32);
    let mut advice = Vec::new();
    let sweep = of_other_connections(facts.run);
    advice.extend(sweep.map(|line| format!("other numbers of connections: {line}")));
    if graded.grade(Id::ServerCpu) == Grade::Unknown && facts.is_local() {
        advice.push(WATCH.to_owned());
    }
    if graded.any(|facts| !facts.is_local() && !facts.network_has_room()) {
        let slowest = "say the speed of the slowest link on the way: --link-speed 10gbit";
        advice.push(slowest.to_owned());
    }
    if plan.work() == Work::Streams {
        advice.push(format!("more streams: -c {more}"));
    } else if facts.is_closed() {
        advice.push(format!("more connections: -c {more}"));
    } else if graded.fails(Id::Backlog) || graded.warns(Id::Backlog) {
        let most = facts.connections_most().saturating_mul(MORE as u32);
        advice.push(format!("more connections: --max-connections {most}"));
    }
    if advice.is_empty() {
        let longer = longer(plan, LONG_NS.max(longer_ns(plan)), "");
        advice.push(format!("a longer run: {longer}"));
    }
    advice
}
