//! What to change or to try next, as options to type where there are such.

use brunt_load::{LoadModel, Plan, Work};
use brunt_record::{FailureKind, GeneratorUse, Protocol, Run, cpu_list};

use crate::NoSuccessCause;
use crate::units::counted;
use crate::units::short::percent;
use crate::verdict::facts::{RunFacts, length, ratio, shell_word};
use crate::verdict::signals::GradedSignals;
use crate::verdict::{AccusedSide, Grade, SignalId as Id};

/// Share of its workers' time from which on the script is named where brunt is slow [tuned].
const SCRIPT_SHOWN: f64 = 0.2;

const QUOTA: &str = "raise the CPU quota of brunt's cgroup (cpu.max)";
const LET_RUN: &str =
    "let brunt run: something stopped it (SIGSTOP, a frozen cgroup, a paused machine)";
const MORE_ROOM: &str = "more ports: --source-address, net.ipv4.ip_local_port_range, or keep \
                         connections alive; more descriptors: ulimit -n, or --backend uring";
const CHEAPER_SCRIPT: &str = "a cheaper script: texts made beforehand, response() without the \
                              parameters that it does not use";
/// Where others keep brunt from its CPUs, or wake it up late.
const CPUS_OF_ITS_OWN: &str = "give brunt CPUs that nothing else uses: taskset -c LIST brunt";
/// How a reader sees what becomes of one request by itself.
const ONE_ALONE: &str = "the same command with -n 1 -c 1";
/// The length that advice gives at least to a run that is to be longer, nanoseconds.
const LONGER_LEAST_NS: u64 = 10_000_000_000;
/// The length that advice gives at least to a run that is to settle, nanoseconds.
const LONG_NS: u64 = 60_000_000_000;
/// Advice raises connections and rates by this factor.
const MORE: u64 = 2;
/// The client's advice names causes, not each of their signs.
const ADVICE_MAX: usize = 3;

pub(super) fn of_doubt(doubt: Id, plan: &Plan) -> String {
    match doubt {
        Id::Steal => {
            let longer = longer(plan, LONGER_LEAST_NS, "");
            format!("use a machine with CPUs of its own, or measure for longer: {longer}")
        }
        Id::Throttling => QUOTA.to_owned(),
        Id::Drift => {
            let longer = longer(plan, LONG_NS, " --warmup 10s");
            format!("let it settle first: {longer}")
        }
        _ => format!("a longer run: {}", longer(plan, LONGER_LEAST_NS, "")),
    }
}

/// How to have a run of twice the length, or of `least_ns`, with a further option. Counts and
/// stages end by themselves.
fn longer(plan: &Plan, least_ns: u64, option: &str) -> String {
    // A rate that is planned to change.
    let schedule = plan.load.model.schedule();
    if schedule.is_some_and(|schedule| !schedule.stages().is_empty()) {
        "longer --stages".to_owned()
    } else if plan.load.stop.requests.is_some() {
        format!("-d {} in place of -n", length(least_ns))
    } else {
        let now_ns = plan.load.stop.duration_ns.unwrap_or(0);
        let longer_ns = now_ns.saturating_mul(2).max(least_ns);
        format!("-d {}{option}", length(longer_ns))
    }
}

/// Whether rounds of an experiment can have this load.
fn takes_experiments(run: &Run) -> bool {
    let is_of_requests = run.work() != Work::Streams && !run.is_generated();
    run.is_plain() && is_of_requests && !run.plan.traffic.has_equal_parts
}

/// The sweep that shows what other numbers of connections do; absent where the load is none that a
/// sweep takes, or does not follow them.
fn of_other_connections(run: &Run) -> Option<String> {
    let is_closed = matches!(run.plan.load.model, LoadModel::Closed { .. }) && !run.own_server();
    (takes_experiments(run) && is_closed).then(|| {
        let now = u64::from(run.plan.load.connections.get());
        let more = now.saturating_mul(MORE);
        match now / MORE {
            0 => format!("brunt sweep -c {now},{more} URL"),
            half => format!("brunt sweep -c {half},{now},{more} URL"),
        }
    })
}

/// The search for the capacity, by a bound of p99 that leaves room above what was found; absent
/// where the load is none that a search can plan a rate for.
pub(super) fn of_capacity(run: &Run) -> Option<String> {
    let plan = &run.plan;
    let is_by_rate = match &plan.load.model {
        LoadModel::Closed { connect_per_s } => connect_per_s.is_none(),
        LoadModel::Open { schedule, .. } => schedule.rate_per_s().is_some(),
        LoadModel::Held { .. } | LoadModel::Sessions { .. } => false,
    };
    let is_endless = plan.load.stop.requests.is_none() && plan.traffic.think_time_ns == 0;
    if !is_by_rate || !is_endless || !takes_experiments(run) {
        return None;
    }
    let p99_ns = run.latencies.response.quantile_ns(0.99)?;
    let length = length(round_ns(p99_ns.saturating_mul(2)));
    Some(format!(
        "for its capacity: brunt find --objective 'p99 < {length}' URL"
    ))
}

/// The next 1, 2 or 5 times a power of ten, 1 ms at least.
fn round_ns(ns: u64) -> u64 {
    let powers = (6..18).map(|exponent| 10_u64.pow(exponent));
    let mut steps = powers.flat_map(|power| [1, 2, 5].map(|times| times * power));
    steps.find(|&step| step >= ns).unwrap_or(ns)
}

/// Advice to bind the server's processes to the CPUs that workers leave it, or to all but one.
/// Brunt then takes CPUs that the server leaves.
pub(super) fn of_shared_host(facts: &RunFacts<'_>) -> Vec<String> {
    let mut cpus = facts.server_cpus.clone();
    match facts.agent.bound_cpus() {
        Some(bound) => cpus.retain(|cpu| !bound.contains(cpu)),
        None => drop(cpus.pop_last()),
    }
    let own = match cpu_list(&cpus).as_str() {
        "" => "taskset -c 0 SERVER, taskset -c 1 brunt".to_owned(),
        list => format!("taskset -acp {list} PID, for each of its processes"),
    };
    vec![
        format!("give the server CPUs of its own: {own}"),
        "or run brunt on another machine".to_owned(),
    ]
}

/// By the signals of the client that fail or, where none does, by those that warn.
pub(super) fn of_client(graded: &GradedSignals<'_>) -> Vec<String> {
    let facts = graded.facts;
    let fails = graded.of(AccusedSide::Client, Grade::Fail);
    let grade = fails.first().map_or(Grade::Warn, |_| Grade::Fail);
    let shows = |ids: &[Id]| ids.iter().any(|&id| graded.grade(id) == grade);
    let is_late = shows(&[Id::OwnShare, Id::ScheduleLag]);
    let is_slow = is_late || shows(&[Id::WorkerIdle, Id::UnreadData]);
    let more_workers = more_workers(facts);
    let advice = [
        (shows(&[Id::Throttling]), QUOTA),
        (shows(&[Id::Pauses]), LET_RUN),
        (shows(&[Id::ClientLimits]), MORE_ROOM),
        (shows(&[Id::RunQueueWait]), CPUS_OF_ITS_OWN),
        (is_slow && script_share(facts).is_some(), CHEAPER_SCRIPT),
        (is_slow, more_workers.as_str()),
        (shows(&[Id::SendBuffer]), "raise net.ipv4.tcp_wmem"),
    ];
    let advice = advice.into_iter().filter(|(applies, _)| *applies);
    let advice = advice.take(ADVICE_MAX);
    advice.map(|(_, words)| words.to_owned()).collect()
}

fn more_workers(facts: &RunFacts<'_>) -> String {
    let (run, share) = (facts.run, &facts.agent.share);
    let usable = facts.agent.host.usable_cpus;
    let more = share.workers.saturating_mul(MORE as u32);
    let more = more.min(usable).min(share.connections);
    if more > share.workers {
        format!("more workers: -t {more}")
    } else if run.depth() > 1 && share.connections < usable {
        let option = run.protocol().depth.option;
        format!("more workers, which need connections: -c {usable}, lower {option}")
    } else {
        "load from a machine with more CPUs, or several: brunt fleet --ssh HOSTS".to_owned()
    }
}

/// The share of the workers' time in a script, where that is what makes brunt slow.
pub(super) fn script_share(facts: &RunFacts<'_>) -> Option<f64> {
    let workers = facts.agent.workers.iter();
    let (used, workers) =
        GeneratorUse::sum(workers.filter_map(|worker| worker.generator.as_ref()))?;
    let share = used.share(workers, facts.run.window_ns)?;
    (share >= SCRIPT_SHOWN).then_some(share)
}

/// What to do about a script whose error ended the run.
pub(super) fn of_script(facts: &RunFacts<'_>) -> Option<String> {
    let mut workers = facts.run.workers();
    let has_ended = |used: &GeneratorUse| used.error.is_some();
    let has_failed = workers.any(|worker| worker.generator.as_ref().is_some_and(has_ended));
    has_failed.then(|| "mend the script, whose error ended the run, and repeat".to_owned())
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

/// More connections than there may be now.
fn more_connections(facts: &RunFacts<'_>) -> String {
    let option = match facts.run.plan.load.model {
        LoadModel::Open { .. } => "--max-connections",
        _ => "-c",
    };
    let more = u64::from(facts.connections_most()).saturating_mul(MORE);
    format!("more connections: {option} {more}")
}

pub(super) fn of_concurrency(facts: &RunFacts<'_>) -> Vec<String> {
    let (run, plan) = (facts.run, &facts.run.plan);
    let mut advice = vec![more_connections(facts)];
    let depth = run.protocol().depth;
    // There are no more where the server said so, and those beyond the requests that a connection
    // carries would not be used.
    let is_bounded = run.first().negotiated.note.is_some()
        || !plan.keepalive()
        || plan.requests_per_connection().is_some();
    if depth.is_settled && !is_bounded {
        let requests = u64::from(run.depth()).saturating_mul(MORE);
        let deeper = format!("more {}: {} {requests}", depth.many, depth.option);
        advice.insert(0, deeper);
    }
    // A lock in the server, or another service behind it, looks the same from here.
    let is_open = facts.elasticity.is_none() && facts.connections_most() > 1;
    let sweep = of_other_connections(run).filter(|_| is_open);
    advice.extend(sweep.map(|line| format!("make sure that more connections give more: {line}")));
    advice
}

/// The experiments that would decide, as command lines, the most telling first.
pub(super) fn to_decide(graded: &GradedSignals<'_>) -> Vec<String> {
    let facts = graded.facts;
    let plan = &facts.run.plan;
    let mut advice = Vec::new();
    if graded.grade(Id::ServerCpu) == Grade::Unknown && facts.is_local() {
        advice.push("watch the server's process: --watch PID".to_owned());
    }
    let sweep = of_other_connections(facts.run);
    advice.extend(sweep.map(|line| format!("other numbers of connections: {line}")));
    if !graded.all(RunFacts::network_has_room) {
        let slowest = "say the speed of the slowest link on the way: --link-speed 10gbit";
        advice.push(slowest.to_owned());
    }
    let has_backlog = graded.fails(Id::Backlog) || graded.warns(Id::Backlog);
    if facts.is_closed() || has_backlog {
        advice.push(more_connections(facts));
    }
    if advice.is_empty() {
        advice.push(format!("a longer run: {}", longer(plan, LONG_NS, "")));
    }
    advice
}

/// Share of the replies with one status of 400 to 499 from which on they are most of them.
const CLIENT_ERRORS_MOST: f64 = 0.5;

/// What to do where most replies say that the request is at fault, that comes before any advice on
/// the load. A server that turns requests away for their rate (429) has a signal of its own.
pub(super) fn of_client_errors(facts: &RunFacts<'_>) -> Option<String> {
    let replies = &facts.summary.window.replies;
    let statuses = replies.iter();
    let at_fault = statuses.filter(|&(status, _)| status / 100 == 4 && status != 429);
    let (status, count) = at_fault.max_by_key(|&(_, count)| count)?;
    let share = ratio(count as f64, replies.total() as f64)?;
    (share > CLIENT_ERRORS_MOST).then(|| {
        let remedy = on(facts, NoSuccessCause::Status(status)).join("; ");
        let share = percent(share);
        format!("{share} of the replies had status {status}: {remedy}")
    })
}

/// What to do about requests that all end in `cause`.
pub(super) fn on(facts: &RunFacts<'_>, cause: NoSuccessCause) -> Vec<String> {
    use NoSuccessCause::{Failure, Status, Unanswered};
    let run = facts.run;
    let speaks_tls = run.agents.iter().any(|agent| agent.speaks_tls);
    if speaks_tls || cause == Failure(FailureKind::TlsExpected) {
        return vec![of_tls(&run.plan.target.url)];
    }
    if let Some(words) = unmatched(facts) {
        return vec![words];
    }
    let one = format!("one {} alone is answered: {ONE_ALONE}", run.unit().one);
    let mut advice = vec![match cause {
        Failure(FailureKind::TimedOut) => format!("see whether {one}; a longer limit: -T TIME"),
        Unanswered => format!("see whether {one}; {}", of_doubt(Id::Samples, &run.plan)),
        _ => of_cause(run, cause).map_or_else(
            || format!("look into the server's log, and see whether {one}"),
            str::to_owned,
        ),
    }];
    let asks_for_certificate = match cause {
        Status(status) => status == 400,
        Failure(kind) => is_of_handshake(kind),
        _ => false,
    };
    // Over TLS a server may ask for a certificate that brunt was not given.
    if asks_for_certificate && run.plan.tls().is_some_and(|tls| tls.identity.is_none()) {
        let words = "or, if the server asks for a certificate of the client: --cert and --key";
        advice.push(words.to_owned());
    }
    advice
}

/// What to do about requests that all end in `cause`; absent where only the server's log tells.
fn of_cause(run: &Run, cause: NoSuccessCause) -> Option<&'static str> {
    use FailureKind as Kind;
    use NoSuccessCause as Cause;
    Some(match cause {
        Cause::Status(401 | 403 | 407) if has_authorization(run) => {
            "the server refuses the Authorization that is sent: check -u, or that of -H"
        }
        Cause::Status(401 | 403 | 407) => {
            "send what the server asks for, such as -H 'Authorization: ...'"
        }
        Cause::Status(404 | 410) => {
            "check the path of the URL, the method (-m) and the Host header"
        }
        Cause::Status(405 | 501) => "another method: -m",
        Cause::Status(429 | 503) => {
            "the server turns requests away: raise its limit, or stay below it: -r RATE"
        }
        Cause::Status(409) if run.plan.traffic.requests.counts_numbers() => {
            "where the server had the numbers of {{seq}} before: --seq-from N, or {{uuid}}"
        }
        Cause::Status(400..=499) => {
            "the server finds fault with the request: --show-errors prints one reply"
        }
        Cause::Status(_) => "look into the server's log; --show-errors prints one reply",
        Cause::NothingSent => "a longer run: -d 10s; or a higher rate: -r",
        Cause::NothingMoved => {
            "see whether the server reads (--send) or sends without being asked (--receive)"
        }
        Cause::Failure(Kind::ConnectRefused) => {
            "start the server, or check host and port: nothing listens there"
        }
        Cause::Failure(Kind::ConnectTimedOut | Kind::ConnectUnreachable) => {
            "check host, port and firewall: nothing answers there"
        }
        Cause::Failure(Kind::ConnectNoPort | Kind::ConnectNoDescriptor) => MORE_ROOM,
        Cause::Failure(Kind::OpeningRefused) => {
            "the server refuses what --first sends: try it by hand, as with redis-cli or websocat"
        }
        Cause::Failure(Kind::OtherProtocol) => "name the protocol: --http1 or --http2",
        Cause::Failure(kind) if is_of_handshake(kind) => {
            "look into the server's log; what brunt accepts: --cacert, --tls-min and --tls-max"
        }
        Cause::Failure(kind) if kind.is_malformed() => run.protocol().malformed_advice,
        Cause::Error => "look into the server's log: its answers are errors",
        Cause::Failure(_) | Cause::Unanswered => return None,
    })
}

fn is_of_handshake(kind: FailureKind) -> bool {
    use FailureKind::{HandshakeCut, HandshakeTimedOut};
    kind.is_of_tls() || matches!(kind, HandshakeTimedOut | HandshakeCut)
}

fn has_authorization(run: &Run) -> bool {
    let first = run.plan.traffic.requests.outline().first;
    let mut names = first.iter().flat_map(|first| &first.header_names);
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// What came in place of replies, where messages have to match.
fn unmatched(facts: &RunFacts<'_>) -> Option<String> {
    let window = &facts.summary.window;
    let workers = facts.run.workers();
    let mut messages = workers.filter_map(|worker| worker.unexpected.as_ref());
    let message = messages.next().filter(|_| window.pushes > 0)?;
    Some(format!(
        "look at what came: --reply-match matched none of {}, such as {message}",
        counted(window.pushes, "message", "messages")
    ))
}

/// The advice where the server speaks TLS and brunt spoke clear text, with the URL to give.
fn of_tls(url: &str) -> String {
    let secure = Protocol::ALL.iter().find_map(|protocol| {
        let [clear, secure] = protocol.schemes;
        let rest = url.strip_prefix(clear)?.strip_prefix(':')?;
        Some(format!("{secure}:{rest}"))
    });
    let secure = secure.unwrap_or_else(|| "https://...".to_owned());
    let secure = shell_word(&secure);
    format!("the server speaks TLS at that port: {secure}")
}
