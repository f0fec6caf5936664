//! Random plans, with the servers, networks and faults that they meet.

use brunt_engine::RunError;
use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, MessageExchange, MessageSpec, OpeningMessage, Plan,
    ProtocolSpec, ReplyMatch, RequestOrder, RequestSet, Reuse, Schedule, Stage, Stamps, Stop,
    Streams, Target, TlsVersion, WebSocketExchange,
};
use brunt_proto::messages::{Framing as MessageFraming, Template};
use brunt_record::Run;
use brunt_server::Http2Options;
use brunt_testkit::{
    AfterMalformed, Costs, Framing, LateWakeUps, Limiter, Outage, ServiceTime, SimCounts,
    SimFaults, SimHost, SimMessages, SimReads, SimSettings, SimStreams, Stall, Taken,
};
use rand::Rng;
use rand_pcg::Pcg64;

use super::plan;
use super::random_generators::simulate_generated;
use crate::common::{MS, S, US, ask, change_request, many, many_long, simulate};

/// Paths of the reference server on which nothing fails.
const FAULTLESS: &[&str] = &[
    "/",
    "/bytes/100000",
    "/chunked/40k",
    "/delay/2ms",
    "/interim/3",
    "/limit/1000",
    "/locked/300us",
    "/stall/5ms/40ms",
    "/status/503",
];
/// Those on which something does.
const FAULTY: &[&str] = &[
    "/close",
    "/never",
    "/random-close/10",
    "/random-close/3",
    "/reset",
    "/truncate/1k",
];
/// Those that only HTTP/2 and HTTP/3 have.
const FAULTY_STREAMS: &[&str] = &[
    "/goaway",
    "/goaway/2",
    "/random-refuse/20",
    "/refuse",
    "/reset-stream",
    "/reset-stream/0",
    "/reset-stream/99",
];
/// What HTTP/2 allows, and what it does not.
const ODD_STREAMS: &[&str] = &[
    "/malformed/bad-hpack",
    "/malformed/garbage",
    "/malformed/idle-stream",
    "/malformed/no-status",
    "/malformed/no-streams",
    "/malformed/no-table",
    "/malformed/one-stream",
    "/malformed/pinged",
    "/malformed/short-body",
    "/malformed/short-length",
];

/// One random case.
pub(super) struct Case {
    pub(super) plan: Plan,
    pub(super) settings: SimSettings,
    /// Its requests are made while it goes on.
    pub(super) is_generated: bool,
}

/// A message of `bytes` bytes behind a byte, their number in three, and two bytes.
fn length_before(bytes: usize) -> Vec<u8> {
    let [low, middle, high, ..] = (bytes as u32).to_le_bytes();
    let head = [b'!', low, middle, high, b'!', b'!'];
    [&head[..], &vec![b'x'; bytes]].concat()
}

/// Random values; each unusual setting has a probability of one third.
struct Values(Pcg64);

impl Values {
    fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0.random_range(least..=most)
    }

    /// Mostly small: evenly spread over the orders of magnitude.
    fn length(&mut self, least_ns: u64, most_ns: u64) -> u64 {
        let (low, high) = ((least_ns as f64).ln(), (most_ns as f64).ln());
        self.0.random_range(low..=high).exp() as u64
    }

    fn sometimes(&mut self) -> bool {
        self.within(1, 3) == 1
    }

    fn fault(&mut self) -> f64 {
        if self.sometimes() {
            self.0.random_range(0.0..0.08)
        } else {
            0.0
        }
    }
}

impl Case {
    pub(super) fn of(seed: u64) -> Self {
        let mut values = Values(Pcg64::new(seed.into(), 1_000));
        let mut case = Self {
            plan: Self::plan(&mut values),
            settings: Self::settings(&mut values, seed),
            is_generated: false,
        };
        case.settings.interrupt_ns = (values.within(1, 10) == 1).then(|| {
            // Somewhere in the window, if that is long enough.
            let before_ns = 5 * case.settings.network_ns + 30 * MS + case.plan.load.warmup_ns;
            before_ns + values.length(MS, 100 * MS)
        });
        Self::limits(&mut values, &mut case.settings);
        case.plan.traffic.sends_again = Values(Pcg64::new(seed.into(), 1_008)).within(1, 3) > 1;
        case
    }

    /// This case over TLS.
    pub(super) fn over_tls(mut self) -> Self {
        self.plan.target = Target::parse("https://simulated/", None).expect("a URL");
        if self.plan.connection.protocol == HttpChoice::AUTO.into() {
            self.plan.connection.protocol = HttpChoice::HTTP1.into();
        }
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_002));
        self.plan.connection.tls.resumption = values.sometimes();
        if values.sometimes() {
            self.plan.connection.tls.version_max = TlsVersion::Tls12;
        }
        if self.settings.server.framing == Framing::UntilClose {
            // The simulated server ends TLS without an alert: such answers would all be truncated.
            self.settings.server.framing = Framing::Length;
        }
        Self::handshakes(values, &mut self.settings);
        self
    }

    /// This case over HTTP/2, for the reference server.
    pub(super) fn over_http2(mut self) -> Self {
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_001));
        self.plan.connection.protocol = HttpChoice::HTTP2.into();
        self.plan.traffic.pipeline = many(1);
        self.plan.traffic.streams = many(values.length(1, 100) as u32);
        self.plan.traffic.sends_again = values.sometimes();
        self
    }

    /// This case with messages in place of HTTP.
    pub(super) fn over_messages(mut self) -> Self {
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_003));
        let bytes = values.length(1, 100_000) as usize;
        let ended = |end: &[u8]| [&vec![b'x'; bytes], end].concat();
        let fixed = format!("fixed={bytes}");
        let (reply, answer) = match values.within(1, 8) {
            1..=3 => ("echo", None),
            4 => ("line", Some(ended(b"\n"))),
            5 => ("delim=.\\n.", Some(ended(b".\n."))),
            6 => (&*fixed, Some(ended(b""))),
            7 => ("len24le@1+2", Some(length_before(bytes))),
            _ if values.sometimes() => ("until-close", Some(ended(b""))),
            _ => (
                "marker=OK*2",
                Some([b"OK".as_slice(), &ended(b"OK")].concat()),
            ),
        };
        let ends_connection = reply == "until-close";
        if ends_connection {
            self.plan.traffic.reuse = Reuse::Requests(many_long(1));
            self.plan.traffic.pipeline = many(1);
        }
        // The simulated server ends TLS without an alert: such answers would all be truncated.
        let is_secure = values.sometimes() && !ends_connection;
        let target = Target::parse_tcp(Some("simulated:1"), is_secure, None);
        self.plan.target = target.expect("a server");
        let has_opening = values.sometimes() && !ends_connection;
        let server = &mut self.settings.server;
        if ends_connection {
            // What is cut cannot be told from what is whole.
            server.faults.truncated = 0.0;
        }
        if answer.is_some() {
            // What is pushed cannot be told from an answer to what is in flight.
            server.faults.extra_bytes = 0.0;
        }
        server.messages = Some(SimMessages {
            reply: answer,
            ends_connection,
            has_opening,
            ..SimMessages::default()
        });
        let reply: MessageFraming = reply.parse().expect("a framing");
        self.plan.connection.protocol = ProtocolSpec::Messages(MessageExchange {
            reply: reply.clone(),
            opening: has_opening.then(|| OpeningMessage {
                message: Template::parse("hello {conn} {now}\\n")
                    .expect("a message")
                    .into(),
                reply,
            }),
            seed: values.within(0, u64::MAX),
        });
        self.plan.traffic.requests = Self::messages(values, "\\n");
        Self::handshakes(values, &mut self.settings);
        self
    }

    /// This case with messages over WebSocket.
    pub(super) fn over_websocket(mut self) -> Self {
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_004));
        let scheme = if values.sometimes() { "wss" } else { "ws" };
        let paths = [
            "",
            "",
            "/bytes/40000",
            "/chunked/100000",
            "/close",
            "/delay/2ms",
            "/goaway/1001",
            "/goaway/4999",
            "/interim/1",
            "/locked/300us",
            "/malformed/close-without-code",
            "/malformed/nested-message",
            "/malformed/ping",
            "/never",
            "/random-close/10",
            "/random-close/3",
            "/reset",
            "/stall/5ms/40ms",
            "/truncate/1k",
        ];
        let path = paths[values.within(0, paths.len() as u64 - 1) as usize];
        let url = format!("{scheme}://simulated/websocket{path}");
        self.plan.target = Target::parse_websocket(&url, None).expect("a URL");
        let is_echo = matches!(
            path,
            "" | "/close" | "/delay/2ms" | "/interim/1" | "/stall/5ms/40ms"
        );
        let (matching, replies) = match values.within(1, 3) {
            1 if is_echo => (ReplyMatch::Echo, 1),
            2 if path == "/interim/1" => (ReplyMatch::Any, 2),
            // What is pushed cannot be told from an answer to what is in flight.
            _ if path == "/interim/1" => (ReplyMatch::Echo, 1),
            _ => (ReplyMatch::Any, 1),
        };
        self.plan.connection.protocol = ProtocolSpec::WebSocket(WebSocketExchange {
            headers: Vec::new().into(),
            subprotocols: vec!["chat".to_owned(); values.within(0, 1) as usize],
            is_binary: values.sometimes(),
            replies,
            matching,
            opening: None,
            ping_interval_ns: values.sometimes().then(|| values.length(MS, 50 * MS)),
            seed: values.within(0, u64::MAX),
        });
        self.plan.traffic.requests = Self::messages(values, "");
        // A slow server would be pinged for minutes.
        let count = self.plan.load.stop.requests;
        self.plan.load.stop.requests = count.map(|count| count.min(300));
        self
    }

    /// Up to three messages that end in `end`.
    fn messages(values: &mut Values, end: &str) -> RequestSet {
        let long = "m".repeat(values.length(1, 100_000) as usize);
        let texts = ["ping", "{conn} {seq} {rand:9}", &long];
        let messages = texts[..values.within(1, 3) as usize].iter();
        let messages = messages.map(|text| MessageSpec {
            name: text.chars().take(20).collect(),
            template: Template::parse(&format!("{text}{end}")).expect("a message"),
        });
        let set = RequestSet::messages_in(RequestOrder::Turns, messages.collect());
        set.expect("messages")
    }

    /// This case with connections that are only kept open.
    pub(super) fn held(mut self) -> Self {
        let plan = &mut self.plan;
        plan.load.model = LoadModel::Held {
            connect_per_s: plan.load.model.connect_per_s(),
        };
        plan.traffic.reuse = Reuse::Unlimited;
        plan.traffic.think_time_ns = 0;
        if let ProtocolSpec::Messages(exchange) = &mut plan.connection.protocol {
            exchange.reply = MessageFraming::None;
            plan.traffic.requests = RequestSet::nothing();
        }
        let duration_ns = plan.load.stop.duration_ns.or(Some(100 * MS));
        plan.load.stop = Stop {
            duration_ns,
            requests: None,
        };
        self
    }

    /// The network and the server of this case with streams, in one direction or both.
    pub(super) fn of_streams(mut self) -> Self {
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_005));
        let (sends, receives) = match values.within(1, 3) {
            1 => (true, false),
            2 => (false, true),
            _ => (true, true),
        };
        let plan = &mut self.plan;
        let target = Target::parse_tcp(Some("simulated:1"), false, None);
        plan.target = target.expect("a server");
        plan.connection.protocol = ProtocolSpec::Streams(Streams {
            sends,
            receives,
            paced_bits_per_s: None,
            is_arranged: false,
        });
        let connections = values.within(1, 6);
        plan.load.connections = many(connections as u32);
        plan.workers.count = many(values.within(1, connections.min(3)) as u32);
        plan.load.model = LoadModel::Closed {
            connect_per_s: None,
        };
        plan.traffic.pipeline = many(1);
        plan.traffic.reuse = Reuse::Unlimited;
        plan.traffic.think_time_ns = 0;
        plan.load.stop = Stop {
            duration_ns: Some(values.length(10 * MS, 100 * MS)),
            requests: None,
        };
        let rate = |values: &mut Values| many_long(values.length(100_000, 300_000_000));
        self.settings.server.streams = Some(SimStreams {
            reads: match values.within(1, 5) {
                1 => SimReads::Nothing,
                2 | 3 => SimReads::PerSecond(rate(values)),
                _ => SimReads::AsItComes,
            },
            stops_after: values.sometimes().then(|| values.length(1, 10_000_000)),
            closes_after: values
                .sometimes()
                .then(|| many_long(values.length(1_000, 10_000_000))),
            sends_per_s: (receives || values.sometimes()).then(|| rate(values)),
            buffer_bytes: many_long(values.length(2_000, 1_000_000)),
            loss: values.fault(),
        });
        // Fewer round trips are to be simulated.
        self.settings.network_ns = self.settings.network_ns.max(50 * US);
        self
    }

    /// This case with the reference server, asked for up to three of its paths.
    pub(super) fn of_reference(mut self, is_secure: bool) -> Self {
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_006));
        let protocol = self.plan.connection.protocol.clone();
        let has_streams = [HttpChoice::HTTP2, HttpChoice::HTTP3].map(ProtocolSpec::from);
        let mut paths = [FAULTLESS, FAULTY].concat();
        if has_streams.contains(&protocol) {
            paths.extend(FAULTY_STREAMS);
        }
        if protocol == HttpChoice::HTTP2.into() {
            paths.extend(ODD_STREAMS);
        }
        let asked: Vec<_> = (0..values.within(1, 3))
            .map(|_| {
                let path = paths[values.within(0, paths.len() as u64 - 1) as usize];
                (path, values.length(1, 100) as u32)
            })
            .collect();
        let scheme = if is_secure { "https" } else { "http" };
        if is_secure && self.plan.connection.protocol == HttpChoice::AUTO.into() {
            self.plan.connection.protocol = HttpChoice::HTTP1.into();
        }
        let target = Target::parse(&format!("{scheme}://simulated{}", asked[0].0), None);
        self.plan.target = target.expect("a URL");
        ask(&mut self.plan, &asked);
        self.settings.reference = Some(Http2Options {
            streams_max: many(values.length(1, 1_000) as u32),
            requests_max: values.sometimes().then(|| many_long(values.length(1, 100))),
            window_bytes: values.length(1_000, 1_000_000) as u32,
        });
        self
    }

    /// Whether only time fails a request of the reference server's.
    pub(super) fn is_faultless(&self) -> bool {
        let is_http = self.plan.traffic.requests.first().is_some();
        let requests = self.plan.traffic.requests.requests();
        let mut paths = requests.map(|request| request.to_spec().path);
        let is_known = paths.all(|path| FAULTLESS.contains(&&*path));
        let ends = self.settings.reference.and_then(|http2| http2.requests_max);
        let server = &self.settings.server;
        let has_faults = server.faults != SimFaults::default() || server.outage.is_some();
        is_http && is_known && ends.is_none() && !has_faults
    }

    /// This case over HTTP/3, to the reference server behind a network of datagrams with random
    /// faults.
    pub(super) fn over_http3(mut self) -> Self {
        let values = &mut Values(Pcg64::new(self.settings.seed.into(), 1_007));
        self.plan.connection.protocol = HttpChoice::HTTP3.into();
        self.plan.traffic.pipeline = many(1);
        self.plan.traffic.streams = many(values.length(1, 100) as u32);
        let network = &mut self.settings.datagrams;
        network.lost = values.fault();
        network.repeated = values.fault();
        network.held_back = values.fault();
        network.marked = values.fault();
        network.held_back_ns = values.length(US, 10 * MS);
        if values.sometimes() {
            // About what a client sends at once.
            network.socket_bytes_max = values.length(2_000, 200_000) as u32;
        }
        self.of_reference(true)
    }

    /// This case with requests that a generator makes.
    pub(super) fn generated(mut self) -> Self {
        self.is_generated = true;
        self
    }

    fn handshakes(values: &mut Values, settings: &mut SimSettings) {
        if values.within(1, 6) == 1 {
            settings.server.faults.handshake_cut = values.fault();
            settings.server.faults.handshake_silent = values.fault();
        }
    }

    pub(super) fn run(&self) -> Result<(Run, SimCounts), RunError> {
        let (run, counts, _) = self.run_with_problems()?;
        Ok((run, counts))
    }

    /// Runs the case. Also gives what is wrong beside what the run itself says.
    pub(super) fn run_with_problems(&self) -> Result<(Run, SimCounts, Vec<String>), RunError> {
        if self.is_generated {
            return simulate_generated(&self.plan, &self.settings);
        }
        let (run, counts) = simulate(self.plan.clone(), &self.settings)?;
        Ok((run, counts, Vec::new()))
    }

    fn plan(values: &mut Values) -> Plan {
        let mut plan = plan();
        let connections = values.within(1, 20);
        plan.load.connections = many(connections as u32);
        plan.workers.count = many(values.within(1, connections.min(4)) as u32);
        if values.sometimes() {
            plan.traffic.pipeline = many(values.within(1, 8) as u32);
        }
        if values.sometimes() {
            plan.traffic.reuse = Reuse::Requests(many_long(values.length(1, 50)));
        }
        plan.load.model = Self::model(values, connections as u32);
        if !matches!(plan.load.model, LoadModel::Open { .. }) && values.sometimes() {
            plan.traffic.think_time_ns = values.length(10 * US, 50 * MS);
        }
        plan.observation.stamps = match values.within(1, 4) {
            1 => Stamps::Off,
            2 => Stamps::Sampled,
            _ => Stamps::Full,
        };
        plan.load.stop = Stop {
            duration_ns: Some(values.length(10 * MS, 200 * MS)),
            requests: None,
        };
        if values.sometimes() {
            plan.load.stop.requests = Some(values.length(1, 3_000));
            let has_stages = plan.load.model.schedule().is_some_and(|schedule| {
                // They may be over before anything was measured.
                schedule.duration_ns().is_some()
            });
            if values.sometimes() && !has_stages {
                plan.load.stop.duration_ns = None;
            }
        }
        plan.load.warmup_ns = values.within(0, 2) * values.length(MS, 50 * MS);
        plan.limits.timeout_ns = values.length(5 * MS, S);
        plan.limits.connect_timeout_ns = values.length(5 * MS, 200 * MS);
        plan.load.drain_limit_ns = values.within(0, 1) * values.length(MS, 500 * MS);
        match values.within(1, 6) {
            1 => change_request(&mut plan, |request| request.method = "HEAD".to_owned()),
            2 => {
                change_request(&mut plan, |request| request.method = "POST".to_owned());
                change_request(&mut plan, |request| {
                    request.body = vec![b'b'; values.length(1, 200_000) as usize]
                });
            }
            _ => {}
        }
        plan
    }

    fn model(values: &mut Values, connections: u32) -> LoadModel {
        match values.within(1, 3) {
            1 => LoadModel::Closed {
                connect_per_s: values
                    .sometimes()
                    .then(|| values.length(50, 100_000) as f64),
            },
            2 => LoadModel::Open {
                schedule: Self::schedule(values, 20_000),
                connections_max: many(connections + values.within(0, 20) as u32),
                queue_max: many(values.length(1, 100_000) as u32),
            },
            _ => LoadModel::Sessions {
                schedule: Self::schedule(values, 5_000),
                queue_max: many(values.length(1, 100_000) as u32),
            },
        }
    }

    /// A schedule with at most `most_per_s` arrivals per second.
    fn schedule(values: &mut Values, most_per_s: u64) -> Schedule {
        let process = ArrivalProcess::ALL[values.within(0, 2) as usize];
        let seed = values.within(0, u64::MAX);
        let rate_per_s = |values: &mut Values| values.length(10, 10 * most_per_s) as f64 / 10.0;
        if values.sometimes() {
            let stage = |values: &mut Values| Stage {
                duration_ns: values.length(MS, 200 * MS),
                from_per_s: values.within(0, 1) as f64 * rate_per_s(values),
                to_per_s: rate_per_s(values),
            };
            let stages = (0..values.within(1, 4)).map(|_| stage(values)).collect();
            return Schedule::staged(process, stages, seed).expect("stages");
        }
        Schedule::constant_rate(process, rate_per_s(values), seed).expect("a rate")
    }

    fn settings(values: &mut Values, seed: u64) -> SimSettings {
        let mut settings = SimSettings::new(seed);
        settings.network_ns = values.length(US, 2 * MS);
        if values.sometimes() {
            settings.costs = Costs::NONE;
        }
        settings.send_buffer_bytes = many(values.length(1_000, 100_000) as u32);
        settings.late_wake_ups = values.sometimes().then(|| LateWakeUps {
            probability: 0.05,
            delay_ns: values.length(10 * US, 20 * MS),
        });
        let server = &mut settings.server;
        let service_ns = values.length(20 * US, 20 * MS);
        server.service = Self::service(values, service_ns);
        server.concurrency = values.sometimes().then(|| many(values.within(1, 4) as u32));
        server.stall = values.sometimes().then(|| {
            let period_ns = values.length(MS, 100 * MS);
            Stall {
                silence_ns: period_ns / values.within(2, 10),
                period_ns: many_long(period_ns),
            }
        });
        server.close_after = values.sometimes().then(|| many_long(values.length(1, 100)));
        server.announces_close = values.within(0, 1) == 1;
        server.honours_close = !values.sometimes();
        server.outage = (values.within(1, 10) == 1).then(|| {
            let from_ns = values.length(MS, 100 * MS);
            Outage {
                from_ns,
                until_ns: from_ns + values.length(MS, 100 * MS),
            }
        });
        server.body_bytes = values.within(0, 1) as u32 * values.length(1, 150_000) as u32;
        server.framing = match values.within(1, 6) {
            1 => Framing::Chunked,
            2 => Framing::UntilClose,
            _ => Framing::Length,
        };
        server.interim = if values.sometimes() { 2 } else { 0 };
        if values.sometimes() {
            server.pieces_max = many(values.within(2, 6) as u32);
            server.piece_gap_ns = values.within(0, 300 * US);
        }
        if values.sometimes() {
            server.faults = SimFaults {
                no_socket: values.fault(),
                connect_refused: values.fault(),
                connect_unanswered: values.fault(),
                silent: values.fault(),
                reset: values.fault(),
                closed: values.fault(),
                truncated: values.fault(),
                malformed: values.fault(),
                extra_bytes: values.fault(),
                error_status: values.fault(),
                ..SimFaults::default()
            };
            server.after_malformed = match values.within(1, 3) {
                1 => AfterMalformed::Close,
                2 => AfterMalformed::Continue,
                _ => AfterMalformed::FallSilent,
            };
        }
        settings
    }

    /// What may limit client or server besides.
    fn limits(values: &mut Values, settings: &mut SimSettings) {
        let taken = |values: &mut Values| {
            values.sometimes().then(|| {
                let period_ns = values.length(100 * US, 50 * MS);
                Taken {
                    part_ns: period_ns / values.within(2, 20),
                    period_ns: many_long(period_ns),
                }
            })
        };
        settings.host = values.sometimes().then(|| SimHost {
            steal: taken(values),
            contention: taken(values),
            bursts: None,
        });
        let server = &mut settings.server;
        server.delay_ns =
            values.within(0, 1) * values.within(0, 1) * values.length(10 * US, 10 * MS);
        server.limiter = (values.within(1, 6) == 1).then(|| Limiter {
            every_ns: many_long(values.length(100 * US, 10 * MS)),
            burst: many(values.length(1, 100) as u32),
            refusal_ns: values.length(100 * US, MS),
        });
        if values.within(1, 6) == 1 {
            server.drift_per_s = 0.3;
        }
    }

    /// Service times of about this length.
    fn service(values: &mut Values, ns: u64) -> ServiceTime {
        match values.within(1, 6) {
            1 => ServiceTime::Constant(ns),
            2 => ServiceTime::Uniform {
                min_ns: ns / 2,
                max_ns: ns * 2,
            },
            3 => ServiceTime::Bimodal {
                usual_ns: ns,
                rare_ns: values.length(ns, 100 * ns),
                rare: 0.05,
            },
            4 => ServiceTime::Pareto {
                min_ns: ns / 2,
                max_ns: 1_000 * ns,
                shape: 1.2,
            },
            _ => ServiceTime::Exponential { mean_ns: ns },
        }
    }
}
