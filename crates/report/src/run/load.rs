//! The rows of the load: its model and schedule, the outcome of the schedule, its phases, and what
//! sets the run apart from others.

use brunt_judge::{Judged, Overload, Summary, shell_word};
use brunt_load::{
    ArrivalProcess, Framing, LoadModel, MessageExchange, ProtocolSpec, RequestOrder, Schedule,
    SocketOptions, Streams, Term, ThinkSpread, Work,
};
use brunt_record::{AgentRecord, DepthPlace, Once, Placement, Run, RunEdges, after_ns, cpu_list};

use super::counts;
use crate::foreign::word;
use crate::units::{self, counted};

/// Where the requests go and how; full: with all that was negotiated.
pub(super) fn target(run: &Run, is_full: bool) -> Vec<String> {
    let plan = &run.plan;
    let url = plan.urls();
    let outline = plan.traffic.requests.outline();
    let mut items = vec![word(&url).into_owned()];
    let address = &run.first().negotiated.address;
    if let Some(path) = &plan.target.unix_socket {
        items.push(format!("Unix socket {}", path.display()));
    } else if !url.contains(address) && !is_address_of(&url, address) {
        items.push(format!("at {address}"));
    }
    let methods = outline.methods();
    if methods.iter().any(|method| *method != "GET") {
        items.push(methods.join(", "));
    }
    items.extend(protocol(run, is_full));
    // Requests are named by their paths, which the URL shows.
    let is_named = outline.first.is_none() && outline.list.is_none() && run.work() != Work::Hold;
    let name = Some(outline.first_name).filter(|name| is_named && !name.is_empty());
    items.extend(name);
    items.extend(
        plan.connection
            .protocol
            .terms(run.work())
            .into_iter()
            .map(in_words),
    );
    if run.own_server() {
        items.push("brunt's own server (no URL given)".to_owned());
    }
    items
}

/// Whether `url` names the host of `address` and the port that its scheme stands for.
fn is_address_of(url: &str, address: &str) -> bool {
    let ports = [("https://", ":443"), ("http://", ":80")];
    let mut hosts = ports.iter().filter_map(|(scheme, port)| {
        let host = address.strip_suffix(port)?;
        url.strip_prefix(scheme)?.strip_prefix(host)
    });
    hosts.any(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What is said of an exchange.
fn in_words(term: Term) -> String {
    match term {
        Term::Words(words) => words,
        Term::Count(number, words) => format!("{} {words}", units::count(number)),
        Term::Time(words, ns) => format!("{words} {}", units::duration(ns)),
    }
}

/// What is spoken to it, and over what.
fn protocol(run: &Run, is_full: bool) -> Vec<String> {
    let (plan, negotiated) = (&run.plan, &run.first().negotiated);
    let mut spoken = match run.work() {
        Work::Connects => "opened and closed again".to_owned(),
        Work::Streams => format!("{} streams", negotiated.protocol.name),
        Work::Requests | Work::Hold => negotiated.protocol.name.to_owned(),
    };
    if negotiated.tls.is_none() {
        let protocol = negotiated.protocol;
        let kept_alive = protocol.kept_alive.filter(|_| is_full && plan.keepalive());
        for words in [kept_alive, protocol.in_clear_text].into_iter().flatten() {
            spoken.push_str(&format!(" {words}"));
        }
    }
    if let Some(tls) = &negotiated.tls {
        spoken.push_str(" over ");
        spoken.push_str(&tls.version);
        if is_full {
            let names = [&tls.cipher_suite].into_iter().chain(&tls.group);
            names.for_each(|name| spoken.push_str(&format!(", {name}")));
        }
    }
    let mut items = vec![spoken];
    if !plan.keepalive() && plan.work() != Work::Connects {
        items.push(format!("a connection per {}", run.unit().one));
    }
    let Some(tls) = plan.tls() else {
        return items;
    };
    let name = tls.name_for(&plan.target.host);
    if name != plan.target.host {
        items.push(format!("server name {name}"));
    }
    if tls.resumption {
        items.push("TLS sessions resumed".to_owned());
    } else if is_full {
        items.push("full handshakes".to_owned());
    }
    if tls.insecure {
        items.push("certificate not verified".to_owned());
    }
    if tls.identity.is_some() {
        items.push("client certificate".to_owned());
    }
    items
}

/// The load that was asked for; full: with what makes no difference to it.
pub(super) fn load(run: &Run, is_full: bool) -> Vec<String> {
    let (plan, unit) = (&run.plan, run.unit());
    let number = plan.load.connections.get();
    let connections = match plan.work() {
        Work::Connects => format!("{} at a time", count(number)),
        _ => counted(number.into(), "connection", "connections"),
    };
    let (streams, in_flight) = match (run.protocol().depth.place, run.depth()) {
        (_, 0 | 1) => (String::new(), None),
        (DepthPlace::BesideConnections(words), depth) => {
            (format!(", {} {words}", count(depth)), None)
        }
        (DepthPlace::OfItsOwn(words), depth) => {
            (String::new(), Some(format!("{} {words}", count(depth))))
        }
    };
    let mut items = Vec::new();
    let opened_at =
        |per_s: &Option<f64>| per_s.map(|per_s| format!("opened at {}/s", units::rate(per_s)));
    match &plan.load.model {
        LoadModel::Closed { connect_per_s } => {
            match plan.one_way() {
                Some(one_way) => items.extend(one_way_streams(number, one_way)),
                None => items.extend(["closed loop".to_owned(), connections + &streams]),
            }
            items.extend(opened_at(connect_per_s));
        }
        LoadModel::Held { connect_per_s } => {
            items.extend(["connections held".to_owned(), connections]);
            items.extend(opened_at(connect_per_s));
        }
        LoadModel::Open {
            schedule,
            connections_max,
            ..
        } => {
            let is_more = *connections_max > plan.load.connections;
            let most = is_more.then(|| format!(", up to {}", count(connections_max.get())));
            items.extend(["open loop".to_owned(), rate(schedule, unit.per_s)]);
            items.push(connections + &most.unwrap_or_default() + &streams);
        }
        LoadModel::Sessions { schedule, .. } => {
            items.extend(["sessions".to_owned(), rate(schedule, "connections/s")]);
            items.push(format!("at most {connections}{streams}"));
        }
    }
    items.extend(plan.traffic.requests.outline().list.map(|list| {
        let requests = counted(list.requests, unit.one, unit.many);
        let weights = if list.is_weighted { " by weight" } else { "" };
        match plan.traffic.requests.order() {
            RequestOrder::Turns => format!("{requests} in turns{weights}"),
            RequestOrder::ConnectionTurns => {
                format!("{requests} in turns{weights} on each connection")
            }
            RequestOrder::Random { .. } => format!("{requests} at random{weights}"),
        }
    }));
    if plan.traffic.sequence_offset > 0 {
        let first = units::count(plan.traffic.sequence_offset + 1);
        items.push(format!("{{{{seq}}}} from {first}"));
    }
    items.push(workers(run, is_full));
    if is_full {
        items.push(backends(run));
    }
    items.extend(in_flight);
    // Without keep-alive it is one, which the row of the target says.
    if plan.keepalive()
        && let Some(requests) = plan.requests_per_connection()
    {
        let requests = counted(requests, unit.one, unit.many);
        items.push(format!("{requests} per connection"));
    }
    let has_random_pauses = plan.traffic.think_spread != ThinkSpread::Fixed;
    if plan.traffic.think_time_ns > 0 {
        let mean = units::duration(plan.traffic.think_time_ns);
        items.push(format!("think time {mean}"));
        let spread = plan.traffic.think_spread.name();
        items.extend(has_random_pauses.then(|| spread.to_owned()));
    }
    items.extend(sockets(&plan.connection.sockets));
    items.extend(sources(run));
    // The first of these: `--seed` takes one.
    let schedule = plan.load.model.schedule();
    let is_poisson = schedule.is_some_and(|one| one.process() == ArrivalProcess::Poisson);
    let seed = run.seed(|seeds| {
        let think = seeds.think.filter(|_| is_full || has_random_pauses);
        let arrivals = seeds.arrivals.filter(|_| is_full || is_poisson);
        seeds.order.or(seeds.numbers).or(think).or(arrivals)
    });
    items.extend(seed.map(|seed| format!("seed {seed}")));
    items
}

/// What streams do, how many there are, and at what rate.
fn one_way_streams(connections: u32, one_way: &Streams) -> Vec<String> {
    let what = match (one_way.sends, one_way.receives) {
        (true, true) => "sending and receiving",
        (true, false) => "sending",
        (false, _) => "receiving",
    };
    let mut items = vec![
        what.to_owned(),
        counted(connections.into(), "stream", "streams"),
    ];
    items.extend(one_way.paced_bits_per_s.map(|bits_per_s| {
        let rate = units::bits_per_s(bits_per_s.get() as f64);
        format!("paced by the kernel at {rate} in all")
    }));
    items
}

/// Options of the sockets that are not the usual ones.
fn sockets(sockets: &SocketOptions) -> Vec<String> {
    let mut items = Vec::new();
    if !sockets.is_nodelay {
        items.push("Nagle's algorithm on".to_owned());
    }
    for (bytes, what) in [
        (sockets.send_buffer_bytes, "send buffer"),
        (sockets.receive_buffer_bytes, "receive buffer"),
        (sockets.segment_bytes, "segments of at most"),
    ] {
        items.extend(bytes.map(|bytes| format!("{what} {} bytes", count(bytes.get()))));
    }
    let congestion = sockets.congestion.iter();
    items.extend(congestion.map(|name| format!("congestion control {name}")));
    items
}

/// How many workers; full: and on which CPUs, where those are of one machine and known.
fn workers(run: &Run, is_full: bool) -> String {
    let workers = run.plan.workers.count.get();
    let count = match &run.part_of {
        Some(whole) => format!("{workers} of {} workers", count(whole.workers)),
        None => counted(workers.into(), "worker", "workers"),
    };
    let bound = run.first().bound_cpus();
    let Some(cpus) = bound.filter(|_| is_full && run.is_plain()) else {
        return count;
    };
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{count} on {word} {}", cpu_list(&cpus))
}

/// Why there are so many workers, and why on these CPUs.
pub(super) fn placement(placement: &Placement) -> String {
    let words = match placement {
        Placement::ServerAnywhere => {
            "half of the CPUs, each worker on one: the server is on this machine and may use all \
             of them"
        }
        Placement::ServerBound => "on CPUs that the server, which is on this machine, may not use",
        Placement::OwnServer => "half of the CPUs each for brunt and its server",
        Placement::ServerElsewhere => "the target is not on this machine",
        Placement::OneCpu => "there is one CPU for brunt and the server",
        Placement::Given => "their number was given (-t), the scheduler placed them",
        Placement::Confined => {
            "brunt was confined to its CPUs from outside, the scheduler placed them"
        }
        Placement::Off => "the scheduler placed them",
    };
    words.to_owned()
}

/// What the workers ran on: each backend once.
fn backends(run: &Run) -> String {
    let backends = run.agents.iter().map(|agent| agent.backend.name());
    let mut names: Vec<_> = backends.collect();
    names.dedup();
    names.join(", ")
}

/// The local addresses of the connections, where brunt or its user chose them.
fn sources(run: &Run) -> Option<String> {
    let agents = || run.agents.iter();
    let mut addresses = agents().flat_map(|agent| &agent.source_addresses);
    let first = addresses.next()?;
    let Some(last) = addresses.next_back() else {
        return Some(format!("from {first}"));
    };
    let count: usize = agents().map(|agent| agent.source_addresses.len()).sum();
    let is_chosen = agents().any(|agent| agent.source_addresses_chosen);
    let why = if is_chosen {
        ": the ports of one would run out"
    } else {
        ""
    };
    let count = units::count(count as u64);
    Some(format!("from {count} addresses, {first} to {last}{why}"))
}

/// The rate of `schedule`, or how it changes, in `unit`.
pub(crate) fn rate(schedule: &Schedule, unit: &str) -> String {
    let process = match schedule.process() {
        ArrivalProcess::Constant => "",
        ArrivalProcess::Poisson => " Poisson",
        ArrivalProcess::Uniform => " uniform",
    };
    let unit = format!("{unit}{process}");
    let rates = || {
        let stages = schedule.stages().iter();
        stages.flat_map(|stage| [stage.from_per_s, stage.to_per_s])
    };
    let Some(highest) = rates().max_by(f64::total_cmp) else {
        return format!("{} {unit}", units::rate(schedule.rate_max()));
    };
    let lowest = rates().min_by(f64::total_cmp).unwrap_or(highest);
    let stages = counted(schedule.stages().len() as u64, "stage", "stages");
    let highest = format!("{} {unit}", units::rate(highest));
    match units::rate(lowest) {
        lowest if highest.starts_with(&format!("{lowest} ")) => format!("{highest} in {stages}"),
        lowest => format!("{lowest} to {highest} in {stages}"),
    }
}

/// How each agent was called, as a line for a shell; empty where that is not known.
pub(super) fn commands(run: &Run) -> Vec<String> {
    let commands = run.agents.iter().filter_map(|agent| agent.command.as_ref());
    commands.map(|words| command(words)).collect()
}

/// A command line for a shell, but for words that are too long to be printed.
pub(crate) fn command(words: &[String]) -> String {
    let words = words.iter().map(|one| shell_word(&word(one)));
    words.collect::<Vec<_>>().join(" ")
}

/// Share of the arrivals that may be sent in drain without a word: those that were due when
/// the window ended.
const IN_DRAIN_FEW: f64 = 0.01;

/// Whether there is a plan, and all arrivals of the window were sent, hardly any of them in drain:
/// then the row of the requests, or of the connections, says so, and they need none of their own.
pub(super) fn all_sent(run: &Run, summary: &Summary) -> bool {
    let arrivals = &summary.arrivals;
    let by_end = arrivals.sent_by_end.unwrap_or(arrivals.sent);
    let in_drain = arrivals.sent.saturating_sub(by_end);
    run.plan.load.model.schedule().is_some()
        && arrivals.planned == arrivals.sent
        && in_drain as f64 <= arrivals.sent as f64 * IN_DRAIN_FEW
}

/// What is said of the arrivals that waited.
pub(super) const WAITED: &str = "waited for a free connection";

/// The outcome of the arrivals planned in the window.
pub(super) fn arrivals(judged: &Judged<'_>) -> Vec<String> {
    let arrivals = &judged.summary.arrivals;
    let (planned, sent) = (arrivals.planned, arrivals.sent);
    let by_end = arrivals.sent_by_end.unwrap_or(sent);
    // In an overload nearly all have to wait.
    let is_told = judged.overload.is_none();
    let outcomes = [
        (sent.saturating_sub(by_end), "sent after the window"),
        (arrivals.skipped_full, "skipped, the queue was full"),
        (arrivals.skipped_late, "waited too long"),
        (arrivals.unsent, "never sent"),
        (if is_told { arrivals.waited } else { 0 }, WAITED),
    ];
    let sent = [(planned, "planned"), (by_end, "sent")];
    counts(sent, true).chain(counts(outcomes, false)).collect()
}

/// How far the server was from following the schedule.
pub(super) fn overload(overload: &Overload) -> Vec<String> {
    let growth = match overload.growth_ns_per_s {
        Some(ns) => {
            let growth = units::duration(ns.max(0.0).round() as u64);
            format!("latencies grow by {growth} every second")
        }
        None => "the longer the run, the more is late or skipped".to_owned(),
    };
    vec!["the planned rate was not kept".to_owned(), growth]
}

fn count(value: u32) -> String {
    units::count(value.into())
}

/// How long the window was; `is_full`: and how long each other phase took, with several agents the
/// longest of each.
pub(super) fn phases(run: &Run, is_full: bool) -> Vec<String> {
    let length_ns = |from: fn(&RunEdges) -> Once, to: fn(&RunEdges) -> Once| {
        let agents = run.agents.iter().map(|agent| &agent.clock.edges);
        let lengths = agents.filter_map(|edges| {
            let edges = from(edges).get().zip(to(edges).get());
            edges.map(|(from, to)| after_ns(from, to))
        });
        lengths.max()
    };
    let window = units::duration(run.window_ns);
    let begun = units::date_time(run.first().clock.window_start_unix_ms);
    let warm_up_ns = length_ns(|edges| edges.warmup_start, |edges| edges.measure_start);
    let mut items = vec![match warm_up_ns.filter(|&ns| ns > 0 && !is_full) {
        Some(ns) => format!("{window} after {} warm-up", units::duration(ns)),
        None => format!("{window} measured"),
    }];
    items.extend(is_full.then(|| format!("began {begun}")));
    let set_up_ns = length_ns(|edges| edges.setup_start, |edges| edges.warmup_start);
    let drain_ns = length_ns(|edges| edges.measure_end, |edges| edges.drain_end);
    for (name, length) in [
        ("set-up", set_up_ns),
        ("warm-up", warm_up_ns),
        ("drain", drain_ns),
    ] {
        let length = length.filter(|_| is_full);
        items.extend(length.map(|ns| format!("{name} {}", units::duration(ns))));
    }
    items
}

/// What sets this run apart from what was asked for.
pub(super) fn notes(run: &Run, summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if run.interrupted() {
        let window = units::seconds(run.window_ns, 3);
        let measured = match (run.plan.load.stop.duration_ns, run.plan.load.stop.requests) {
            (Some(asked_ns), _) => format!("{window} of {}", units::seconds(asked_ns, 3)),
            (None, Some(asked)) => {
                let asked = counted(asked, run.unit().one, run.unit().many);
                format!("{} of {asked}", units::count(summary.population.issued))
            }
            (None, None) => window,
        };
        notes.push(format!("ended early: the figures describe {measured}"));
    }
    for (number, agent) in (1..).zip(&run.agents) {
        for note in agent_notes(agent) {
            notes.push(if run.is_plain() {
                note
            } else {
                format!("agent {number}: {note}")
            });
        }
    }
    // Kernel stamps of bytes that came before the request that they seem to answer.
    if summary.stamps_before_send > 0 && run.plan.connection.protocol.may_mistake_pushes() {
        notes.push("what the server sends unasked was taken for replies".to_owned());
    }
    notes.extend(unasked(run, summary));
    notes
}

/// Messages that came unasked, as a share of the replies, from which on a note says so.
const UNASKED_SHARE: f64 = 0.01;

/// A note where so many messages came unasked that replies may end elsewhere than where `--reply`
/// says. In Redis' protocol what is sent unasked says so.
fn unasked(run: &Run, summary: &Summary) -> Option<String> {
    let ProtocolSpec::Messages(MessageExchange { reply, .. }) = &run.plan.connection.protocol
    else {
        return None;
    };
    let (pushes, replies) = (summary.window.pushes, summary.window.replies.total());
    let is_few = (pushes as f64) <= UNASKED_SHARE * replies as f64;
    if pushes == 0 || is_few || *reply == Framing::Resp || !run.plan.awaits_replies() {
        return None;
    }
    let pushes = counted(pushes, "message", "messages");
    let replies = counted(replies, "reply", "replies");
    Some(format!(
        "{pushes} came unasked beside {replies}: does --reply {reply} end a reply too early? A \
         server that answers by several parts needs another framing, as --reply resp for Redis"
    ))
}

/// What an agent could not do as it was asked to.
fn agent_notes(agent: &AgentRecord) -> Vec<String> {
    let (backend, protocol) = (agent.backend, agent.negotiated.protocol);
    let backend_note = agent.backend_note.iter();
    let protocol_note = agent.negotiated.note.iter();
    backend_note
        .map(|reason| format!("{}: {reason}", backend.name()))
        .chain(protocol_note.map(|reason| format!("{}: {reason}", protocol.name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use brunt_load::Stage;

    use super::*;

    #[test]
    fn rates_are_those_asked_for() {
        // One rate, rates of the stages, and the words.
        type Case<'a> = (Option<f64>, &'a [(f64, f64)], &'a str);
        let cases: &[Case<'_>] = &[
            (Some(2_000.0), &[], "2,000 req/s"),
            (Some(0.25), &[], "0.250 req/s"),
            (None, &[(7.0, 7.0)], "7.00 req/s in 1 stage"),
            (
                None,
                &[(1_000.0, 5_000.0), (5_000.0, 5_000.0), (5_000.0, 0.0)],
                "0 to 5,000 req/s in 3 stages",
            ),
            (None, &[(20.0, 200.0)], "20.0 to 200 req/s in 1 stage"),
        ];
        for &(rate_per_s, stages, words) in cases {
            let stages = stages.iter().map(|&(from_per_s, to_per_s)| Stage {
                duration_ns: 1_000_000_000,
                from_per_s,
                to_per_s,
            });
            let process = ArrivalProcess::Constant;
            let schedule = match rate_per_s {
                Some(rate_per_s) => Schedule::constant_rate(process, rate_per_s, 1),
                None => Schedule::staged(process, stages.collect(), 1),
            };
            assert_eq!(rate(&schedule.expect(words), "req/s"), words);
        }
    }
}
