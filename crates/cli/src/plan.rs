//! From what was typed to a plan, in one pass. What contradicts itself is said here, before
//! anything is opened.

use std::num::{NonZeroU32, NonZeroU64};

use anyhow::{Context, Result, anyhow, bail};
use brunt_io::cpu::usable_cpus;
use brunt_load::{
    ClientIdentity, ConnectionSpec, HttpChoice, Load, LoadModel, MessageExchange, MessageSpec,
    Observation, OpeningMessage, Placement, Plan, ProtocolSpec, RequestOrder, RequestSet,
    RequestSpec, Reuse, Schedule, Scheme, ServerCounter, SocketOptions, Stamps, Stop, Streams,
    Target, TimeLimits, TlsSpec, Traffic, WebSocketExchange, WebSocketOpening, Workers,
    message_name,
};
use brunt_proto::messages::{Framing, Template};

use crate::args::{
    AnyLoadArguments, FramingArguments, LoadArguments, MessageArguments, ProtocolArguments,
    WebSocketArguments,
};
use crate::commands::{Arguments, StreamArguments, TcpArguments};
use crate::habits;
use crate::refusals::{self, Given};
use crate::request::{BODY_BYTES_MAX, listed, request};
use crate::values::Source;

/// Most connections at once, where connections are planned: their number follows from the rate
/// and the server, and the limit is for when the server is overloaded.
const SESSIONS_DEFAULT: NonZeroU32 = NonZeroU32::new(10_000).unwrap();

/// What is asked of brunt's own server. Without work of its own it takes as long for a request as
/// brunt does, and it would be a toss-up which of the two is the limit.
const OWN_PATH: &str = "/compute/10us";

/// Characters of a message that name it.
const NAME_LENGTH_MAX: usize = 60;

/// What was typed of a load. What is spoken follows from its URL.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'a> {
    pub(crate) load: &'a LoadArguments,
    pub(crate) messages: &'a MessageArguments,
    /// Absent for `brunt tcp`.
    pub(crate) websocket: Option<&'a WebSocketArguments>,
    /// Absent for a run that is no command.
    pub(crate) framing: Option<&'a FramingArguments>,
    pub(crate) given: &'a Given,
}

impl Arguments {
    pub(crate) fn typed<'a>(&'a self, given: &'a Given) -> Typed<'a> {
        Typed {
            load: &self.load,
            messages: &self.websocket.list,
            websocket: Some(&self.websocket),
            framing: None,
            given,
        }
    }
}

impl AnyLoadArguments {
    pub(crate) fn typed<'a>(&'a self, given: &'a Given) -> Typed<'a> {
        Typed {
            load: &self.load,
            messages: &self.websocket.list,
            websocket: Some(&self.websocket),
            framing: Some(&self.framing),
            given,
        }
    }
}

impl Typed<'_> {
    /// The plan of a load on the server of `url`. Without a URL the server is that of a list, or
    /// brunt's own, whose address is not known yet.
    pub(crate) fn plan(self, url: Option<&str>) -> Result<Plan> {
        let scheme = url.and_then(|url| url.split_once("://"));
        let scheme = scheme.map(|(scheme, _)| scheme.to_ascii_lowercase());
        match (scheme.as_deref(), url) {
            (Some("ws" | "wss"), Some(url)) if let Some(typed) = self.websocket => {
                self.over_websocket(typed, url)
            }
            (Some("tcp" | "tls"), _) if let Some(framing) = self.framing => {
                self.given.refuse(&[
                    refusals::NOT_WEBSOCKET,
                    refusals::PIPELINE,
                    refusals::MESSAGES,
                    refusals::TCP,
                ])?;
                let target = Target::parse_tcp(url, false, self.load.unix_socket.clone())?;
                let mut plan = self.over_tcp(framing, target)?;
                if let Some(websocket) = self.websocket {
                    plan.traffic.pipeline = websocket.depth;
                }
                Ok(plan)
            }
            (Some("tcp" | "tls"), _) => bail!(
                "messages over TCP are sent by brunt tcp: brunt tcp -m MESSAGE --reply FRAMING \
                 HOST:PORT, or brunt tcp --hold, --connect-only, --send or --receive"
            ),
            _ => self.over_http(url),
        }
    }

    fn over_http(self, url: Option<&str>) -> Result<Plan> {
        let load = self.load;
        let of_messages = match self.framing {
            Some(_) => refusals::HTTP,
            None => refusals::RUN_OF_HTTP,
        };
        self.given.refuse(&[refusals::NOT_TCP, of_messages])?;
        let socket = || load.unix_socket.clone();
        let target = match url {
            Some(url) if load.is_generated() => Target::parse(url, socket())?,
            Some(url) => Target::parse_to_fill_in(url, socket())?,
            None if load.protocol.http3 => own_target("https", "127.0.0.1")?,
            None => own_target("http", "127.0.0.1")?,
        };
        let (target, requests) = listed(load, url.is_some(), target)?;
        if load.seq_from.is_some() && !requests.counts_numbers() {
            bail!("--seq-from is about {{{{seq}}}}, and no request has it; leave it out");
        }
        plan(load, target, requests)
    }

    fn over_websocket(self, typed: &WebSocketArguments, url: &str) -> Result<Plan> {
        let load = self.load;
        let refused = [refusals::NOT_TCP, refusals::MESSAGES, refusals::PIPELINE];
        self.given.refuse(&refused)?;
        let target = Target::parse_websocket(url, load.unix_socket.clone())?;
        let messages = self.message_set("--message", "hello")?;
        let mut opening = request(load)?;
        opening.fill_in_nothing()?;
        let first = self.first_message()?;
        let mut plan = plan(load, target, messages)?;
        plan.traffic.pipeline = typed.depth;
        plan.connection.protocol = ProtocolSpec::WebSocket(WebSocketExchange {
            headers: opening.headers.into(),
            subprotocols: typed.subprotocols.clone(),
            is_binary: typed.binary,
            replies: typed.replies,
            matching: typed.reply_match.clone(),
            opening: first.map(|message| WebSocketOpening {
                message: message.into(),
                replies: typed.replies,
            }),
            ping_interval_ns: typed.ping,
            seed: plan.traffic.think_seed,
        });
        Ok(plan)
    }

    /// Messages over TCP.
    fn over_tcp(self, framing: &FramingArguments, target: Target) -> Result<Plan> {
        let first = self.first_message()?;
        let reply = match (self.load.hold, &first) {
            _ if let Some(reply) = &framing.reply => reply.clone(),
            (true, None) => Framing::None,
            (true, Some(_)) if let Some(reply) = &framing.first_reply => reply.clone(),
            _ => bail!(
                "--reply says where the reply to a message ends, such as line, fixed=64, echo, or \
                 none where nothing comes back; see brunt tcp --help"
            ),
        };
        let opening = first.map(|message| OpeningMessage {
            message: message.into(),
            reply: match &framing.first_reply {
                Some(reply) => reply.clone(),
                None if reply == Framing::UntilClose => Framing::None,
                None => reply.clone(),
            },
        });
        let option = if self.websocket.is_some() {
            "--message"
        } else {
            "-m"
        };
        // A message has the end that its framing wants.
        let messages = self.message_set(option, "PING\\r\\n")?;
        let mut plan = plan(self.load, target, messages)?;
        plan.connection.protocol = ProtocolSpec::Messages(MessageExchange {
            reply,
            opening,
            seed: plan.traffic.think_seed,
        });
        Ok(plan)
    }

    /// The message that each connection sends once, before all others.
    fn first_message(self) -> Result<Option<Template>> {
        let first = self.messages.first.as_ref();
        let first = first.map(|source| template(source, "--first", self.load.output.redact));
        first.transpose()
    }

    /// The messages that `option` gave; `example` is one.
    fn message_set(self, option: &str, example: &str) -> Result<RequestSet> {
        let sources = &self.messages.messages;
        if self.load.hold {
            if !sources.is_empty() {
                bail!("--hold sends no messages but that of --first; leave out {option}");
            }
            return Ok(RequestSet::nothing());
        }
        if sources.is_empty() {
            bail!("there is no message; give one with {option}, as in {option} '{example}'");
        }
        let readers = sources.iter().chain(&self.messages.first);
        if readers
            .filter(|source| **source == Source::StandardInput)
            .count()
            > 1
        {
            bail!("only one message can be read from standard input; give the others as @FILE");
        }
        let redacts = self.load.output.redact;
        let message = |(number, source): (usize, &Source)| {
            Ok(MessageSpec {
                template: template(source, option, redacts)?,
                name: match source {
                    _ if redacts => message_name(number),
                    Source::Typed(text) => short(text),
                    Source::File(path) => format!("@{}", path.display()),
                    Source::StandardInput => "@-".to_owned(),
                    Source::Variable(name) => format!("@env:{name}"),
                },
            })
        };
        let messages = (1..).zip(sources).map(message).collect::<Result<_>>()?;
        RequestSet::messages_in(self.load.request_order(), messages).with_context(|| {
            let most = RequestSet::REQUESTS_MAX;
            format!("there are more than {most} messages; leave some out")
        })
    }
}

/// What is sent for one of them. With `--redact` no error shows it.
fn template(source: &Source, option: &str, redacts: bool) -> Result<Template> {
    match source {
        Source::Typed(text) if redacts => Template::parse(text).map_err(|_| {
            anyhow!("{option}: the message is malformed; run it without --redact to read how")
        }),
        Source::Typed(text) => Template::parse(text).with_context(|| format!("{option} '{text}'")),
        other => Ok(Template::constant(
            other.read("the message", BODY_BYTES_MAX)?,
        )),
    }
}

/// The beginning of a long name.
fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_LENGTH_MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// The plan of `brunt tcp`: messages, one-way streams, or connections alone.
pub(crate) fn of_tcp(arguments: &TcpArguments, given: &Given) -> Result<Plan> {
    let TcpArguments {
        exchange,
        streams: typed,
        load,
    } = arguments;
    given.refuse(&[refusals::MESSAGES, refusals::TCP])?;
    let url = habits::only_url(load)?;
    let target = Target::parse_tcp(url, false, load.unix_socket.clone())?;
    let mut plan = if let Some(streams) = streams(typed)? {
        given.refuse(&[refusals::STREAMS])?;
        if target.scheme.is_secure() {
            bail!(
                "bandwidth is measured in clear text, since of TLS the kernel counts records and \
                 not what is in them; leave out tls://"
            );
        }
        let request = RequestSpec::get(&target.path);
        let mut plan = plan(load, target, RequestSet::one(request))?;
        plan.load.connections = load.connections.unwrap_or(NonZeroU32::MIN);
        set_workers(&mut plan, load, default_workers);
        plan.connection.protocol = ProtocolSpec::Streams(streams);
        plan
    } else if exchange.connect_only {
        let mut plan = plan(load, target, RequestSet::nothing())?;
        plan.traffic.reuse = Reuse::Requests(NonZeroU64::MIN);
        plan.connection.protocol = ProtocolSpec::Connections;
        // Where nothing is received, there is nothing to be stamped.
        plan.observation.stamps = Stamps::Off;
        plan
    } else {
        let typed = Typed {
            load,
            messages: &exchange.list,
            websocket: None,
            framing: Some(&exchange.framing),
            given,
        };
        typed.over_tcp(&exchange.framing, target)?
    };
    plan.connection.sockets = SocketOptions {
        is_nodelay: typed.nodelay,
        send_buffer_bytes: typed.sndbuf,
        receive_buffer_bytes: typed.rcvbuf,
        segment_bytes: typed.mss,
        congestion: typed.congestion.clone(),
        ..SocketOptions::default()
    };
    Ok(plan)
}

/// The streams asked for; absent where connections carry messages.
fn streams(typed: &StreamArguments) -> Result<Option<Streams>> {
    let streams = Streams {
        sends: typed.send || typed.both,
        receives: typed.receive || typed.both,
        paced_bits_per_s: typed.bandwidth.and_then(NonZeroU64::new),
        is_arranged: false,
    };
    if streams.sends || streams.receives {
        return Ok(Some(streams));
    }
    if typed.bandwidth.is_some() {
        bail!("--bandwidth is a limit of what is sent: with --send or --both");
    }
    Ok(None)
}

/// brunt's own server at `address`.
pub(crate) fn own_target(scheme: &str, address: &str) -> Result<Target> {
    Ok(Target::parse(
        &format!("{scheme}://{address}{OWN_PATH}"),
        None,
    )?)
}

/// The plan of a load on `target`, over HTTP unless that speaks something else.
fn plan(arguments: &LoadArguments, target: Target, requests: RequestSet) -> Result<Plan> {
    check_protocol(arguments, &target)?;
    let reuse = if arguments.no_keepalive {
        Reuse::Requests(NonZeroU64::MIN)
    } else {
        let requests = arguments.requests_per_connection;
        requests.map_or(Reuse::Unlimited, Reuse::Requests)
    };
    // Arrivals and think times share it, so that one number repeats a run.
    let seed = arguments.seed();
    let think_time = arguments.think_time.unwrap_or_default();
    let (model, connections) = model(arguments, reuse, seed)?;
    let count = arguments.requests.map(NonZeroU64::get);
    let default = |ns| count.is_none().then_some(ns);
    let stages_ns = model.schedule().and_then(Schedule::duration_ns);
    let duration_ns = arguments.duration.or(stages_ns);
    let warmup_ns = default(Plan::WARMUP_NS_DEFAULT).filter(|_| !arguments.hold);
    // Reports and messages show no more of a target than this.
    let shown = |target: Target| {
        if arguments.output.redact {
            target.redacted()
        } else {
            target
        }
    };
    let counter = arguments.verify_url.clone();
    let usual = Plan::new(shown(target), requests);
    let mut plan = Plan {
        load: Load {
            model,
            connections,
            warmup_ns: arguments.warmup.or(warmup_ns).unwrap_or(0),
            stop: Stop {
                duration_ns: duration_ns.or(default(Plan::DURATION_NS_DEFAULT)),
                requests: count,
            },
            drain_limit_ns: arguments.drain.unwrap_or(arguments.timeout),
            ..usual.load
        },
        traffic: Traffic {
            pipeline: arguments.pipeline,
            streams: arguments.protocol.streams.unwrap_or(NonZeroU32::MIN),
            reuse,
            think_time_ns: think_time.mean_ns,
            think_spread: think_time.spread,
            think_seed: seed,
            sequence_offset: arguments.seq_from.map_or(0, |first| first.get() - 1),
            ..usual.traffic
        },
        connection: ConnectionSpec {
            protocol: http(arguments).into(),
            tls: tls_spec(&arguments.protocol)?,
            source_addresses: arguments.source_addresses.clone(),
            ..usual.connection
        },
        limits: TimeLimits {
            timeout_ns: arguments.timeout,
            connect_timeout_ns: arguments.connect_timeout,
            ..usual.limits
        },
        workers: Workers {
            placement: match arguments.threads {
                Some(_) => Placement::Given,
                None => Placement::Auto,
            },
            backend: arguments.backend,
            spin: arguments.spin,
            oversubscribe: arguments.oversubscribe,
            ..usual.workers
        },
        observation: Observation {
            observe: !arguments.no_evidence,
            stamps: arguments.stamps,
            watch: arguments.watch.clone(),
            server_counter: counter.map(|counter| ServerCounter {
                target: shown(counter.target),
                path: counter.path,
            }),
            link_bits_per_s: arguments.link_speed,
            keeps_errors: arguments.show_errors,
            ..usual.observation
        },
        ..usual
    };
    set_workers(&mut plan, arguments, default_workers);
    Ok(plan)
}

/// Workers of a load of this model, where no number of them is typed.
pub(crate) fn default_workers(model: &LoadModel) -> NonZeroU32 {
    model.default_workers(usable_cpus())
}

/// Has the plan as many workers as were typed, or as its model is to have: then at most one per
/// connection.
pub(crate) fn set_workers(
    plan: &mut Plan,
    arguments: &LoadArguments,
    workers: impl FnOnce(&LoadModel) -> NonZeroU32,
) {
    let default = || workers(&plan.load.model).min(plan.load.connections);
    plan.workers.count = arguments.threads.unwrap_or_else(default);
}

/// Refuses a seed where nothing of a run is random; `draws` says whether anything of its requests
/// is. An experiment has a use of its own for a seed.
pub(crate) fn refuse_useless_seed(arguments: &LoadArguments, draws: bool) -> Result<()> {
    let is_used = draws
        || matches!(arguments.order, RequestOrder::Random { .. })
        || arguments.rate.is_some()
        || arguments.stages.is_some()
        || arguments.connection_rate.is_some()
        || arguments.think_time.is_some();
    if arguments.seed.is_some() && !is_used {
        bail!(
            "--seed is about what is random, and nothing of this load is; leave it out, or give a \
             rate, --think-time, a list with --order random, or numbers to be filled in (see \
             docs/lists.md)"
        );
    }
    Ok(())
}

/// The load model, and the connections that go with it.
fn model(arguments: &LoadArguments, reuse: Reuse, seed: u64) -> Result<(LoadModel, NonZeroU32)> {
    let process = arguments.arrivals.unwrap_or_default();
    let queue_max = Plan::QUEUE_DEFAULT;
    let connect_per_s = arguments.connection_rate;
    let is_bounded = reuse != Reuse::Unlimited || arguments.sessions.is_some();
    let planned_per_s = connect_per_s.filter(|_| is_bounded);
    let default = match planned_per_s {
        Some(_) => SESSIONS_DEFAULT,
        None => Plan::CONNECTIONS_DEFAULT,
    };
    let connections = arguments.connections.unwrap_or(default);
    if arguments.hold {
        return Ok((LoadModel::Held { connect_per_s }, connections));
    }
    let schedule = match (arguments.rate, &arguments.stages) {
        (Some(per_s), _) => Some(Schedule::constant_rate(process, per_s, seed)?),
        (None, Some(stages)) => Some(Schedule::staged(process, stages.clone(), seed)?),
        (None, None) => None,
    };
    if let Some(schedule) = schedule {
        let connections_max = arguments.max_connections.unwrap_or(connections);
        if connections_max < connections {
            bail!(
                "--max-connections {connections_max} is under the {connections} connections that \
                 are held from the start; raise it, or lower -c"
            );
        }
        let model = LoadModel::Open {
            schedule,
            connections_max,
            queue_max,
        };
        return Ok((model, connections));
    }
    if arguments.max_connections.is_some() {
        bail!(
            "--max-connections goes with --rate or --stages; else -c is the most connections at \
             once"
        );
    }
    if let Some(per_s) = planned_per_s {
        let model = LoadModel::Sessions {
            schedule: Schedule::constant_rate(process, per_s, seed)?,
            queue_max,
        };
        return Ok((model, connections));
    }
    if arguments.arrivals.is_some() {
        bail!(
            "--arrivals is about planned arrivals; give --rate or --stages for requests, or \
             --connection-rate with --requests-per-connection or --sessions for connections"
        );
    }
    Ok((LoadModel::Closed { connect_per_s }, connections))
}

/// What goes with one version of HTTP only needs that version: over TLS it is the server that
/// chooses. TLS options need something that is reached over TLS, and none may make another one
/// idle. Where no certificate is looked at, any is taken: `--insecure` is always good.
fn check_protocol(arguments: &LoadArguments, target: &Target) -> Result<()> {
    let typed = &arguments.protocol;
    let scheme = target.scheme;
    let is_own = !scheme.is_of_messages() && !arguments.has_server();
    let name = if is_own {
        "the built-in server"
    } else {
        &target.url
    };
    if typed.http3 && !scheme.is_secure() {
        bail!(
            "--http3 is over TLS alone, and {name} is spoken to in clear text; give an https URL"
        );
    }
    if typed.streams.is_some() && scheme == Scheme::Http && !typed.http2 {
        bail!(
            "--streams is about HTTP/2, and {name} is spoken to in HTTP/1.1; add --http2, or use \
             --pipeline"
        );
    }
    // What is read beside the load may be read over TLS, whatever the load is.
    let counter = arguments.verify_url.as_ref();
    let has_no_use = !counter.is_some_and(|counter| counter.target.scheme.is_secure());
    let idle = [
        ("--sni", typed.sni.is_some()),
        ("--cacert", typed.cacert.is_some() && has_no_use),
        ("--cert", typed.cert.is_some() && has_no_use),
        ("--tls-min", typed.tls_min.is_some() && has_no_use),
        ("--tls-max", typed.tls_max.is_some() && has_no_use),
        ("--tls-resume", typed.tls_resume),
    ];
    let idle = idle.iter().find(|(_, is_idle)| *is_idle);
    if let Some((option, _)) = idle.filter(|_| !scheme.is_secure()) {
        let remedy = if is_own {
            "give the https URL of a server"
        } else if scheme.is_of_messages() {
            "begin the server with tls://"
        } else {
            "give an https URL"
        };
        bail!(
            "{option} is about TLS, and {name} is spoken to in clear text; {remedy}, or leave \
             {option} out"
        );
    }
    if typed.insecure && typed.cacert.is_some() {
        bail!(
            "--insecure takes any certificate, and with it --cacert verifies nothing; leave one of \
             them out"
        );
    }
    Ok(())
}

/// Which HTTP is spoken. A text is one of HTTP/1.1.
fn http(arguments: &LoadArguments) -> HttpChoice {
    let typed = &arguments.protocol;
    if typed.http1 || !arguments.raw.is_empty() {
        HttpChoice::HTTP1
    } else if typed.http2 {
        HttpChoice::HTTP2
    } else if typed.http3 {
        HttpChoice::HTTP3
    } else {
        HttpChoice::AUTO
    }
}

/// How TLS is spoken.
fn tls_spec(typed: &ProtocolArguments) -> Result<TlsSpec> {
    let default = TlsSpec::default();
    let version_min = typed.tls_min.unwrap_or(default.version_min);
    let version_max = typed.tls_max.unwrap_or(default.version_max);
    if version_min > version_max {
        bail!("--tls-min 1.3 is above --tls-max 1.2: no version is left to offer");
    }
    Ok(TlsSpec {
        server_name: typed.sni.clone(),
        roots: typed.cacert.clone().map(Into::into),
        identity: typed.cert.as_ref().map(|certificate| ClientIdentity {
            certificate: certificate.clone().into(),
            key: typed.key.as_ref().unwrap_or(certificate).clone().into(),
        }),
        insecure: typed.insecure,
        version_min,
        version_max,
        resumption: typed.tls_resume,
        ..default
    })
}

#[cfg(test)]
mod tests {
    use brunt_load::{TlsVersion, Watch};

    use super::*;
    use crate::commands::Command;

    /// What the words after `brunt` make of a plan, their URL included.
    fn plan_of(typed: &str) -> Result<Plan> {
        let words = ["brunt"].into_iter().chain(typed.split_whitespace());
        let (arguments, given) = Arguments::read(words.map(Into::into))?;
        let load = &arguments.load;
        let plan = arguments.typed(&given).plan(load.url.as_deref())?;
        refuse_useless_seed(load, plan.traffic.requests.draws_numbers())?;
        Ok(plan)
    }

    fn good(typed: &str) -> Plan {
        plan_of(typed).unwrap_or_else(|error| panic!("{typed}: {error}"))
    }

    #[test]
    fn the_model_follows_from_what_was_typed() {
        for (typed, expected, connections) in [
            ("", "closed", 64),
            ("-c 3 --think-time 1s", "closed", 3),
            ("--connection-rate 100", "closed", 64),
            ("--requests-per-connection 7", "closed", 64),
            ("--hold", "held", 64),
            ("--hold -c 9 --connection-rate 100", "held", 9),
            ("-r 100", "open", 64),
            ("-r 100 --requests-per-connection 7", "open", 64),
            ("-r 100 --no-keepalive -c 5 --max-connections 5", "open", 5),
            ("--stages 10s:0..5k", "open", 64),
            (
                "--connection-rate 10 --requests-per-connection 7",
                "sessions",
                10_000,
            ),
            ("--connection-rate 10 --no-keepalive -c 9", "sessions", 9),
        ] {
            let load = good(typed);
            assert_eq!(load.load.model.name(), expected, "{typed}");
            assert_eq!(load.load.connections.get(), connections, "{typed}");
        }
    }

    #[test]
    fn lengths() {
        const S: u64 = 1_000_000_000;
        for (typed, duration_ns, requests, warmup_ns) in [
            ("-r 1", Some(10 * S), None, S),
            ("--hold", Some(10 * S), None, 0),
            ("--hold --warmup 2s", Some(10 * S), None, 2 * S),
            ("-r 1 -n 5", None, Some(5), 0),
            ("-r 1 -n 5 -d 3s --warmup 2s", Some(3 * S), Some(5), 2 * S),
            ("--stages 2s:1,1s:1..4", Some(3 * S), None, S),
            ("--stages 2s:1,1s:1..4 -n 5", Some(3 * S), Some(5), 0),
        ] {
            let load = good(typed);
            assert_eq!(load.load.stop.duration_ns, duration_ns, "{typed}");
            assert_eq!(load.load.stop.requests, requests, "{typed}");
            assert_eq!(load.load.warmup_ns, warmup_ns, "{typed}");
        }
    }

    #[test]
    fn a_seed_that_was_not_typed_is_fresh_and_short() {
        let seed = |typed: &str| {
            good(typed)
                .load
                .model
                .schedule()
                .expect("there is one")
                .seed()
        };
        assert_eq!(seed("-r 1 --seed 18446744073709551615"), u64::MAX);
        let seeds: Vec<_> = (0..4).map(|_| seed("-r 1")).collect();
        let mut all = seeds.iter();
        assert!(all.all(|&seed| seed <= u32::MAX.into()), "{seeds:?}");
        assert!(seeds.iter().any(|&seed| seed != seeds[0]), "{seeds:?}");
    }

    #[test]
    fn evidence_is_what_was_typed() {
        let default = good("");
        assert_eq!(default.observation.watch, Watch::Auto);
        assert_eq!(default.observation.server_counter, None);
        assert_eq!(default.observation.link_bits_per_s, None);
        assert_eq!(good("--watch off").observation.watch, Watch::Off);
        assert_eq!(good("--watch 17").observation.watch, Watch::Process(17));
        let counter = good("--verify-url host/status#requests")
            .observation
            .server_counter;
        let path = counter.and_then(|counter| counter.path);
        assert_eq!(path.as_deref(), Some("requests"));
        let link = good("--link-speed 2.5gbit").observation.link_bits_per_s;
        assert_eq!(link, Some(2_500_000_000));
    }

    #[test]
    fn the_protocol_is_what_was_typed() {
        for (typed, http, streams) in [
            ("", HttpChoice::AUTO, 1),
            ("http://host/", HttpChoice::AUTO, 1),
            ("https://host/", HttpChoice::AUTO, 1),
            ("--pipeline 8 http://host/", HttpChoice::AUTO, 1),
            ("--pipeline 8 --streams 8 https://h/", HttpChoice::AUTO, 8),
            ("--http1", HttpChoice::HTTP1, 1),
            ("--http1 --pipeline 8 https://host/", HttpChoice::HTTP1, 1),
            ("--pipeline 8 https://host/", HttpChoice::AUTO, 1),
            ("--http2", HttpChoice::HTTP2, 1),
            ("--http2 --streams 10", HttpChoice::HTTP2, 10),
            ("--http2 --streams 1k http://h/", HttpChoice::HTTP2, 1_000),
            ("--streams 10 https://host/", HttpChoice::AUTO, 10),
            ("--http2 --unix-socket /s https://h/", HttpChoice::HTTP2, 1),
        ] {
            let plan = good(typed);
            assert_eq!(plan.connection.protocol, http.into(), "{typed}");
            assert_eq!(plan.traffic.streams.get(), streams, "{typed}");
            assert_eq!(plan.connection.tls, TlsSpec::default(), "{typed}");
        }
    }

    #[test]
    fn tls_is_what_was_typed() {
        type Change = fn(&mut TlsSpec);
        let cases: [(&str, Change); 7] = [
            ("--sni name.example", |spec| {
                spec.server_name = Some("name.example".to_owned());
            }),
            ("--cacert ca.pem", |spec| spec.roots = Some("ca.pem".into())),
            ("-k", |spec| spec.insecure = true),
            ("--tls-min 1.3", |spec| spec.version_min = TlsVersion::Tls13),
            ("--tls-max 1.2", |spec| spec.version_max = TlsVersion::Tls12),
            ("--tls-min 1.2 --tls-max 1.3", |_| {}),
            ("--tls-resume", |spec| spec.resumption = true),
        ];
        for (typed, change) in cases {
            let mut expected = TlsSpec::default();
            change(&mut expected);
            let plan = good(&format!("{typed} https://host/"));
            assert_eq!(plan.connection.tls, expected, "{typed}");
        }
    }

    #[test]
    fn a_key_may_lie_with_its_certificate() {
        for (typed, key) in [
            ("--cert both.pem https://host/", "both.pem"),
            ("--cert both.pem --key key.pem https://host/", "key.pem"),
        ] {
            let identity = good(typed).connection.tls.identity.expect(typed);
            assert_eq!(identity.certificate, "both.pem".into(), "{typed}");
            assert_eq!(identity.key, key.into(), "{typed}");
        }
    }

    #[test]
    fn tls_may_be_for_what_is_read_beside_the_load() {
        for typed in [
            "-k --verify-url https://host/status http://host/",
            "--cacert ca.pem --verify-url https://host/status http://host/",
            "--cert c --tls-min 1.3 --verify-url https://host/status http://host/",
        ] {
            good(typed);
        }
        for typed in ["--sni name", "--tls-resume"] {
            let typed = format!("{typed} --verify-url https://host/ http://host/");
            assert!(plan_of(&typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn contradictions() {
        for (typed, words) in [
            ("--watch 0", "not a process id"),
            ("-t 4097", "4096 at most"),
            ("-d 0s", "longer than 0"),
            ("--rate -5k", "is not a rate"),
            ("--stages 1s:5,0s:7", "stage 2"),
            ("-H nocolon", "Name: value"),
            ("--arrivals possion", "'poisson'"),
            ("--verify-url http://#requests", "not a URL"),
            ("--link-speed fast", "not a link speed"),
            ("tcp://h:1", "brunt tcp -m MESSAGE"),
            ("--arrivals poisson", "--arrivals"),
            ("--connection-rate 5 --arrivals poisson", "--arrivals"),
            ("--max-connections 100", "--max-connections"),
            ("-r 5 -c 10 --max-connections 9", "--max-connections 9"),
            ("--streams 2 --pipeline 2 http://h/", "is about HTTP/2"),
            ("--streams 0 --http2", "at least 1"),
            (
                "--streams 2 http://h/",
                "http://h/ is spoken to in HTTP/1.1",
            ),
            (
                "--streams 2",
                "the built-in server is spoken to in HTTP/1.1",
            ),
            ("-k --cacert ca.pem https://h/", "--cacert verifies nothing"),
            (
                "--tls-min 1.3 --tls-max 1.2 https://h/",
                "no version is left",
            ),
            ("--sni https://h/ https://h/", "host name alone"),
        ] {
            let error = plan_of(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }

    #[test]
    fn tls_options_need_tls() {
        for typed in [
            "--sni name",
            "--cacert ca.pem",
            "--cert c.pem",
            "--cert c.pem --key k.pem",
            "--tls-min 1.2",
            "--tls-max 1.3",
            "--tls-resume",
        ] {
            let option = typed.split(' ').next().expect("a word");
            for (url, name, remedy) in [
                ("http://host/", "http://host/", "an https URL"),
                ("", "the built-in server", "the https URL"),
            ] {
                let error = plan_of(&format!("{typed} {url}"))
                    .expect_err(typed)
                    .to_string();
                for words in [option, name, "clear text", remedy] {
                    assert!(error.contains(words), "{typed} {url}: {error}");
                }
            }
        }
        for typed in ["-k", "-k http://host/"] {
            good(typed);
        }
    }

    fn tcp(words: &str) -> Result<Plan> {
        let words = ["brunt", "tcp"].into_iter().chain(words.split(' '));
        let (arguments, given) = Arguments::read(words.map(Into::into))?;
        match arguments.command {
            Some(Command::Tcp(tcp)) => of_tcp(&tcp, &given),
            _ => panic!("another command"),
        }
    }

    #[test]
    fn messages_are_named_by_what_was_typed() {
        let long = "x".repeat(70);
        let set = |words: &str| {
            tcp(&format!("{words} --reply line h:1"))
                .expect(words)
                .traffic
                .requests
        };
        let two = set(&format!("-m GET_{{seq}}\\n -m {long}"));
        let expected = ["GET_{seq}\\n".to_owned(), format!("{}...", &long[..60])];
        assert_eq!(two.names().collect::<Vec<_>>(), expected);
        let typed = "{\"user\":{conn},\"name\":\"Имя\"}\\x0a";
        assert_eq!(set(&format!("-m {typed}")).first_name(), typed);
        assert_eq!(set("-m secret --redact").first_name(), "message 1");
        for (words, part) in [
            ("-m \\q", "-m '\\q'"),
            ("-c 1", "give one with -m"),
            ("-m @- --first @-", "only one message"),
        ] {
            let error = tcp(&format!("{words} --reply line h:1")).expect_err("bad");
            assert!(format!("{error:#}").contains(part), "{words}: {error:#}");
        }
    }

    #[test]
    fn sockets_are_as_typed() {
        for (words, is_nodelay) in [("--send", true), ("--send --nodelay off", false)] {
            let plan = tcp(&format!("{words} h:1")).expect(words);
            assert_eq!(plan.connection.sockets.is_nodelay, is_nodelay, "{words}");
        }
    }

    #[test]
    fn the_first_reply_is_framed_like_the_others_unless_it_is_said() {
        for (words, reply) in [
            ("--reply line", Framing::Line),
            ("--reply line --first-reply echo", Framing::Echo),
            ("--reply until-close", Framing::None),
        ] {
            let plan = tcp(&format!("-m a --first b {words} h:1")).expect(words);
            let ProtocolSpec::Messages(exchange) = plan.connection.protocol else {
                panic!("{words}: no messages");
            };
            let opening = exchange.opening.expect("an opening");
            assert_eq!(opening.reply, reply, "{words}");
        }
    }
}
