//! The rules of the verdict: an ordered table, of which the first match wins.
//!
//! The order is what keeps the one error out that must not happen: no rule that speaks of the
//! server, of the rate or of the connections is reached while a signal of the client fails.

use std::path::Path;

use brunt_load::protocol::{ByHand, Protocol};
use brunt_load::{RequestOutline, TlsSpec, Work};
use brunt_record::{FailureKind, FailureScope, Run};

use crate::behaviour::failures::{no_success_of, server_failure_of};
use crate::elasticity::Elasticity;
use crate::units::short::{bytes, duration, number, percent};
use crate::units::{count, counted, plural};
use crate::verdict::facts::{
    HEADROOM_LEAST, LAG_FAIL_NS, OWN_SHARE_FAIL, RunFacts, WINDOW_LEAST_NS, ratio, shell_word,
};
use crate::verdict::signals::{DECISIVE_MAX, Decision, GradedSignals};
use crate::verdict::{AccusedSide, Grade, SignalId as Id, Verdict, advice};
use crate::{
    EndedStreams, Held, NoSuccess, NoSuccessCause, NoSuccessPopulation, Outage, ServerFailure,
};

/// Replies that turned the request away, from which on nothing else is looked at. A server at its
/// end that sheds load turns away a few [tuned].
const REFUSED_MOST: f64 = 0.1;
/// Second half of the window against the first, as a ratio less 1. Up to this, the drift does not
/// shake what more connections would give: twice as many that are free give twice as much [tuned].
const DRIFT_BESIDE_CONNECTIONS: f64 = 0.30;

/// What follows from a rule, and the rule.
type VerdictRule = (Verdict, fn(&GradedSignals<'_>) -> Option<Decision>);

/// All rules, each with when it matches; the last one always does.
const VERDICT_RULES: &[VerdictRule] = &[
    // An invariant is broken.
    (Verdict::Invalid, invalid),
    // No request succeeded.
    (Verdict::NoSuccess, no_success),
    // The agents did not measure at the same time.
    (Verdict::Inconclusive, not_one_load),
    // Connections were only held, some are missing at the end, and brunt's machine had no ports or
    // descriptors for more.
    (Verdict::ClientLimited, no_room_to_hold),
    // Connections were only held, and some are missing at the end.
    (Verdict::ServerLimited, not_kept),
    // Connections were only held, all of them to the end.
    (Verdict::ConcurrencyLimited, all_held),
    // The server ended or reset as many streams as half of those asked for, or more.
    (Verdict::ServerFailed, streams_ended),
    // The server was gone for a time, answered nothing for over a tenth of the window or at its
    // end, or did not take all connections and its rate broke down.
    (Verdict::ServerFailed, server_failed),
    // The server closed or reset the connections of over a tenth of the requests before they were
    // answered.
    (Verdict::ServerFailed, requests_cut),
    // The rate of an open loop was met, but over 20 % and 100 µs of its response times at p50 or
    // p99 is brunt's own.
    (Verdict::ClientLimited, rate_met_late),
    // The rate of a schedule was met without a backlog, whatever else is at its end, stolen or
    // short; on CPUs that brunt and the server share, `shared_host` decides.
    (Verdict::RateLimited, rate_met),
    // The server turned away a tenth of the requests or more, and said so, whoever else is at its
    // end or disturbed.
    (Verdict::RateLimited, most_refused),
    // Steal that leaves too little, or a throttled client that has time.
    (Verdict::Disturbed, disturbed_by_machine),
    // Too few samples, or drift that nothing explains and that the verdict depends on.
    (Verdict::Inconclusive, doubtful),
    // Client and server compete for the same CPUs.
    (Verdict::SharedHost, shared_host),
    // Other programs use the CPUs of client and server, and one of these waits for a CPU.
    (Verdict::Disturbed, disturbed_by_programs),
    // Signals of two sides fail.
    (Verdict::Inconclusive, contradictory),
    // A signal of the client fails, or two of different kinds warn while it is short of time and
    // the server's CPU is not used up.
    (Verdict::ClientLimited, client_limited),
    // A signal of the network fails.
    (Verdict::NetworkLimited, network_limited),
    // The server turns requests away.
    (Verdict::RateLimited, refused),
    // `server_limited` holds, and others send a part of what the server receives.
    (Verdict::SharedServer, shared_server),
    // The client is known to have time, and the server is at its end: by its CPU, quota or accept
    // queue; or, where the network has room, by a backlog or an experiment.
    (Verdict::ServerLimited, server_limited),
    // The server did not take all connections, and answered on the others throughout.
    (Verdict::ConcurrencyLimited, connections_refused),
    // The connections of a closed loop paused by plan for 10 % of the time and more.
    (Verdict::ThinkTime, think_time),
    // More connections gave more; or all are busy, none waits for another, and both sides have
    // room.
    (Verdict::ConcurrencyLimited, concurrency_limited),
    // Nothing of this: the experiment that would decide is named.
    (Verdict::Inconclusive, undecided),
];

/// What a server at its end shows by itself, the strongest first.
const SERVER_SIGNALS: [Id; 3] = [Id::ServerThrottling, Id::AcceptQueue, Id::ServerCpu];
/// Hard facts that explain a lack of replies, and a rate that drifts.
const HARD_FACTS: [Id; 2] = [Id::ClientLimits, Id::AcceptQueue];

/// The first match.
pub(super) fn decide(graded: &GradedSignals<'_>) -> (Verdict, Decision) {
    VERDICT_RULES
        .iter()
        .find_map(|&(verdict, decide)| Some((verdict, decide(graded)?)))
        .unwrap_or((Verdict::Inconclusive, Decision::default()))
}

fn invalid(graded: &GradedSignals<'_>) -> Option<Decision> {
    let broken = &graded.facts.broken;
    let detail = &broken.first()?.detail;
    let names: Vec<&str> = broken.iter().map(|finding| finding.id).collect();
    let shown = names[..names.len().min(DECISIVE_MAX)].join(", ");
    let because = match names.len() {
        1 => format!("{shown} is broken: {detail}"),
        2..=DECISIVE_MAX => format!("{shown} are broken: {detail}"),
        all => {
            let more = all - DECISIVE_MAX;
            format!("{shown} and {more} more are broken: {detail}")
        }
    };
    Some(graded.decision(because, [], [""; 0]))
}

/// Nothing that each of them saw is of the load of all.
fn not_one_load(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = graded.facts.run.not_one_load()?;
    let advice = "start the runs at the same time, and merge those";
    Some(graded.decision(because, [], [advice]))
}

/// The verdict where this machine had no room for all connections that were to be held.
fn no_room_to_hold(graded: &GradedSignals<'_>) -> Option<Decision> {
    let (_, missing) = short_of_held(graded).filter(|_| graded.fails(Id::ClientLimits))?;
    let because = format!("{missing}: {}", graded.detail(Id::ClientLimits));
    let advice = "more ports: --source-address, net.ipv4.ip_local_port_range; more descriptors: \
                  ulimit -n, or --backend uring";
    Some(graded.decision(because, [Id::ClientLimits], [advice]))
}

/// The server, or the way to it, did not take all of them, or did not keep them.
fn not_kept(graded: &GradedSignals<'_>) -> Option<Decision> {
    let (held, mut because) = short_of_held(graded)?;
    let kinds = graded.facts.summary.lifetime.failures.iter();
    let attempts = kinds.filter(|(kind, _)| kind.scope() == FailureScope::Connect);
    let most = attempts.max_by_key(|&(_, count)| count);
    if let Some((kind, times)) = most {
        let attempts = counted(times, "attempt to connect", "attempts to connect");
        because.push_str(&format!("; {attempts} failed ({})", kind.label()));
    }
    because.push_str(&closed_of_held(&held));
    let advice = match most.map(|(kind, _)| kind) {
        Some(FailureKind::ConnectTimedOut) => {
            "a longer accept queue (listen backlog, net.core.somaxconn), or slower: \
             --connection-rate"
        }
        _ => "raise the server's limits of connections, descriptors and idle time",
    };
    let decisive = [Id::AcceptQueue, Id::ServerCpu];
    Some(graded.decision(because, decisive, [advice]))
}

/// All were there at the end: their number is what was asked for.
fn all_held(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let held = Held::of(facts.run, &facts.summary)?;
    let all = match held.asked {
        1 => "the connection was".to_owned(),
        asked => format!("all {} connections were", count(asked)),
    };
    let closed = closed_of_held(&held);
    let because =
        format!("{all} held to the end; how many more the server takes was not measured{closed}");
    let advice = format!("for the limit: -c {}", held.asked.saturating_mul(2));
    let decisive = [Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, [advice]))
}

/// What was held, where that was not all, and how much was missing in words.
fn short_of_held(graded: &GradedSignals<'_>) -> Option<(Held, String)> {
    let facts = graded.facts;
    let held = Held::of(facts.run, &facts.summary).filter(|held| held.missing() > 0)?;
    let asked = counted(held.asked, "connection was", "connections were");
    let words = format!("{} of {asked} missing at the end", count(held.missing()));
    Some((held, words))
}

fn closed_of_held(held: &Held) -> String {
    match held.closed_by_server {
        0 => String::new(),
        closed => format!("; the server closed {}", count(closed)),
    }
}

/// The hypervisor took too much of the window to judge by, or a quota stopped brunt.
fn disturbed_by_machine(graded: &GradedSignals<'_>) -> Option<Decision> {
    let doubts = graded.of(AccusedSide::Doubt, Grade::Fail);
    let stolen = "CPU steal left too little of the window to judge by";
    let throttled = "brunt's CPU quota stopped it now and then: the figures are not steady";
    let found = [(Id::Steal, stolen), (Id::Throttling, throttled)];
    let (id, because) = found.into_iter().find(|(id, _)| doubts.contains(id))?;
    let advice = advice::of_doubts(&[id], &graded.facts.run.plan);
    Some(graded.decision(because, [id], advice))
}

/// The verdict where other programs used the CPUs.
fn disturbed_by_programs(graded: &GradedSignals<'_>) -> Option<Decision> {
    // Connections that pause by plan ask for little, which they got.
    let is_paused =
        graded.facts.paused_by_plan().is_some() && graded.all(RunFacts::workers_have_time);
    // A server that has used up its quota does no more on a quiet machine.
    let is_held_back = graded.fails(Id::ServerThrottling);
    if is_paused || is_held_back || !graded.fails(Id::OtherPrograms) {
        return None;
    }
    let programs = graded.detail(Id::OtherPrograms);
    let because = format!("{programs}; on a quiet machine the server may do more");
    let decisive = [Id::OtherPrograms, Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, ["end the other programs, and repeat"]))
}

/// Drift is no doubt where the cause is known and the verdict does not call the figures those of
/// the server: a client that is held back is so with ups and downs, and lost segments come in
/// bursts. Nor does a small one make doubtful what more connections would give.
fn doubtful(graded: &GradedSignals<'_>) -> Option<Decision> {
    let is_hard = HARD_FACTS.iter().any(|&id| graded.fails(id));
    // A server that is at its end all the time is so at any rate, and with few replies.
    let is_server = server_is_full(graded);
    let is_beside =
        is_small_drift(graded) && (more_gives_nothing(graded) || more_would_give(graded).is_some());
    let is_long = graded.facts.run.window_ns >= WINDOW_LEAST_NS;
    let limits =
        [AccusedSide::Client, AccusedSide::Network].map(|side| graded.of(side, Grade::Fail));
    let is_explained = is_hard
        || is_server
        || is_beside
        || graded.fails(Id::SharedHost)
        || graded.fails(Id::OtherPrograms)
        || !limits.concat().is_empty();
    let mut doubts = graded.of(AccusedSide::Doubt, Grade::Fail);
    doubts.retain(|id| match *id {
        Id::SharedHost | Id::OtherClients | Id::OtherPrograms => false,
        Id::Drift => !is_explained,
        Id::Samples => !(is_hard || is_server && is_long),
        _ => true,
    });
    let because = match *doubts.first()? {
        Id::Drift => "the rate was not steady: no single figure describes it",
        _ => "too little was measured to judge by",
    };
    let advice = advice::of_doubts(&doubts, &graded.facts.run.plan);
    Some(graded.decision(because, doubts, advice))
}

fn shared_host(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = "client and server competed for the same CPUs; the figures describe the pair";
    let decisive = [Id::SharedHost, Id::RunQueueWait, Id::ServerCpu];
    let decisive = decisive.into_iter().chain([Id::WorkerIdle]);
    graded.fails(Id::SharedHost).then(|| {
        let advice = advice::of_shared_host(graded.facts);
        graded.decision(because, decisive, advice)
    })
}

/// Whether what was planned was done: nobody kept brunt from it.
fn is_rate_met(graded: &GradedSignals<'_>) -> bool {
    let is_planned = !graded.facts.is_closed() || graded.facts.paced_share().is_some();
    let spoilt = [Id::Pauses, Id::Refusals, Id::SharedHost];
    is_planned && !spoilt.into_iter().any(|id| graded.fails(id)) && graded.fails(Id::PlannedRate)
}

/// How late brunt was stands beside that.
fn rate_met(graded: &GradedSignals<'_>) -> Option<Decision> {
    if !is_rate_met(graded) {
        return None;
    }
    let words = "the rate asked for was met, the capacity not measured".to_owned();
    let because = with_own_share(graded.facts, words) + &disturbed_latency(graded);
    let decisive = [Id::PlannedRate, Id::WorkerIdle, Id::ServerCpu];
    let decisive = decisive.into_iter().chain([Id::ScheduleLag]);
    let advice = advice::of_planned_rate(graded.facts.run);
    Some(graded.decision(because, decisive, advice))
}

/// All that was planned was sent and answered, but the response times are brunt's own.
fn rate_met_late(graded: &GradedSignals<'_>) -> Option<Decision> {
    // The rule of the rate that was met says what others took.
    let is_disturbed = graded.fails(Id::Steal) || graded.fails(Id::OtherPrograms);
    if !graded.facts.is_open() || is_disturbed || !is_rate_met(graded) {
        return None;
    }
    let late = graded.facts.own_of_quantiles()?;
    // A little steal delays a few requests, not half of them.
    if graded.warns(Id::Steal) && late.is_of_tail() {
        return None;
    }
    let (share, of, length) = (percent(late.share), late.of, duration(late.ns));
    let because = format!(
        "the rate asked for was met, but {share} of {of}, {length}, is brunt's own: the latencies \
         are not the server's"
    );
    let decisive = [Id::ScheduleLag, Id::OwnShare, Id::PlannedRate];
    let decisive = decisive.into_iter().chain([Id::WorkerIdle]);
    Some(graded.decision(because, decisive, advice::of_late(graded)))
}

/// Nobody was at its end: the load was no larger than this.
fn think_time(graded: &GradedSignals<'_>) -> Option<Decision> {
    let paused = percent(1.0 - graded.facts.paused_by_plan()?);
    let because = format!(
        "connections paused by plan for {paused} of the time: the capacity was not measured"
    );
    let decisive = [Id::ConnectionsBusy, Id::WorkerIdle, Id::ServerCpu];
    let words = with_own_share(graded.facts, because) + &disturbed_latency(graded);
    let more = u64::from(graded.facts.connections_most()).saturating_mul(2);
    let pauses = match graded.facts.run.plan.traffic.think_time_ns {
        0 => "or shorter pauses in the script",
        _ => "or a shorter --think-time",
    };
    let advice = [format!("for more load: -c {more}"), pauses.to_owned()];
    Some(graded.decision(words, decisive, advice))
}

fn contradictory(graded: &GradedSignals<'_>) -> Option<Decision> {
    // A brunt that was stopped now and then may have brought a server to its end in between.
    if graded.fails(Id::Pauses) || is_behind_full_server(graded) {
        return None;
    }
    let sides = [
        (AccusedSide::Client, "the client"),
        (AccusedSide::Network, "the network"),
        (AccusedSide::Server, "the server"),
    ];
    let failing = sides.into_iter().filter_map(|(side, words)| {
        let mut fails = graded.of(side, Grade::Fail).into_iter();
        // A backlog is concluded from other signals: it contradicts none.
        Some((words, fails.find(|id| *id != Id::Backlog)?))
    });
    let (sides, firsts): (Vec<&str>, Vec<Id>) = failing.unzip();
    if sides.len() < 2 {
        return None;
    }
    let because = format!("{} are at their limit at once", sides.join(" and "));
    let advice = if sides.contains(&"the client") {
        advice::of_client(graded)
    } else {
        advice::to_decide(graded)
    };
    Some(graded.decision(because, firsts, advice))
}

fn client_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let fails = graded.of(AccusedSide::Client, Grade::Fail);
    let warnings = graded.client_warnings();
    // A server whose CPU is used up limits, however near its end the client is [tuned]: beside
    // nginx with one worker brunt is idle for some 20 % of its time, and warns half of the time.
    let server_is_full = graded.fails(Id::ServerCpu);
    if fails.is_empty() && (warnings.len() < 2 || server_is_full) || is_behind_full_server(graded) {
        return None;
    }
    // Of the agents that see the server.
    let headrooms = graded.cases.iter().filter_map(RunFacts::server_headroom);
    let least = headrooms.min_by(f64::total_cmp);
    let has_room = least.is_some_and(|headroom| headroom >= HEADROOM_LEAST);
    let server = if has_room { "can" } else { "may" };
    let mut because = "brunt was the limit".to_owned();
    if graded.fails(Id::Pauses) {
        because = format!("{}: {because}", graded.detail(Id::Pauses));
    }
    if let Some(share) = advice::script_share(graded.facts) {
        because = format!(
            "{because}, {} of its workers' time in the script",
            percent(share)
        );
    }
    let because = format!("{because}; the server {server} do more");
    let decisive = [fails, warnings, vec![Id::WorkerIdle, Id::ServerCpu]].concat();
    Some(graded.decision(because, decisive, advice::of_client(graded)))
}

fn network_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let mut decisive = graded.of(AccusedSide::Network, Grade::Fail);
    if decisive.is_empty() {
        return None;
    }
    decisive.extend([Id::WorkerIdle, Id::ServerCpu]);
    let [because, advice] = if graded.fails(Id::LinkUse) {
        [
            "the link is full: the figures describe it, not the server",
            "a faster link, or smaller replies",
        ]
    } else {
        [
            "the network loses or delays segments: the figures describe it, not the server",
            "load from nearer to the server, or find where segments are lost",
        ]
    };
    Some(graded.decision(because, decisive, [advice]))
}

/// A limiter that answers is no matter of CPUs, and no steady rate of successes is to be had of it.
fn most_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let share = graded.facts.refused_share()?;
    refused(graded).filter(|_| share >= REFUSED_MOST)
}

/// The server turns requests away.
fn refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let decisive = [Id::Refusals, Id::ServerCpu, Id::WorkerIdle];
    let window = &graded.facts.summary.window;
    // A server refuses streams when too many are in flight, whatever their rate.
    let is_of_streams = window.failures.get(FailureKind::StreamRefused) > window.replies.errors();
    let lower = if is_of_streams {
        "lower --streams or -c"
    } else {
        "-r RATE"
    };
    let advice = format!("raise the server's limit, or stay below it: {lower}");
    let because = graded.detail(Id::Refusals);
    let is_limited = graded.fails(Id::Refusals);
    is_limited.then(|| graded.decision(because, decisive, [advice]))
}

/// How much of the response times is brunt's own, where that is too much for them to be the
/// server's.
fn latency_is_ours(facts: &RunFacts<'_>) -> Option<String> {
    if facts.run.work() == Work::Streams {
        return None;
    }
    let in_all = facts.own_share();
    for (share, what) in [
        (in_all, "the response time"),
        (facts.own_share_of_p99(), "the latency above p99"),
    ] {
        if let Some(share) = share.filter(|share| *share > OWN_SHARE_FAIL) {
            return Some(format!("{} of {what} is brunt's own", percent(share)));
        }
    }
    if let Some(lag_ns) = facts.lag_ns_p99().filter(|&ns| ns > LAG_FAIL_NS) {
        return Some(format!("p99 of brunt's lag is {}", duration(lag_ns)));
    }
    let is_unknown = in_all.is_none();
    is_unknown.then(|| "brunt's own share of the latency is not known".to_owned())
}

/// What of the latencies of a rate that was met is not to be trusted where time was stolen, or
/// other programs had the CPUs.
fn disturbed_latency(graded: &GradedSignals<'_>) -> String {
    let disturbance = if let Some(shown) = graded.facts.clean_words() {
        return format!("; the latencies are of {shown}");
    } else if graded.fails(Id::Steal) || graded.warns(Id::Steal) {
        graded.detail(Id::Steal).to_owned()
    } else if graded.fails(Id::OtherPrograms) {
        graded.detail(Id::OtherPrograms).to_owned()
    } else {
        return String::new();
    };
    format!("; the latencies are not the server's alone: {disturbance}")
}

/// Whether the server is known to have been at its end all the time, and the client not.
fn server_is_full(graded: &GradedSignals<'_>) -> bool {
    let is_full = graded.fails(Id::ServerCpu) || graded.fails(Id::ServerThrottling);
    graded.client_has_time() && is_full
}

/// Whether an open loop waits for a server that used up its CPUs, while brunt, which has time left,
/// is late at most: that lengthens response times, and keeps nothing from the server.
fn is_behind_full_server(graded: &GradedSignals<'_>) -> bool {
    let late = [Id::OwnShare, Id::ScheduleLag, Id::RunQueueWait];
    let fails = graded.of(AccusedSide::Client, Grade::Fail);
    graded.facts.is_open()
        && graded.facts.overload.is_some()
        && server_is_full(graded)
        && fails.iter().all(|id| late.contains(id))
}

/// A verdict that trusts the figures, with a clause about response times that are brunt's own.
fn with_own_share(facts: &RunFacts<'_>, words: String) -> String {
    match latency_is_ours(facts) {
        Some(own) => format!("{words}; {own}"),
        None => words,
    }
}

/// A verdict that trusts the figures, with a clause about a rate that drifted.
fn with_drift(graded: &GradedSignals<'_>, words: String) -> String {
    if graded.fails(Id::Drift) {
        format!("{words}; {}", graded.detail(Id::Drift))
    } else {
        words
    }
}

/// Whether the rate drifted by less than what another number of connections would change.
fn is_small_drift(graded: &GradedSignals<'_>) -> bool {
    let found = graded.facts.steadiness();
    let is_small = |change: Option<f64>, limit| change.is_none_or(|change| change.abs() <= limit);
    // The whole window has twice the way that its halves are apart.
    found.halves_differ.is_some()
        && is_small(found.halves_differ, DRIFT_BESIDE_CONNECTIONS)
        && is_small(found.trend, 2.0 * DRIFT_BESIDE_CONNECTIONS)
}

/// The signal that shows that the server was at its end, and what it did; absent where none does.
fn end_of_server(graded: &GradedSignals<'_>) -> Option<(Id, &'static str)> {
    let client_has_time = graded.client_has_time();
    let is_at_end = |id: &Id| client_has_time && graded.fails(*id);
    if let Some(id) = SERVER_SIGNALS.into_iter().find(is_at_end) {
        let words = match id {
            Id::ServerThrottling => "used up its CPU quota",
            Id::AcceptQueue => "had a full accept queue",
            _ => "was busy all the time",
        };
        return Some((id, words));
    }
    let does_not_read = graded.fails(Id::ReceiveWindow);
    // Of each stream the kernel knows what held it up.
    if does_not_read && client_has_time && graded.facts.run.work() == Work::Streams {
        return Some((Id::ReceiveWindow, "does not read as fast as brunt sends"));
    }
    // What follows tells of something behind the client, which may be the network.
    if !graded.rest_is_out() {
        return None;
    }
    if more_gives_nothing(graded) {
        return Some((Id::Elasticity, "did no more with more connections"));
    }
    // Weaker signs need a client that is beyond doubt.
    if !client_has_time || graded.warns(Id::WorkerIdle) {
        return None;
    }
    let backlog = graded.signal(Id::Backlog)?;
    if backlog.grade == Grade::Fail && backlog.side == AccusedSide::Server {
        return Some((Id::Backlog, "did not keep up with the rate"));
    }
    does_not_read.then_some((Id::ReceiveWindow, "does not read"))
}

/// What decided that the server was at its end.
fn of_end(graded: &GradedSignals<'_>, id: Id) -> Vec<Id> {
    if id == Id::Elasticity {
        return vec![id, Id::WorkerIdle, Id::ServerCpu];
    }
    let drift = graded.fails(Id::Drift).then_some(Id::Drift);
    let decisive = [Some(id), drift].into_iter().flatten();
    let decisive = decisive.chain([Id::WorkerIdle, Id::OwnShare, Id::ServerCpu]);
    decisive.collect()
}

/// A server at its end for several clients is not measured by one of them.
fn shared_server(graded: &GradedSignals<'_>) -> Option<Decision> {
    if !graded.fails(Id::OtherClients) {
        return None;
    }
    let (id, _) = end_of_server(graded)?;
    let others = graded.detail(Id::OtherClients);
    let because = format!("{others}; all clients together bring it to its limit");
    let decisive = [vec![Id::OtherClients], of_end(graded, id)].concat();
    let advice = [
        "stop the other clients, and repeat",
        "or measure them all: run each as brunt -o FILE, then brunt merge FILE...",
    ];
    Some(graded.decision(because, decisive, advice))
}

fn server_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let (id, words) = end_of_server(graded)?;
    let what = if latency_is_ours(graded.facts).is_some() {
        "the throughput describes"
    } else {
        "the figures describe"
    };
    let words = with_own_share(graded.facts, format!("the server {words}; {what} it"));
    let because = with_drift(graded, words);
    let advice = advice::of_server(graded.facts.run, id);
    Some(graded.decision(because, of_end(graded, id), advice))
}

/// Whether an experiment says that more connections give nothing, and what brunt does takes nothing
/// from the server. What limits is behind the client then.
fn more_gives_nothing(graded: &GradedSignals<'_>) -> bool {
    let facts = graded.facts;
    // A plan that is met gives no more with more connections either.
    let may_give_more = facts.is_closed() || facts.overload.is_some();
    let work_is_hidden = graded.all(RunFacts::workers_have_time);
    let elasticity = facts.elasticity.as_ref();
    let gives_nothing = elasticity.is_some_and(Elasticity::gives_nothing);
    may_give_more && work_is_hidden && gives_nothing && graded.rest_is_out()
}

/// The signal that shows that more connections would give more; absent where none does.
fn more_would_give(graded: &GradedSignals<'_>) -> Option<Id> {
    let elasticity = graded.facts.elasticity.as_ref();
    if elasticity.is_some_and(Elasticity::gives_more) {
        return Some(Id::Elasticity);
    }
    let are_busy =
        graded.fails(Id::ConnectionsBusy) && graded.client_has_time() && graded.rest_is_out();
    let gives_less = elasticity.is_some_and(Elasticity::gives_less);
    (are_busy && !gives_less).then_some(Id::ConnectionsBusy)
}

fn concurrency_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let first = more_would_give(graded)?;
    let more = match first {
        Id::ConnectionsBusy if facts.run.depth() > 1 => {
            "every stream was busy; more of them would give more"
        }
        Id::ConnectionsBusy => "every connection was busy; more of them would give more",
        _ => "more connections would give more",
    };
    let words = match facts.own_share().map(percent) {
        // Each request waits for the one before it, and for what brunt does with that.
        Some(own) if facts.places() == 1 => {
            format!("one request at a time, {own} of whose round trip is brunt's own")
        }
        _ => with_own_share(facts, more.to_owned()),
    };
    let decisive = [first, Id::ConnectionsBusy, Id::ServerCpu, Id::WorkerIdle];
    let advice = advice::of_concurrency(facts);
    Some(graded.decision(with_drift(graded, words), decisive, advice))
}

fn undecided(graded: &GradedSignals<'_>) -> Option<Decision> {
    let client = if graded.client_has_time() {
        "brunt was not the limit"
    } else {
        "it is not known whether brunt was the limit"
    };
    let server = match graded.grade(Id::ServerCpu) {
        Grade::Unknown => "the server's CPU use is not known",
        Grade::Warn => "the server's CPU was nearly used up",
        Grade::Healthy | Grade::Fail => "the server had CPU to spare",
    };
    let because = format!("{client}, and {server}");
    let decisive = [Id::ServerCpu, Id::WorkerIdle, Id::Elasticity];
    let decisive = decisive.into_iter().chain([Id::OwnShare, Id::Backlog]);
    Some(graded.decision(because, decisive, advice::to_decide(graded)))
}

pub(super) fn no_success(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = no_success_of(facts.run, &facts.summary)?;
    let cause = cause_words(facts, &found);
    let because = if facts.run.work() == Work::Streams {
        format!("no byte was moved: {cause}")
    } else {
        format!("no {} succeeded: {cause}", facts.run.unit().one)
    };
    Some(graded.decision(because, [], advice_on(facts, found.cause)))
}

/// What the requests ended in instead, in words: of one population, which is named where it is not
/// that of the row of the requests.
fn cause_words(facts: &RunFacts<'_>, found: &NoSuccess) -> String {
    let unit = facts.run.unit();
    let (one, many) = match found.counted {
        NoSuccessPopulation::Issued | NoSuccessPopulation::Ended => (unit.one, unit.many),
        NoSuccessPopulation::Attempts => ("attempt to connect", "attempts to connect"),
    };
    let [count, total] = [found.count, found.total].map(count);
    let mut which = if found.total == 1 {
        format!("the only {one}")
    } else if found.count == found.total {
        format!("all {total} {many}")
    } else {
        format!("{count} of {total} {many}")
    };
    if found.counted != NoSuccessPopulation::Issued {
        which.push_str(" since the window began");
    }
    let mostly = if found.is_uniform { "" } else { "mostly " };
    match found.cause {
        NoSuccessCause::Status(status) if found.is_uniform => {
            format!("{which} had status {status}")
        }
        NoSuccessCause::Status(status) => format!("{which} had error statuses, mostly {status}"),
        NoSuccessCause::Error => format!("{which} had an error for an answer"),
        NoSuccessCause::Failure(kind) => format!("{which} failed ({mostly}{})", kind.label()),
        NoSuccessCause::Unanswered => {
            let window = duration(facts.run.window_ns as f64);
            format!("{which} got no reply in a window of {window}")
        }
        NoSuccessCause::NothingSent => "none was sent".to_owned(),
        NoSuccessCause::NothingMoved => {
            "none was acknowledged by the peer's kernel, and none came".to_owned()
        }
    }
}

/// What to do about requests that all end in `cause`.
fn advice_on(facts: &RunFacts<'_>, cause: NoSuccessCause) -> Vec<String> {
    use FailureKind as Kind;
    use NoSuccessCause as Cause;
    let run = facts.run;
    let speaks_tls = run.agents.iter().any(|agent| agent.speaks_tls);
    if speaks_tls || cause == Cause::Failure(Kind::TlsExpected) {
        return vec![tls_advice(&run.plan.target.url)];
    }
    if let Some(words) = unmatched(facts) {
        return vec![words];
    }
    let unit = run.unit().one;
    let log = format!("look into the server's log, and at one {unit}");
    let answered = format!("see whether one {unit} is answered");
    // What to look at with one exchange by hand, and what follows that.
    let (look, then) = match cause {
        Cause::Failure(Kind::TimedOut) => (answered.as_str(), "; a longer limit: -T"),
        Cause::Unanswered => (answered.as_str(), "; a longer run: -d"),
        _ => match words_on(run, cause) {
            Ok(advice) => return vec![advice.to_owned()],
            Err("") => (log.as_str(), ""),
            Err(look) => (look, ""),
        },
    };
    let mut advice = vec![format!("{look}: {}{then}", by_hand(run))];
    let asks_for_certificate = match cause {
        Cause::Status(status) => status / 100 == 4,
        Cause::Failure(kind) => is_of_handshake(kind),
        _ => false,
    };
    // Over TLS a server may ask for a certificate that brunt was not given.
    if asks_for_certificate && run.plan.tls().is_some_and(|tls| tls.identity.is_none()) {
        let words = "or, if the server asks for a certificate of the client: --cert and --key";
        advice.push(words.to_owned());
    }
    advice
}

/// What to do about requests that all end in `cause`. `Err`: what to look at by hand; empty where
/// that is the server's log.
fn words_on(run: &Run, cause: NoSuccessCause) -> Result<&'static str, &'static str> {
    use FailureKind as Kind;
    use NoSuccessCause as Cause;
    Ok(match cause {
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
            return Err("the server finds fault with the request: look at one reply");
        }
        Cause::Status(_) => return Err("look into the server's log, and at one reply"),
        Cause::Error => "look into the server's log, and at one reply",
        Cause::NothingSent => "a longer run (-d), or a higher rate",
        Cause::NothingMoved => {
            "see whether the server reads (--send) or sends without being asked (--receive)"
        }
        Cause::Failure(Kind::ConnectRefused) => {
            "start the server, or check host and port: nothing listens there"
        }
        Cause::Failure(Kind::ConnectTimedOut | Kind::ConnectUnreachable) => {
            "check host, port and firewall: nothing answers there"
        }
        Cause::Failure(Kind::ConnectNoPort | Kind::ConnectNoDescriptor) => {
            "raise net.ipv4.ip_local_port_range or ulimit -n"
        }
        Cause::Failure(Kind::OpeningRefused) => {
            "the server refuses what --first sends: try it by hand, as with redis-cli or websocat"
        }
        Cause::Failure(Kind::OtherProtocol) => "name the protocol: --http1 or --http2",
        Cause::Failure(kind) if is_of_handshake(kind) => {
            return Err("look into the server's log, and at one handshake");
        }
        Cause::Failure(kind) if kind.is_malformed() => run.protocol().malformed_advice,
        Cause::Failure(_) | Cause::Unanswered => return Err(""),
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

/// Whether curl, called with the URL and little else, sends the same request.
fn is_plain_get(run: &Run) -> bool {
    let outline = run.plan.traffic.requests.outline();
    let is_plain = |first: &RequestOutline| {
        first.method == "GET" && first.header_names.is_empty() && first.body_bytes == 0
    };
    let is_one = outline.list.is_none() && !run.is_generated();
    let has_roots = |tls: &TlsSpec| tls.roots.is_some() || !tls.roots_der.is_empty();
    // Without TLS, and over QUIC, curl would speak HTTP/1.1.
    let is_spoken = match run.plan.tls() {
        Some(tls) => !has_roots(tls) && tls.identity.is_none(),
        None => run.protocol() == Protocol::HTTP1,
    };
    is_one
        && is_spoken
        && run.protocol() != Protocol::HTTP3
        && outline.first.as_ref().is_some_and(is_plain)
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

/// Where most replies say that the request is at fault, that comes before any advice on the load.
/// A server that turns requests away for their rate (429) has a signal of its own.
pub(super) fn add_of_client_errors(facts: &RunFacts<'_>, advice: &mut Vec<String>) {
    let replies = &facts.summary.window.replies;
    let refused = replies.class(4).saturating_sub(replies.count(429_u16));
    let share = ratio(refused as f64, replies.total() as f64);
    let Some(share) = share.filter(|&share| share > CLIENT_ERRORS_MOST) else {
        return;
    };
    let statuses = replies.iter();
    let statuses = statuses.filter(|&(status, _)| status / 100 == 4 && status != 429);
    let Some((status, _)) = statuses.max_by_key(|&(_, count)| count) else {
        return;
    };
    let remedy = advice_on(facts, NoSuccessCause::Status(status)).join("; ");
    let which = if replies.count(status) == refused {
        format!("had status {status}")
    } else {
        format!("had a status of 400 to 499, mostly {status}")
    };
    let share = percent(share);
    advice.insert(0, format!("{share} of the replies {which}: {remedy}"));
}

/// The advice where the server speaks TLS and brunt spoke clear text, with the URL to give.
fn tls_advice(url: &str) -> String {
    let secure = Protocol::ALL.iter().find_map(|protocol| {
        let [clear, secure] = protocol.schemes;
        let rest = url.strip_prefix(clear)?.strip_prefix(':')?;
        Some(format!("{secure}:{rest}"))
    });
    let secure = secure.unwrap_or_else(|| "https://...".to_owned());
    let secure = shell_word(&secure);
    format!("the server speaks TLS at that port: {secure}")
}

/// A command that shows one exchange with the server of `run`.
fn by_hand(run: &Run) -> String {
    let url = &run.plan.target.url;
    let address = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = address.split('/').next().unwrap_or(address);
    let is_secure = run.plan.tls().is_some();
    let socket = run.plan.target.unix_socket.as_deref();
    match run.protocol().by_hand {
        ByHand::Curl if !is_plain_get(run) => {
            "the same command with -n 1 -c 1 --show-errors".to_owned()
        }
        ByHand::Curl => {
            let mut words = "curl -v".to_owned();
            if run.plan.tls().is_some_and(|tls| tls.insecure) {
                words.push_str(" -k");
            }
            if let Some(path) = socket {
                words = format!("{words} --unix-socket {}", path_word(path));
            }
            format!("{words} {}", shell_word(url))
        }
        ByHand::Websocat => format!("websocat -v {}", shell_word(url)),
        ByHand::Netcat if is_secure => format!("openssl s_client -connect {authority}"),
        ByHand::Netcat => match (socket, authority.rsplit_once(':')) {
            (Some(path), _) => format!("nc -U {}", path_word(path)),
            (None, Some((host, port))) => {
                format!("nc {} {port}", host.trim_matches(['[', ']']))
            }
            (None, None) => format!("nc {authority}"),
        },
    }
}

/// A path that a shell takes as it is.
fn path_word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Streams are to last as long as the load: what was moved on some that do not is what brunt's
/// and the server's buffers held.
pub(super) fn streams_ended(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = EndedStreams::of(facts.run).filter(|found| !found.do_last())?;
    let how = match (found.ended, found.reset) {
        (_, 0) => "ended",
        (0, _) => "reset",
        _ => "ended or reset",
    };
    let because = format!(
        "streams do not last: {} {how} in the window where {} to last as long as it; a stream \
         moved {} in {} on average",
        counted(found.all(), "was", "were"),
        counted(found.asked, "is", "are"),
        bytes(found.bytes_mean),
        duration(found.life_ns_mean),
    );
    let advice = "check that the server reads (--send) or sends (--receive) as long as the run \
                  lasts, as brunt serve --tcp sink does: what it has not read when it closes was \
                  acknowledged all the same";
    Some(graded.decision(because, [], [advice]))
}

pub(super) fn server_failed(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = &server_failure_of(facts.run, &facts.summary)?;
    if found.is_silence {
        let because = silent_words(facts, found);
        return Some(graded.decision(because, [Id::ServerCpu], [SILENT_ADVICE]));
    }
    // Attempts that wait in a full queue, or for a port, say nothing of a server that is gone.
    let is_explained = graded.fails(Id::ClientLimits)
        || graded.fails(Id::AcceptQueue) && found.kind == Some(FailureKind::ConnectTimedOut);
    if is_explained || found.answered_throughout {
        return None;
    }
    let mut because = match found.outages.as_slice() {
        [] => missing_words(facts, found),
        [outage] => format!("the server was gone {}", when(*outage, facts)),
        [first, ..] => {
            let back = if found.is_down_at_end() {
                ", and it did not come back"
            } else {
                ""
            };
            format!(
                "the server was gone {} times for {} in all, first at {} of the window{back}",
                found.outages.len(),
                duration(found.down_ns(facts.run.window_ns) as f64),
                duration(first.from_ns as f64)
            )
        }
    };
    because.push_str(&format!("; {}", losses(facts, found)));
    let summary = &facts.summary;
    let unsent = summary.unsent.saturating_add(summary.arrivals.unsent);
    if let Some(asked) = facts.run.plan.load.stop.requests.filter(|_| unsent > 0) {
        let unit = facts.run.unit();
        let asked = counted(asked, unit.one, unit.many);
        let [answered, unsent] = [summary.population.recorded, unsent].map(count);
        because.push_str(&format!(
            "; of {asked} {answered} were answered and {unsent} never sent"
        ));
    }
    let advice = "look into the server's log for why it ended, and repeat";
    Some(graded.decision(because, [Id::ServerCpu], [advice]))
}

/// Share of the replies with a status of 400 to 499 from which on they are most of them.
const CLIENT_ERRORS_MOST: f64 = 0.5;

/// Share of the requests whose connections the server cut, from which on it has failed.
const CUT_LEAST: f64 = 0.1;

/// A server that throws so many requests away gives the others what it could not give to all. What
/// it costs brunt to connect again says nothing about brunt either.
pub(super) fn requests_cut(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let window = &facts.summary.window;
    let failures = window.failures.iter();
    let of_requests = failures.filter(|(kind, _)| kind.scope() == FailureScope::Request);
    let (mut cut, mut ended) = (0.0, window.replies.total() as f64);
    for (kind, count) in of_requests {
        ended += count as f64;
        cut += if kind.is_cut() { count as f64 } else { 0.0 };
    }
    let share = ratio(cut, ended).filter(|&share| share > CUT_LEAST)?;
    let (share, many) = (percent(share), facts.run.unit().many);
    let because = format!(
        "the server closed or reset the connections of {share} of the {many} before they were \
         answered"
    );
    let fewer = if facts.is_open() {
        "--max-connections"
    } else {
        "-c"
    };
    let advice = advice::of_silent_closes(facts).unwrap_or_else(|| {
        let most = count(facts.summary.live.max.into());
        format!(
            "look into the server's log; where it takes fewer connections than {most} (nginx: \
             worker_connections), raise its limit, or open fewer: {fewer}"
        )
    });
    let decisive = [Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, [advice]))
}

/// What to do about a server that answers nothing for a time.
const SILENT_ADVICE: &str =
    "look at what the server did then: its log, a pause of its runtime, a lock, a full disk";

/// When the server answered nothing, in words, and how fast it was before and after.
fn silent_words(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let mut words = match found.outages.as_slice() {
        [silence] => format!("no reply {}", when_silent(*silence)),
        [first, ..] => format!(
            "no reply for {} in all, {} times, first {}",
            duration(found.down_ns(facts.run.window_ns) as f64),
            found.outages.len(),
            when_silent(*first)
        ),
        [] => String::new(),
    };
    words.push_str(", with requests in flight");
    let unit = facts.run.unit();
    for (stretch, side) in [(&found.before, "before"), (&found.after, "after")] {
        if let Some(stretch) = stretch {
            let per_s = number(stretch.successes_per_s);
            words.push_str(&format!("; {per_s} {} {side}", unit.per_s));
        }
    }
    words
}

/// `from 4.0 s on`, `from 4.0 s to 9.0 s of the window`.
fn when_silent(silence: Outage) -> String {
    let from = duration(silence.from_ns as f64);
    match silence.until_ns {
        Some(until_ns) => format!("from {from} to {} of the window", duration(until_ns as f64)),
        None => format!("from {from} of the window on"),
    }
}

/// How many connections the server did not take, in words.
fn missing_words(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    format!(
        "the server did not take all connections: {} of {} were missing on average",
        number(found.missing_mean),
        count(facts.summary.live.asked.into())
    )
}

/// A server that takes no more connections, and answers on those that it took as before, has not
/// failed: their number is what limits.
pub(super) fn connections_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = &server_failure_of(facts.run, &facts.summary)?;
    if !found.answered_throughout {
        return None;
    }
    let because = format!(
        "{}; it answered on the others throughout; {}",
        missing_words(facts, found),
        losses(facts, found)
    );
    let open = f64::from(facts.summary.live.asked) - found.missing_mean;
    let open = number(open.floor());
    let advice =
        format!("raise the server's limit of connections, or ask for about {open} of them");
    let decisive = [Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, [advice]))
}

/// When the server was gone, in words.
fn when(outage: Outage, facts: &RunFacts<'_>) -> String {
    let window_ns = facts.run.window_ns;
    let length = |until_ns: u64| duration(until_ns.saturating_sub(outage.from_ns) as f64);
    let from = duration(outage.from_ns as f64);
    match (outage.from_ns, outage.until_ns) {
        (0, Some(until_ns)) => format!("for the first {} of the window", length(until_ns)),
        (0, None) => "for the whole window".to_owned(),
        (_, Some(until_ns)) => {
            format!("for {}, from {from} of the window on", length(until_ns))
        }
        (_, None) => {
            let rest = length(window_ns);
            format!("from {from} of the window on, and did not come back in {rest}")
        }
    }
}

/// What failed in it, in words.
fn losses(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let unit = facts.run.unit();
    let label = found.kind.map_or("", FailureKind::label);
    let failed = found.attempts_failed;
    let attempts = counted(failed, "attempt to connect", "attempts to connect");
    let mut words = format!("{attempts} failed ({label})");
    if found.requests_failed > 0 {
        let requests = counted(found.requests_failed, unit.one, unit.many);
        words = format!("{requests} and {words}");
    }
    if found.connections_opened > 0 {
        let opened = plural(found.connections_opened, "connection");
        words.push_str(&format!(", {opened} opened anew"));
    }
    words
}
