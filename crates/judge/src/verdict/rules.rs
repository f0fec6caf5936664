//! The rules of the verdict: an ordered table, of which the first match wins.
//!
//! The order is what keeps the one error out that must not happen: no rule that speaks of the
//! server, of the rate or of the connections is reached while a signal of the client fails.

use super::SignalId;
use super::advice;
use super::disturbed;
use super::facts::{Elasticity, RunFacts};
use super::failed;
use super::graded::{DECISIVE_MAX, Decision, GradedSignals};
use super::held;
use super::thresholds::{
    DRIFT_BESIDE_CONNECTIONS, HEADROOM_LEAST, LAG_FAIL_NS, OWN_SHARE_FAIL, REFUSED_MOST,
    WINDOW_LEAST_NS,
};
use super::{Grade, Side, Verdict};
use crate::units::short::{duration, percent};

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
    (Verdict::ClientLimited, held::no_room),
    // Connections were only held, and some are missing at the end.
    (Verdict::ServerLimited, held::not_kept),
    // Connections were only held, all of them to the end.
    (Verdict::ConcurrencyLimited, held::all_held),
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
    (Verdict::Disturbed, disturbed::by_machine),
    // Too few samples, or drift that nothing explains and that the verdict depends on.
    (Verdict::Inconclusive, doubtful),
    // Client and server compete for the same CPUs.
    (Verdict::SharedHost, shared_host),
    // Other programs use the CPUs of client and server, and one of these waits for a CPU.
    (Verdict::Disturbed, disturbed::by_programs),
    // Signals of two sides fail.
    (Verdict::Inconclusive, contradictory),
    // A signal of the client fails, or two of different kinds warn while it is short of time and
    // the server's CPU is not used up.
    (Verdict::ClientLimited, client_limited),
    // A signal of the network fails.
    (Verdict::NetworkLimited, network_limited),
    // The server turns requests away, or the planned rate was met.
    (Verdict::RateLimited, rate_limited),
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
const SERVER_SIGNALS: [SignalId; 3] = [
    SignalId::ServerThrottling,
    SignalId::AcceptQueue,
    SignalId::ServerCpu,
];
/// Hard facts that explain a lack of replies, and a rate that drifts.
const HARD_FACTS: [SignalId; 2] = [SignalId::ClientLimits, SignalId::AcceptQueue];
/// Conclusions from other signals: they contradict none.
const CONCLUSIONS: [SignalId; 1] = [SignalId::Backlog];

/// The first match.
pub(super) fn decide(graded: &GradedSignals<'_>) -> (Verdict, Decision) {
    VERDICT_RULES
        .iter()
        .find_map(|&(verdict, decide)| Some((verdict, decide(graded)?)))
        .unwrap_or((Verdict::Inconclusive, Decision::default()))
}

fn invalid(graded: &GradedSignals<'_>) -> Option<Decision> {
    let broken = &graded.facts.broken;
    let first = broken.first()?;
    let names: Vec<&str> = broken.iter().map(|finding| finding.id).collect();
    let told = names.len().min(DECISIVE_MAX);
    let mut because = names[..told].join(", ");
    if names.len() > told {
        because.push_str(&format!(" and {} more", names.len() - told));
    }
    because.push_str(if names.len() == 1 { " is" } else { " are" });
    because.push_str(&format!(" broken: {}", first.detail));
    Some(graded.decision(because, [], Vec::new()))
}

/// Nothing that each of them saw is of the load of all.
fn not_one_load(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = graded.facts.run.not_one_load()?;
    let advice = "start the runs at the same time, and merge those".to_owned();
    Some(graded.decision(because, [], vec![advice]))
}

/// Drift is no doubt where the cause is known and the verdict does not call the figures those of
/// the server: a client that is held back is so with ups and downs, and lost segments come in
/// bursts. Nor does a small one make doubtful what more connections
/// would give.
fn doubtful(graded: &GradedSignals<'_>) -> Option<Decision> {
    let is_hard = HARD_FACTS.iter().any(|&id| graded.fails(id));
    // A server that is at its end all the time is so at any rate, and with few replies.
    let is_server = server_is_full(graded);
    let is_beside =
        is_small_drift(graded) && (more_gives_nothing(graded) || more_would_give(graded).is_some());
    let is_long = graded.facts.run.window_ns >= WINDOW_LEAST_NS;
    let is_explained = is_hard
        || is_server
        || is_beside
        || graded.fails(SignalId::SharedHost)
        || graded.fails(SignalId::OtherPrograms)
        || [Side::Client, Side::Network]
            .into_iter()
            .any(|side| !graded.of(side, Grade::Fail).is_empty());
    let doubts: Vec<SignalId> = graded
        .of(Side::Doubt, Grade::Fail)
        .into_iter()
        .filter(|id| match *id {
            SignalId::SharedHost | SignalId::OtherClients | SignalId::OtherPrograms => false,
            SignalId::Drift => !is_explained,
            SignalId::Samples => !(is_hard || is_server && is_long),
            _ => true,
        })
        .collect();
    let because = match *doubts.first()? {
        SignalId::Drift => "the rate was not steady: no single figure describes it",
        _ => "too little was measured to judge by",
    };
    let advice = advice::of_doubts(&doubts, &graded.facts.run.plan);
    Some(graded.decision(because, doubts, advice))
}

fn shared_host(graded: &GradedSignals<'_>) -> Option<Decision> {
    graded.fails(SignalId::SharedHost).then(|| {
        graded.decision(
            "client and server competed for the same CPUs; the figures describe the pair",
            [
                SignalId::SharedHost,
                SignalId::RunQueueWait,
                SignalId::ServerCpu,
                SignalId::WorkerIdle,
            ],
            advice::of_shared_host(graded.facts),
        )
    })
}

/// What was planned was done: nobody kept brunt from it. How late it was stands beside that.
fn rate_met(graded: &GradedSignals<'_>) -> Option<Decision> {
    let is_planned = !graded.facts.is_closed() || graded.facts.paced_share().is_some();
    let is_spoilt = [SignalId::Pauses, SignalId::Refusals, SignalId::SharedHost];
    let is_spoilt = is_spoilt.into_iter().any(|id| graded.fails(id));
    (is_planned && !is_spoilt)
        .then(|| planned_rate(graded))
        .flatten()
}

/// All that was planned was sent and answered, but the response times are brunt's own.
fn rate_met_late(graded: &GradedSignals<'_>) -> Option<Decision> {
    // The rule of the rate that was met says what others took.
    let disturbed = [SignalId::Steal, SignalId::OtherPrograms];
    let is_disturbed = disturbed.into_iter().any(|id| graded.fails(id));
    if !graded.facts.is_open() || is_disturbed || rate_met(graded).is_none() {
        return None;
    }
    let late = graded.facts.own_of_quantiles()?;
    // A little steal delays a few requests, not half of them.
    if graded.warns(SignalId::Steal) && late.is_of_tail() {
        return None;
    }
    let because = format!(
        "the rate asked for was met, but {} of {}, {}, is brunt's own: the latencies are not the \
         server's",
        percent(late.share),
        late.of,
        duration(late.ns)
    );
    let decisive = [
        SignalId::ScheduleLag,
        SignalId::OwnShare,
        SignalId::PlannedRate,
        SignalId::WorkerIdle,
    ];
    Some(graded.decision(because, decisive, advice::of_late(graded)))
}

/// Nobody was at its end: the load was no larger than this.
fn think_time(graded: &GradedSignals<'_>) -> Option<Decision> {
    let busy = graded.facts.paused_by_plan()?;
    let because = format!(
        "connections paused by plan for {} of the time: the capacity was not measured",
        percent(1.0 - busy)
    );
    let decisive = [
        SignalId::ConnectionsBusy,
        SignalId::WorkerIdle,
        SignalId::ServerCpu,
    ];
    let words = with_own_share(graded.facts, because) + &disturbed_latency(graded);
    Some(graded.decision(words, decisive, advice::of_think_time(graded.facts)))
}

fn contradictory(graded: &GradedSignals<'_>) -> Option<Decision> {
    // A brunt that was stopped now and then may have brought a server to its end in between.
    if graded.fails(SignalId::Pauses) || is_behind_full_server(graded) {
        return None;
    }
    let mut sides = Vec::new();
    let mut firsts = Vec::new();
    for (side, words) in [
        (Side::Client, "the client"),
        (Side::Network, "the network"),
        (Side::Server, "the server"),
    ] {
        let fails = graded.of(side, Grade::Fail);
        if let Some(first) = fails.into_iter().find(|id| !CONCLUSIONS.contains(id)) {
            sides.push(words);
            firsts.push(first);
        }
    }
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
    let server_is_full = graded.fails(SignalId::ServerCpu);
    if fails.is_empty() && (warnings.len() < 2 || server_is_full) || is_behind_full_server(graded) {
        return None;
    }
    // Of the agents that see the server.
    let headrooms = graded.cases.iter().filter_map(RunFacts::server_headroom);
    let server_has_room = headrooms
        .min_by(f64::total_cmp)
        .is_some_and(|headroom| headroom >= HEADROOM_LEAST);
    let server = if server_has_room { "can" } else { "may" };
    let stopped = match graded.fails(SignalId::Pauses) {
        true => format!("{}: ", graded.detail(SignalId::Pauses)),
        false => String::new(),
    };
    let script = advice::script_share(graded.facts).map_or(String::new(), |share| {
        format!(", {} of its workers' time in the script", percent(share))
    });
    let because = format!("{stopped}brunt was the limit{script}; the server {server} do more");
    let decisive = fails
        .into_iter()
        .chain(warnings)
        .chain([SignalId::WorkerIdle, SignalId::ServerCpu]);
    Some(graded.decision(because, decisive, advice::of_client(graded)))
}

fn network_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let fails = graded.of(Side::Network, Grade::Fail);
    if fails.is_empty() {
        return None;
    }
    let because = if graded.fails(SignalId::LinkUse) {
        "the link is full: the figures describe it, not the server"
    } else {
        "the network loses or delays segments: the figures describe it, not the server"
    };
    let advice = advice::of_network(graded);
    let decisive = fails
        .into_iter()
        .chain([SignalId::WorkerIdle, SignalId::ServerCpu]);
    Some(graded.decision(because, decisive, advice))
}

fn rate_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    refused(graded).or_else(|| planned_rate(graded))
}

/// A limiter that answers is no matter of CPUs, and no steady rate of successes is to be had of it.
fn most_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let share = graded.facts.refused_share()?;
    (share >= REFUSED_MOST).then(|| refused(graded)).flatten()
}

/// The server turns requests away.
fn refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let decisive = [
        SignalId::Refusals,
        SignalId::ServerCpu,
        SignalId::WorkerIdle,
    ];
    graded.fails(SignalId::Refusals).then(|| {
        let advice = advice::of_refusals(graded.facts);
        graded.decision(graded.detail(SignalId::Refusals), decisive, advice)
    })
}

fn planned_rate(graded: &GradedSignals<'_>) -> Option<Decision> {
    graded.fails(SignalId::PlannedRate).then(|| {
        let words = "the rate asked for was met, the capacity not measured";
        let words = with_own_share(graded.facts, words.to_owned());
        graded.decision(
            words + &disturbed_latency(graded),
            [
                SignalId::PlannedRate,
                SignalId::WorkerIdle,
                SignalId::ServerCpu,
                SignalId::ScheduleLag,
            ],
            advice::of_planned_rate(graded.facts.run),
        )
    })
}

/// How much of the response times is brunt's own, where that is too much for them to be the
/// server's.
fn latency_is_ours(facts: &RunFacts<'_>) -> Option<String> {
    if facts.run.is_streams() {
        return None;
    }
    let too_much = |share: &f64| *share > OWN_SHARE_FAIL;
    let of = |share: f64, what: &str| format!("{} of {what} is brunt's own", percent(share));
    let in_all = facts.own_share().filter(too_much);
    let of_p99 = facts.own_share_of_p99().filter(too_much);
    let lag = facts.lag_ns_p99().filter(|&ns| ns > LAG_FAIL_NS);
    in_all
        .map(|share| of(share, "the response time"))
        .or_else(|| of_p99.map(|share| of(share, "the latency above p99")))
        .or_else(|| lag.map(|ns| format!("p99 of brunt's lag is {}", duration(ns))))
        .or_else(|| {
            let is_unknown = facts.own_share().is_none();
            is_unknown.then(|| "brunt's own share of the latency is not known".to_owned())
        })
}

/// What of the latencies of a rate that was met is not to be trusted where time was stolen, or
/// other programs had the CPUs.
fn disturbed_latency(graded: &GradedSignals<'_>) -> String {
    match graded.facts.clean_told() {
        Some(told) => format!("; latencies without steal are those of {told}"),
        None if graded.fails(SignalId::Steal) || graded.warns(SignalId::Steal) => {
            let steal = graded.detail(SignalId::Steal);
            format!(
                "; the latencies are not the server's alone: the hypervisor took CPUs ({steal})"
            )
        }
        None if graded.fails(SignalId::OtherPrograms) => {
            let others = graded.detail(SignalId::OtherPrograms);
            format!("; the latencies are not the server's alone: {others}")
        }
        None => String::new(),
    }
}

/// Whether the server is known to have been at its end all the time, and the client not.
fn server_is_full(graded: &GradedSignals<'_>) -> bool {
    let signals = [SignalId::ServerCpu, SignalId::ServerThrottling];
    graded.client_has_time() && signals.into_iter().any(|id| graded.fails(id))
}

/// Whether an open loop waits for a server that used up its CPUs, while brunt, which has time left,
/// is late at most: that lengthens response times, and keeps nothing from the server.
fn is_behind_full_server(graded: &GradedSignals<'_>) -> bool {
    let late = [
        SignalId::OwnShare,
        SignalId::ScheduleLag,
        SignalId::RunQueueWait,
    ];
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
    if graded.fails(SignalId::Drift) {
        format!("{words}; {}", graded.detail(SignalId::Drift))
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

/// A server at its end for several clients is not measured by one of them.
fn shared_server(graded: &GradedSignals<'_>) -> Option<Decision> {
    if !graded.fails(SignalId::OtherClients) {
        return None;
    }
    let alone = server_limited(graded)?;
    let others = graded.detail(SignalId::OtherClients);
    let because = format!("{others}; all clients together bring it to its limit");
    let decisive = [SignalId::OtherClients].into_iter().chain(alone.decisive);
    Some(graded.decision(because, decisive, advice::of_other_clients()))
}

fn server_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = |words: &str| {
        let what = if latency_is_ours(graded.facts).is_some() {
            "the throughput describes"
        } else {
            "the figures describe"
        };
        let words = with_own_share(graded.facts, format!("the server {words}; {what} it"));
        with_drift(graded, words)
    };
    let decide = |words: &str, id: SignalId| {
        let drift = graded.fails(SignalId::Drift).then_some(SignalId::Drift);
        let decisive = [Some(id), drift].into_iter().flatten().chain([
            SignalId::WorkerIdle,
            SignalId::OwnShare,
            SignalId::ServerCpu,
        ]);
        graded.decision(
            because(words),
            decisive,
            advice::of_server(graded.facts.run, id),
        )
    };
    if graded.client_has_time()
        && let Some(id) = SERVER_SIGNALS.into_iter().find(|&id| graded.fails(id))
    {
        return Some(match id {
            SignalId::ServerThrottling => decide("used up its CPU quota", id),
            SignalId::AcceptQueue => decide("had a full accept queue", id),
            _ => decide("used up its CPU", id),
        });
    }
    // Of each stream the kernel knows what held it up.
    let is_streams = graded.facts.run.is_streams() && graded.client_has_time();
    if is_streams && graded.fails(SignalId::ReceiveWindow) {
        let words = "does not read as fast as brunt sends";
        return Some(decide(words, SignalId::ReceiveWindow));
    }
    // What follows tells of something behind the client, which may be the network.
    if !graded.rest_is_out() {
        return None;
    }
    if more_gives_nothing(graded) {
        let decisive = [
            SignalId::Elasticity,
            SignalId::WorkerIdle,
            SignalId::ServerCpu,
        ];
        return Some(graded.decision(
            because("did no more with more connections"),
            decisive,
            advice::of_server(graded.facts.run, SignalId::Elasticity),
        ));
    }
    // Weaker signs need a client that is beyond doubt.
    if !graded.client_has_time() || graded.grade(SignalId::WorkerIdle) == Grade::Warn {
        return None;
    }
    let backlog = graded.signal(SignalId::Backlog)?;
    if backlog.grade == Grade::Fail && backlog.side == Side::Server {
        return Some(decide("did not keep up with the rate", SignalId::Backlog));
    }
    graded
        .fails(SignalId::ReceiveWindow)
        .then(|| decide("does not read", SignalId::ReceiveWindow))
}

/// Whether an experiment says that more connections give nothing, and what brunt does takes nothing
/// from the server. What limits is behind the client then.
fn more_gives_nothing(graded: &GradedSignals<'_>) -> bool {
    let facts = graded.facts;
    // A plan that is met gives no more with more connections either.
    let may_give_more = facts.is_closed() || facts.overload.is_some();
    let work_is_hidden = graded.all(RunFacts::workers_have_time);
    let gives_nothing = facts
        .elasticity
        .as_ref()
        .is_some_and(Elasticity::gives_nothing);
    may_give_more && work_is_hidden && gives_nothing && graded.rest_is_out()
}

/// The signal that shows that more connections would give more; absent where none does.
fn more_would_give(graded: &GradedSignals<'_>) -> Option<SignalId> {
    let elasticity = graded.facts.elasticity.as_ref();
    if elasticity.is_some_and(Elasticity::gives_more) {
        return Some(SignalId::Elasticity);
    }
    let are_busy =
        graded.fails(SignalId::ConnectionsBusy) && graded.client_has_time() && graded.rest_is_out();
    (are_busy && !elasticity.is_some_and(Elasticity::gives_less))
        .then_some(SignalId::ConnectionsBusy)
}

fn concurrency_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let first = more_would_give(graded)?;
    let more = match first {
        SignalId::ConnectionsBusy if graded.facts.run.depth() > 1 => {
            "every stream was busy; more of them would give more"
        }
        SignalId::ConnectionsBusy => "every connection was busy; more of them would give more",
        _ => "more connections would give more",
    };
    let words = match graded.facts.own_share() {
        // Each request waits for the one before it, and for what brunt does with that.
        Some(own) if graded.facts.places() == 1 => format!(
            "one request at a time, {} of whose round trip is brunt's own",
            percent(own)
        ),
        _ => with_own_share(graded.facts, more.to_owned()),
    };
    Some(graded.decision(
        with_drift(graded, words),
        [
            first,
            SignalId::ConnectionsBusy,
            SignalId::ServerCpu,
            SignalId::WorkerIdle,
        ],
        advice::of_concurrency(graded.facts),
    ))
}

fn undecided(graded: &GradedSignals<'_>) -> Option<Decision> {
    let client = if graded.client_has_time() {
        "brunt was not the limit"
    } else {
        "it is not known whether brunt was the limit"
    };
    let server = match graded.grade(SignalId::ServerCpu) {
        Grade::Unknown => "the server's CPU use is not known",
        Grade::Warn => "the server's CPU was nearly used up",
        Grade::Healthy | Grade::Fail => "the server had CPU to spare",
    };
    let because = format!("{client}, and {server}");
    let decisive = [
        SignalId::ServerCpu,
        SignalId::WorkerIdle,
        SignalId::Elasticity,
        SignalId::OwnShare,
        SignalId::Backlog,
    ];
    Some(graded.decision(because, decisive, advice::to_decide(graded)))
}
