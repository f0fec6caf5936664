//! The rules of the verdict: an ordered table, of which the first match wins.
//!
//! The order keeps the one error out that must not happen: that brunt's own limit is taken for the
//! server's. Rules about the capacity of the server come after those of the client. Before them are
//! only those whose evidence a slow client cannot make, such as a server that was gone.

use brunt_load::{LoadModel, Work};
use brunt_record::{FailureKind, FailureScope};

use crate::behaviour::failures::{lasts_to_end, length_ns, no_success_of, server_failure_of};
use crate::elasticity::Elasticity;
use crate::units::short::{bytes, duration, number, percent};
use crate::units::{count, counted};
use crate::verdict::facts::{RunFacts, WINDOW_LEAST_NS, ratio};
use crate::verdict::signals::{Decision, GradedSignals};
use crate::verdict::{AccusedSide, Grade, SignalId as Id, Verdict, advice};
use crate::{EndedStreams, Held, NoSuccess, NoSuccessCause, ServerFailure};

/// Replies that turned the request away, from which on nothing else is looked at. A server at its
/// end that sheds load turns away a few [tuned].
const REFUSED_MOST: f64 = 0.1;
/// Second half of the window against the first, as a ratio less 1. Up to this, the drift does not
/// shake what more connections would give: twice as many that are free give twice as much [tuned].
const DRIFT_BESIDE_CONNECTIONS: f64 = 0.30;
/// Share of the requests whose connections the server cut, from which on it has failed.
const CUT_LEAST: f64 = 0.1;

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
    // queue; or, where network and host have room, by a backlog, its receive window or an
    // experiment.
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
    let names = names.join(", ");
    let because = format!("do not trust the figures ({names} broken): {detail}");
    let advice = "end other programs, or use fewer workers (-t), and repeat; if it is INVALID \
                  again, report it as a defect of brunt, with what -v prints";
    Some(graded.decision(because, [], [advice]))
}

fn no_success(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = no_success_of(facts.run, &facts.summary)?;
    let cause = cause_words(facts, &found);
    let because = if facts.run.work() == Work::Streams {
        format!("no byte was moved: {cause}")
    } else {
        format!("no {} succeeded: {cause}", facts.run.unit().one)
    };
    Some(graded.decision(because, [], advice::on(facts, found.cause)))
}

/// What the requests ended in instead, in words.
fn cause_words(facts: &RunFacts<'_>, found: &NoSuccess) -> String {
    let (run, unit) = (facts.run, facts.run.unit());
    let is_attempt = |kind: FailureKind| kind.scope() == FailureScope::Connect;
    let (one, many) = match found.cause {
        NoSuccessCause::Failure(kind) if is_attempt(kind) && run.work() != Work::Connects => {
            ("attempt to connect", "attempts to connect")
        }
        _ => (unit.one, unit.many),
    };
    let [count, total] = [found.count, found.total].map(count);
    let which = if found.total == 1 {
        format!("the only {one}")
    } else if found.count == found.total {
        format!("all {total} {many}")
    } else {
        format!("{count} of {total} {many}")
    };
    let begun = format!("{which} since the window began");
    match found.cause {
        NoSuccessCause::Status(status) => format!("{begun} had status {status}"),
        NoSuccessCause::Error => format!("{begun} had an error for an answer"),
        NoSuccessCause::Failure(kind) => format!("{begun} failed ({})", kind.label()),
        NoSuccessCause::Unanswered => {
            let window = duration(facts.run.window_ns as f64);
            format!("{which} in the window of {window} got no reply")
        }
        NoSuccessCause::NothingSent => "none was sent".to_owned(),
        NoSuccessCause::NothingMoved => {
            "none was acknowledged by the peer's kernel, and none came".to_owned()
        }
    }
}

/// Nothing that each of them saw is of the load of all.
fn not_one_load(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = graded.facts.run.not_one_load()?;
    let advice = "start the runs at the same time, as brunt fleet does, and merge those";
    Some(graded.decision(because, [], [advice]))
}

/// The verdict where this machine had no room for all connections that were to be held.
fn no_room_to_hold(graded: &GradedSignals<'_>) -> Option<Decision> {
    let missing = short_of_held(graded).filter(|_| graded.fails(Id::ClientLimits))?;
    let because = format!("{missing}: {}", graded.detail(Id::ClientLimits));
    Some(graded.decision(because, [Id::ClientLimits], advice::of_client(graded)))
}

/// The server, or the way to it, did not take all of them, or did not keep them.
fn not_kept(graded: &GradedSignals<'_>) -> Option<Decision> {
    let because = short_of_held(graded)?;
    let attempts = graded.facts.summary.lifetime.failures.iter();
    let attempts = attempts.filter(|(kind, _)| kind.scope() == FailureScope::Connect);
    let advice = match attempts.max_by_key(|&(_, count)| count) {
        Some((FailureKind::ConnectTimedOut, _)) => {
            "a longer accept queue (listen backlog, net.core.somaxconn), or slower: \
             --connection-rate"
        }
        _ => "raise the server's limits of connections, descriptors and idle time",
    };
    let decisive = [Id::AcceptQueue, Id::ServerCpu];
    Some(graded.decision(because, decisive, [advice]))
}

/// How many of the connections that were to be held were missing, in words; absent where none was.
fn short_of_held(graded: &GradedSignals<'_>) -> Option<String> {
    let facts = graded.facts;
    let held = Held::of(facts.run, &facts.summary).filter(|held| held.missing() > 0)?;
    let asked = counted(held.asked, "connection was", "connections were");
    Some(format!(
        "{} of {asked} missing at the end",
        count(held.missing())
    ))
}

/// All were there at the end: their number is what was asked for.
fn all_held(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let asked = Held::of(facts.run, &facts.summary)?.asked;
    let all = counted(asked, "connection was", "connections were");
    let because = format!("{all} held to the end; how many more the server takes was not measured");
    let advice = format!("for the limit: -c {}", asked.saturating_mul(2));
    Some(graded.decision_with_cpus(because, [], [advice]))
}

/// Streams are to last as long as the load: what was moved on some that do not is what brunt's
/// and the server's buffers held.
fn streams_ended(graded: &GradedSignals<'_>) -> Option<Decision> {
    let found = EndedStreams::of(graded.facts.run).filter(|found| !found.do_last())?;
    let because = format!(
        "the server ended or reset {}, which were to last to the end of the run; one moved {} in {} \
         on average",
        counted(found.ended, "stream", "streams"),
        bytes(found.bytes_mean),
        duration(found.life_ns_mean),
    );
    let advice = "check that the server reads (--send) or sends (--receive) as long as the run \
                  lasts, as brunt serve --tcp sink does";
    Some(graded.decision(because, [], [advice]))
}

fn server_failed(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = &server_failure_of(facts.run, &facts.summary)?;
    if found.is_silence {
        let because = format!("no reply {}, with requests in flight", when(facts, found));
        let advice = "look at what the server did then: its log, a pause of its runtime, a lock, a \
                      full disk";
        return Some(graded.decision(because, [Id::ServerCpu], [advice]));
    }
    // Attempts that wait in a full queue, or for a port, say nothing of a server that is gone.
    let is_explained = graded.fails(Id::ClientLimits)
        || graded.fails(Id::AcceptQueue) && found.kind == Some(FailureKind::ConnectTimedOut);
    if is_explained || found.answered_throughout {
        return None;
    }
    let gone = if found.outages.is_empty() {
        missing_words(facts, found)
    } else {
        let back = if lasts_to_end(&found.outages) {
            ", and did not come back"
        } else {
            ""
        };
        format!("the server was gone {}{back}", when(facts, found))
    };
    let because = format!("{gone}; {}", losses(facts, found));
    let advice = "look into the server's log for why it ended, and repeat";
    Some(graded.decision(because, [Id::ServerCpu], [advice]))
}

/// When the server was gone or silent, in words.
fn when(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let all = duration(length_ns(&found.outages, facts.run.window_ns) as f64);
    let times = match found.outages.len() {
        0 | 1 => String::new(),
        times => format!(" in all, {times} times"),
    };
    let from = match found.outages.first() {
        Some(first) if first.from_ns > 0 => duration(first.from_ns as f64),
        _ => "the start".to_owned(),
    };
    format!("for {all}{times}, from {from} of the window on")
}

/// How many connections the server did not take, in words.
fn missing_words(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    format!(
        "the server did not take all connections: {} of {} were missing on average",
        number(found.missing_mean),
        count(facts.summary.live.asked.into())
    )
}

/// What failed then, in words.
fn losses(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let attempts = counted(found.attempts_failed, "attempt", "attempts");
    let kind = found.kind.map_or("", FailureKind::label);
    let attempts = format!("{attempts} to connect ({kind})");
    let unit = facts.run.unit();
    match found.requests_failed {
        0 => format!("{attempts} failed"),
        requests => format!(
            "{} failed, and {attempts}",
            counted(requests, unit.one, unit.many)
        ),
    }
}

/// A server that throws so many requests away gives the others what it could not give to all. What
/// it costs brunt to connect again says nothing about brunt either.
fn requests_cut(graded: &GradedSignals<'_>) -> Option<Decision> {
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
    let most = count(facts.summary.live.max.into());
    let advice = format!(
        "look into the server's log; where it takes fewer connections than {most} (nginx: \
         worker_connections), raise its limit; where it closes each after one reply without \
         saying so: --no-keepalive"
    );
    Some(graded.decision_with_cpus(because, [], [advice]))
}

/// Whether what was planned was done: nobody kept brunt from it.
fn is_rate_met(graded: &GradedSignals<'_>) -> bool {
    let is_planned = !graded.facts.is_closed() || graded.facts.paced_share().is_some();
    let spoilt = [Id::Pauses, Id::Refusals, Id::SharedHost];
    is_planned && !spoilt.into_iter().any(|id| graded.fails(id)) && graded.fails(Id::PlannedRate)
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
    if graded.warns(Id::Steal) && late.of != "p50" {
        return None;
    }
    let because = format!(
        "the planned rate was met, but {}: the latencies are not the server's",
        late.words()
    );
    let decisive = [Id::ScheduleLag, Id::OwnShare, Id::PlannedRate];
    Some(graded.decision(because, decisive, advice::of_late(graded)))
}

/// How late brunt was stands beside that.
fn rate_met(graded: &GradedSignals<'_>) -> Option<Decision> {
    is_rate_met(graded).then(|| {
        let because = "the planned rate was met, the capacity not measured";
        let higher = || {
            let option = match graded.facts.run.plan.load.model {
                LoadModel::Open { .. } => "-r or --stages",
                LoadModel::Sessions { .. } => "--connection-rate",
                LoadModel::Closed { .. } | LoadModel::Held { .. } => "--bandwidth",
            };
            format!("for the capacity: a higher {option}")
        };
        let advice = advice::of_capacity(graded.facts.run).unwrap_or_else(higher);
        graded.decision_with_cpus(because, [Id::PlannedRate], [advice])
    })
}

/// A limiter that answers is no matter of CPUs, and no steady rate of successes is to be had of it.
fn most_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let share = graded.facts.refused_share()?;
    refused(graded).filter(|_| share >= REFUSED_MOST)
}

/// The hypervisor took too much of the window to judge by, or a quota stopped brunt.
fn disturbed_by_machine(graded: &GradedSignals<'_>) -> Option<Decision> {
    let doubts = graded.of(AccusedSide::Doubt, Grade::Fail);
    let stolen = "CPU steal left too little of the window to judge by";
    let throttled = "brunt's CPU quota stopped it now and then: the figures are not steady";
    let found = [(Id::Steal, stolen), (Id::Throttling, throttled)];
    let (id, because) = found.into_iter().find(|(id, _)| doubts.contains(id))?;
    let advice = advice::of_doubt(id, &graded.facts.run.plan);
    Some(graded.decision(because, [id], [advice]))
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
    let limits =
        [AccusedSide::Client, AccusedSide::Network].map(|side| graded.of(side, Grade::Fail));
    let is_explained = is_hard
        || is_server
        || is_beside
        || graded.fails(Id::SharedHost)
        || graded.fails(Id::OtherPrograms)
        || !limits.concat().is_empty();
    let is_long = graded.facts.run.window_ns >= WINDOW_LEAST_NS;
    let is_enough = is_hard || is_server && is_long;
    let (doubt, because) = if graded.fails(Id::Drift) && !is_explained {
        (
            Id::Drift,
            "the rate was not steady: no single figure describes it",
        )
    } else if graded.fails(Id::Samples) && !is_enough {
        (Id::Samples, "too little was measured to judge by")
    } else {
        return None;
    };
    let advice = advice::of_doubt(doubt, &graded.facts.run.plan);
    Some(graded.decision(because, [doubt], [advice]))
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

fn shared_host(graded: &GradedSignals<'_>) -> Option<Decision> {
    graded.fails(Id::SharedHost).then(|| {
        let because = "client and server competed for the same CPUs; the figures describe the pair";
        let advice = advice::of_shared_host(graded.facts);
        graded.decision_with_cpus(because, [Id::SharedHost, Id::RunQueueWait], advice)
    })
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
    let advice = ["end the other programs, and repeat"];
    Some(graded.decision_with_cpus(because, [Id::OtherPrograms], advice))
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

/// Whether the server is known to have been at its end all the time, and the client not.
fn server_is_full(graded: &GradedSignals<'_>) -> bool {
    let is_full = graded.fails(Id::ServerCpu) || graded.fails(Id::ServerThrottling);
    graded.client_has_time() && is_full
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
    let mut because = "brunt was the limit".to_owned();
    if graded.fails(Id::Pauses) {
        because = format!("{}: {because}", graded.detail(Id::Pauses));
    }
    if let Some(share) = advice::script_share(graded.facts) {
        let share = percent(share);
        because.push_str(&format!(", {share} of its workers' time in the script"));
    }
    because.push_str("; the server may do more");
    let decisive = [fails, warnings].concat();
    Some(graded.decision_with_cpus(because, decisive, advice::of_client(graded)))
}

fn network_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let decisive = graded.of(AccusedSide::Network, Grade::Fail);
    if decisive.is_empty() {
        return None;
    }
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
    Some(graded.decision_with_cpus(because, decisive, [advice]))
}

/// The server turns requests away.
fn refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let window = &graded.facts.summary.window;
    // A server refuses streams when too many are in flight, whatever their rate.
    let is_of_streams = window.failures.get(FailureKind::StreamRefused) > window.replies.errors();
    let lower = if is_of_streams {
        "lower --streams or -c"
    } else {
        "-r RATE"
    };
    let advice = format!("raise the server's limit, or stay below it: {lower}");
    let because = format!(
        "the server's own limit was reached: {}",
        graded.detail(Id::Refusals)
    );
    let is_limited = graded.fails(Id::Refusals);
    is_limited.then(|| graded.decision_with_cpus(because, [Id::Refusals], [advice]))
}

/// A server at its end for several clients is not measured by one of them.
fn shared_server(graded: &GradedSignals<'_>) -> Option<Decision> {
    let (id, _) = end_of_server(graded).filter(|_| graded.fails(Id::OtherClients))?;
    let others = graded.detail(Id::OtherClients);
    let because = format!("{others}; all clients together bring it to its limit");
    let advice = [
        "stop the other clients, and repeat",
        "or measure them all: run each as brunt -o FILE, then brunt merge FILE...",
    ];
    Some(graded.decision_with_cpus(because, [Id::OtherClients, id], advice))
}

fn server_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let (id, words) = end_of_server(graded)?;
    let what = if graded.facts.own_part().is_some() {
        "the throughput describes"
    } else {
        "the figures describe"
    };
    let because = format!("the server {words}; {what} it");
    let drift = graded.fails(Id::Drift).then_some(Id::Drift);
    let decisive = [Some(id), drift].into_iter().flatten();
    let advice = advice::of_server(graded.facts.run, id);
    Some(graded.decision_with_cpus(because, decisive, advice))
}

/// The signal that shows that the server was at its end, and what it did; absent where none does.
fn end_of_server(graded: &GradedSignals<'_>) -> Option<(Id, &'static str)> {
    let client_has_time = graded.client_has_time();
    // What a server at its end shows by itself, the strongest first.
    let by_itself = [
        (Id::ServerThrottling, "used up its CPU quota"),
        (Id::AcceptQueue, "had a full accept queue"),
        (Id::ServerCpu, "was at its limit"),
    ];
    let mut found = by_itself.into_iter().filter(|_| client_has_time);
    if let Some(end) = found.find(|&(id, _)| graded.fails(id)) {
        return Some(end);
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

/// A server that takes no more connections, and answers on those that it took as before, has not
/// failed: their number is what limits.
fn connections_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = server_failure_of(facts.run, &facts.summary);
    let found = &found.filter(|found| found.answered_throughout)?;
    let because = format!(
        "{}; it answered on the others throughout; {}",
        missing_words(facts, found),
        losses(facts, found)
    );
    let open = f64::from(facts.summary.live.asked) - found.missing_mean;
    let open = number(open.floor());
    let advice =
        format!("raise the server's limit of connections, or ask for about {open} of them");
    Some(graded.decision_with_cpus(because, [], [advice]))
}

/// Nobody was at its end: the load was no larger than this.
fn think_time(graded: &GradedSignals<'_>) -> Option<Decision> {
    let paused = percent(1.0 - graded.facts.paused_by_plan()?);
    let because = format!(
        "connections paused by plan for {paused} of the time: the capacity was not measured"
    );
    let more = u64::from(graded.facts.connections_most()).saturating_mul(2);
    let advice = [format!("for more load: -c {more}, or shorter pauses")];
    Some(graded.decision_with_cpus(because, [Id::ConnectionsBusy], advice))
}

fn concurrency_limited(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let first = more_would_give(graded)?;
    let because = match facts.own_share().map(percent) {
        // Each request waits for the one before it, and for what brunt does with that.
        Some(own) if facts.places() == 1 => {
            format!("one request at a time, {own} of whose round trip is brunt's own")
        }
        _ if first == Id::Elasticity => "more connections would give more".to_owned(),
        _ if facts.run.depth() > 1 => {
            "every stream was busy; more of them would give more".to_owned()
        }
        _ => "every connection was busy; more of them would give more".to_owned(),
    };
    let advice = advice::of_concurrency(facts);
    Some(graded.decision_with_cpus(because, [first, Id::ConnectionsBusy], advice))
}

/// Whether an experiment says that more connections give nothing, and what brunt does takes nothing
/// from the server. What limits is behind the client then.
fn more_gives_nothing(graded: &GradedSignals<'_>) -> bool {
    let elasticity = graded.facts.elasticity.as_ref();
    let gives_nothing = elasticity.is_some_and(Elasticity::gives_nothing);
    gives_nothing && graded.all(RunFacts::workers_have_time) && graded.rest_is_out()
}

/// The signal that shows that more connections would give more; absent where none does.
fn more_would_give(graded: &GradedSignals<'_>) -> Option<Id> {
    let elasticity = graded.facts.elasticity.as_ref();
    if elasticity.is_some_and(Elasticity::gives_more) {
        return Some(Id::Elasticity);
    }
    let are_busy = graded.fails(Id::ConnectionsBusy);
    let both_have_room = are_busy && graded.client_has_time() && graded.rest_is_out();
    let gives_less = elasticity.is_some_and(Elasticity::gives_less);
    (both_have_room && !gives_less).then_some(Id::ConnectionsBusy)
}

fn undecided(graded: &GradedSignals<'_>) -> Option<Decision> {
    let client = if graded.client_has_time() {
        "brunt was not the limit"
    } else {
        "whether brunt was the limit is not known"
    };
    let server = match graded.grade(Id::ServerCpu) {
        Grade::Unknown => "the server's CPU use is not known",
        Grade::Warn => "the server's CPU was nearly used up",
        Grade::Healthy | Grade::Fail => "the server had CPU to spare",
    };
    let because = format!("{client}, and {server}");
    let decisive = [Id::ServerCpu, Id::WorkerIdle, Id::OwnShare, Id::Backlog];
    Some(graded.decision(because, decisive, advice::to_decide(graded)))
}
