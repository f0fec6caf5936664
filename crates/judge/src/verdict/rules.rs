//! The rules of the verdict: an ordered table, of which the first match wins.
//!
//! The order is what keeps the one error out that must not happen: no rule that speaks of the
//! server, of the rate or of the connections is reached while a signal of the client fails.

use brunt_record::{FailureKind, FailureScope};

use super::SignalId as Id;
use super::advice;
use super::facts::{Elasticity, RunFacts};
use super::failed;
use super::graded::{DECISIVE_MAX, Decision, GradedSignals};
use super::thresholds::{HEADROOM_LEAST, LAG_FAIL_NS, OWN_SHARE_FAIL, WINDOW_LEAST_NS};
use super::{Grade, Side, Verdict};
use crate::Held;
use crate::units::short::{duration, percent};
use crate::units::{count, counted};

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
    (Verdict::NoSuccess, failed::no_success),
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
    (Verdict::ServerFailed, failed::streams_ended),
    // The server was gone for a time, answered nothing for over a tenth of the window or at its
    // end, or did not take all connections and its rate broke down.
    (Verdict::ServerFailed, failed::server_failed),
    // The server closed or reset the connections of over a tenth of the requests before they were
    // answered.
    (Verdict::ServerFailed, failed::requests_cut),
    // The rate of an open loop was met, but over 20 % and 100 µs of its response times at p50 or
    // p99 is brunt's own.
    (Verdict::ClientLimited, rate_met_late),
    // The rate of a schedule was met without a backlog, whatever else is at its end, stolen or
    // short; on CPUs that brunt and the server share the next but one decides.
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
    // The planned rate was met.
    (Verdict::RateLimited, planned_rate),
    // The next rule holds, and others send a part of what the server receives.
    (Verdict::SharedServer, shared_server),
    // The client is known to have time, and the server is at its end: by its CPU, quota or accept
    // queue; or, where the network has room, by a backlog or an experiment.
    (Verdict::ServerLimited, server_limited),
    // The server did not take all connections, and answered on the others throughout.
    (Verdict::ConcurrencyLimited, failed::connections_refused),
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
    let told = names[..names.len().min(DECISIVE_MAX)].join(", ");
    let because = match names.len() {
        1 => format!("{told} is broken: {detail}"),
        2..=DECISIVE_MAX => format!("{told} are broken: {detail}"),
        all => {
            let more = all - DECISIVE_MAX;
            format!("{told} and {more} more are broken: {detail}")
        }
    };
    Some(graded.decision(because, [], Vec::new()))
}

/// Nothing that each of them saw is of the load of all.
fn not_one_load(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = graded.facts.run.not_one_load()?;
    let advice = "start the runs at the same time, and merge those".to_owned();
    Some(graded.decision(because, [], vec![advice]))
}

/// The verdict where this machine had no room for all connections that were to be held.
fn no_room_to_hold(graded: &GradedSignals<'_>) -> Option<Decision> {
    let held = short_of_held(graded)?;
    if !graded.fails(Id::ClientLimits) {
        return None;
    }
    let (missing, limits) = (missing_of_held(&held), graded.detail(Id::ClientLimits));
    let because = format!("{missing}: {limits}");
    let advice = "more ports: --source-address, net.ipv4.ip_local_port_range; more descriptors: \
                  ulimit -n, or --backend uring";
    let advice = vec![advice.to_owned()];
    Some(graded.decision(because, [Id::ClientLimits], advice))
}

/// The server, or the way to it, did not take all of them, or did not keep them.
fn not_kept(graded: &GradedSignals<'_>) -> Option<Decision> {
    let held = short_of_held(graded)?;
    let kinds = graded.facts.summary.lifetime.failures.iter();
    let attempts = kinds.filter(|(kind, _)| kind.scope() == FailureScope::Connect);
    let most = attempts.max_by_key(|&(_, count)| count);
    let mut because = missing_of_held(&held);
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
    Some(graded.decision(because, decisive, vec![advice.to_owned()]))
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
    Some(graded.decision(because, decisive, vec![advice]))
}

/// What was held, where that was not all.
fn short_of_held(graded: &GradedSignals<'_>) -> Option<Held> {
    let facts = graded.facts;
    Held::of(facts.run, &facts.summary).filter(|held| held.missing() > 0)
}

fn missing_of_held(held: &Held) -> String {
    let missing = count(held.missing());
    let asked = counted(held.asked, "connection was", "connections were");
    format!("{missing} of {asked} missing at the end")
}

fn closed_of_held(held: &Held) -> String {
    match held.closed_by_server {
        0 => String::new(),
        closed => format!("; the server closed {}", count(closed)),
    }
}

/// The hypervisor took too much of the window to judge by, or a quota stopped brunt.
fn disturbed_by_machine(graded: &GradedSignals<'_>) -> Option<Decision> {
    let doubts = graded.of(Side::Doubt, Grade::Fail);
    let stolen = "the hypervisor took CPUs away, and left too little of the window to judge by";
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
    let advice = "end the other programs, and repeat".to_owned();
    Some(graded.decision(because, decisive, vec![advice]))
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
    let limits = [Side::Client, Side::Network].map(|side| graded.of(side, Grade::Fail));
    let is_explained = is_hard
        || is_server
        || is_beside
        || graded.fails(Id::SharedHost)
        || graded.fails(Id::OtherPrograms)
        || !limits.concat().is_empty();
    let mut doubts = graded.of(Side::Doubt, Grade::Fail);
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
    is_rate_met(graded).then(|| at_planned_rate(graded))
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
    Some(graded.decision(words, decisive, advice::of_think_time(graded.facts)))
}

fn contradictory(graded: &GradedSignals<'_>) -> Option<Decision> {
    // A brunt that was stopped now and then may have brought a server to its end in between.
    if graded.fails(Id::Pauses) || is_behind_full_server(graded) {
        return None;
    }
    let sides = [
        (Side::Client, "the client"),
        (Side::Network, "the network"),
        (Side::Server, "the server"),
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
    let fails = graded.of(Side::Client, Grade::Fail);
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
    let mut decisive = graded.of(Side::Network, Grade::Fail);
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
    Some(graded.decision(because, decisive, vec![advice.to_owned()]))
}

/// A limiter that answers is no matter of CPUs, and no steady rate of successes is to be had of it.
fn most_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let share = graded.facts.refused_share()?;
    let is_most = share >= REFUSED_MOST && graded.fails(Id::Refusals);
    is_most.then(|| at_refusals(graded))
}

/// The server turns requests away.
fn refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let fails = graded.fails(Id::Refusals);
    fails.then(|| at_refusals(graded))
}

fn at_refusals(graded: &GradedSignals<'_>) -> Decision {
    let decisive = [Id::Refusals, Id::ServerCpu, Id::WorkerIdle];
    let advice = advice::of_refusals(graded.facts);
    graded.decision(graded.detail(Id::Refusals), decisive, advice)
}

fn planned_rate(graded: &GradedSignals<'_>) -> Option<Decision> {
    let is_met = graded.fails(Id::PlannedRate);
    is_met.then(|| at_planned_rate(graded))
}

fn at_planned_rate(graded: &GradedSignals<'_>) -> Decision {
    let words = "the rate asked for was met, the capacity not measured".to_owned();
    let because = with_own_share(graded.facts, words) + &disturbed_latency(graded);
    let decisive = [Id::PlannedRate, Id::WorkerIdle, Id::ServerCpu];
    let decisive = decisive.into_iter().chain([Id::ScheduleLag]);
    let advice = advice::of_planned_rate(graded.facts.run);
    graded.decision(because, decisive, advice)
}

/// How much of the response times is brunt's own, where that is too much for them to be the
/// server's.
fn latency_is_ours(facts: &RunFacts<'_>) -> Option<String> {
    if facts.run.is_streams() {
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
    let disturbance = if let Some(told) = graded.facts.clean_told() {
        return format!("; latencies without steal are those of {told}");
    } else if graded.fails(Id::Steal) || graded.warns(Id::Steal) {
        format!("the hypervisor took CPUs ({})", graded.detail(Id::Steal))
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
    let fails = graded.of(Side::Client, Grade::Fail);
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
    let found = graded.facts.steadiness;
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
            _ => "used up its CPU",
        };
        return Some((id, words));
    }
    let does_not_read = graded.fails(Id::ReceiveWindow);
    // Of each stream the kernel knows what held it up.
    if does_not_read && client_has_time && graded.facts.run.is_streams() {
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
    if backlog.grade == Grade::Fail && backlog.side == Side::Server {
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
    Some(graded.decision(because, decisive, advice.map(str::to_owned).into()))
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
